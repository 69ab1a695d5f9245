"""What the code around a change costs and how often it is found.

``python -m tests.bench context --repos DIR [--patches 200] [--commits 60]``: DIR holds clones named
``owner+name``. Python: SWE-bench fixes and agents' patches of the shared data whose base is at hand, held against
the functions that Python's own ``ast`` sees. Other languages: each clone's newest commits, over the hunks whose
changed lines are all indented (which is nearly, not exactly, "inside of something").
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import os
import random
import statistics
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time

from bot.code.excerpt import around
from bot.code.syntax import PYTHON, definitions, grammar_of
from bot.core.config import RepoConfig
from bot.forge.github.archive import FolderTree
from bot.review.context import Surroundings
from bot.review.diff import Diff, FileDiff, Hunk, parse
from bot.review.packing import estimate, pack
from bot.review.sides import Sides, reformatted
from evaluation.git.clones import CommitTree
from evaluation.git.repository import GitRepository, find_clone

REVIEW = RepoConfig().review


def main() -> None:
    """Print one line a question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--patches", type=int, default=200)
    parser.add_argument("--commits", type=int, default=60)
    given = parser.parse_args()
    patches(given.repos, given.patches)
    for folder in sorted(given.repos.iterdir()):
        clone = find_clone(given.repos, folder.name.replace("+", "/", 1))
        if clone is not None:
            with GitRepository(clone) as repository:
                commits(repository, folder.name, given.commits)


def tree(repository: GitRepository, commit: str) -> CommitTree:
    names = repository.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit).split(b"\0")
    return CommitTree(repository, commit, [name.decode("utf-8", "replace") for name in names if name])


def data(name: str) -> Iterator[dict[str, str]]:
    folder = Path(os.environ.get("BOUNCER_DATA", Path(__file__).parents[3] / "shared" / "data"))
    with gzip.open(folder / "swebench" / name, "rt", encoding="utf-8") as rows:
        yield from map(json.loads, rows)


def patches(repos: Path, count: int) -> None:
    """Real Python patches: hunks whose function is found, tokens before and after, seconds."""
    instances = {row["instance_id"]: row for row in data("instances.jsonl.gz") if row.get("base_commit")}
    tasks = [(row, row["patch"], "fix") for row in instances.values() if row.get("patch")]
    for row in data("labelled_patches.jsonl.gz"):
        if row["instance_id"] in instances and row["model_patch"]:
            tasks.append((instances[row["instance_id"]], row["model_patch"], "agent's patch"))
    tasks = [task for task in tasks if find_clone(repos, task[0]["repo"]) is not None]
    random.Random(13).shuffle(tasks)
    counts: Counter[str] = Counter()
    spent: list[float] = []
    tokens: dict[str, list[tuple[int, int, int]]] = {}
    opened: dict[str, GitRepository] = {}
    for row, patch, kind in tasks[:count]:
        name = row["repo"]
        opened.setdefault(name, GitRepository(find_clone(repos, name) or repos))
        diff = parse(patch)
        sides = Sides(tree(opened[name], row["base_commit"]), is_old=True)
        started = process_time()
        same = reformatted(diff, sides)
        packed = pack(diff, REVIEW.call_tokens, REVIEW.max_calls, same=same)
        surrounded = Surroundings(diff, sides)
        shown = sum(surrounded.within(REVIEW.context_tokens, piece.paths).tokens for piece in packed.pieces)
        spent.append(process_time() - started)
        kept = sum(piece.tokens for piece in packed.pieces)
        kind = "layout only" if packed.reformatted else kind
        tokens.setdefault(kind, []).append((estimate(patch), kept, kept + shown))
        assert all(piece.tokens <= REVIEW.call_tokens for piece in packed.pieces)
        for file in diff.files:
            count_hunks(file, sides, counts)
    for repository in opened.values():
        repository.close()
    print(f"{len(spent)} patches: {counts['found']} of {counts['inside']} hunks inside a function or class: found "
          f"{100 * counts['found'] / max(counts['inside'], 1):.1f} %; {counts['top']} at the top of a file, "
          f"{counts['unknown']} in files that do not fit or do not parse")  # fmt: skip
    print(f"processor seconds a patch: median {statistics.median(spent):.2f}, most {max(spent):.2f}")
    for kind, rows in sorted(tokens.items()):
        raw, kept, full = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"tokens (upper estimate), {kind}, {len(rows)}: median patch {raw:,.0f}, shown of it {kept:,.0f}, "
              f"with the code around it {full:,.0f}")  # fmt: skip


def count_hunks(file: FileDiff, sides: Sides, counts: Counter[str]) -> None:
    """Hold what is found against what ``ast`` says, hunk by hunk."""
    if grammar_of(file.path) is not PYTHON or file.change == "added":
        return
    for hunk in file.hunks:
        added = [line.new for line in hunk.lines if line.mark == "+" and line.new]
        text = sides.after(file) if added else sides.before(file)
        numbers = added or [line.old for line in hunk.lines if line.mark == "-" and line.old]
        spans = None if text is None else functions(text)
        if text is None or spans is None:
            counts["unknown"] += 1
        elif not any(first <= number <= last for number in numbers for first, last in spans):
            counts["top"] += 1
        else:
            counts["inside"] += 1
            counts["found"] += bool(around(definitions(text, file.path), numbers))


def functions(text: str) -> list[tuple[int, int]] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        return None
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [(node.lineno, node.end_lineno or node.lineno) for node in nodes if isinstance(node, kinds)]


def commits(repository: GitRepository, name: str, limit: int) -> None:
    """A clone's newest commits: hunks found by language, and the seconds that a large Python change takes."""
    shas = repository.run("log", "--no-merges", "--format=%H", f"-{limit}", repository.head()).decode().split()
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for sha in shas:
        diff, after = change(repository, sha)
        for file in diff.files:
            grammar, text = grammar_of(file.path), after.read(file.path)
            if grammar is None or text is None or file.change == "added":
                continue
            known = definitions(text, file.path)
            for numbers in map(indented, file.hunks):
                if numbers:
                    total[grammar.name] += 1
                    found[grammar.name] += bool(around(known, numbers))
    for language in total:
        share = 100 * found[language] / total[language]
        print(f"{name}: {language}: {found[language]} of {total[language]} indented hunks found, {share:.1f} %")
    large(repository, name)


def change(repository: GitRepository, sha: str) -> tuple[Diff, CommitTree]:
    text = repository.run("diff-tree", "-p", "-M", "--root", "--no-commit-id", sha).decode("utf-8", "replace")
    return parse(text), tree(repository, sha)


def indented(hunk: Hunk) -> list[int]:
    lines = [line for line in hunk.lines if line.mark == "+" and line.text.strip()]
    return [line.new or 0 for line in lines] if all(line.text[0] in " \t" for line in lines) else []


def large(repository: GitRepository, name: str) -> None:
    """The newest commit that changes 30 to 60 Python files, from its unpacked files."""
    log = repository.run("log", "--no-merges", "--format=%x00%H", "--name-only", "-1500", repository.head())
    for entry in log.decode("utf-8", "replace").split("\0")[1:]:
        sha, *paths = entry.split()
        if 30 <= sum(path.endswith(".py") for path in paths) <= 60:
            break
    else:
        return
    diff, source = change(repository, sha)
    with tempfile.TemporaryDirectory() as folder:
        for path in source.paths():
            if (text := source.read(path)) is not None:
                Path(folder, path).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, path).write_text(text, encoding="utf-8")
        times = []
        for _ in range(3):
            starts = process_time(), perf_counter()
            sides = Sides(FolderTree(Path(folder)))
            same = reformatted(diff, sides)
            packed = pack(diff, REVIEW.call_tokens, REVIEW.max_calls, same=same)
            surrounded = Surroundings(diff, sides)
            for piece in packed.pieces:
                surrounded.within(REVIEW.context_tokens, piece.paths)
            times.append((process_time() - starts[0], perf_counter() - starts[1]))
    cpu, wall = min(times)
    print(f"{name}: {sha[:10]}, {len(diff.files)} files, {len(source.paths()):,} in the tree: context in "
          f"{cpu:.2f} s of processor time, {wall:.2f} s by the clock (goal 2 s)")  # fmt: skip


if __name__ == "__main__":
    main()
