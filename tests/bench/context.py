"""What the code around a change costs and how often it is found.

``python -m tests.bench context --repos DIR [--patches 200] [--commits 60] [--tasks F]``: DIR holds clones named
``owner+name``. Python: SWE-bench fixes and agents' patches of the shared data whose base is at hand, held against
the functions that Python's own ``ast`` sees. Every language: each clone's newest commits, over the hunks of which
a new line lies in a node of the syntax tree that has a body and is no statement (told by a walk over all nodes,
not by what looks for definitions). ``--tasks``: review tasks, as ``bouncer-eval build golden`` makes them.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import os
import random
import re
import statistics
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from bot.code.changed import around
from bot.code.context import Sides, Surroundings
from bot.code.diff import Diff, FileDiff, parse
from bot.code.file_classes import Risk, risk, skip_reason
from bot.code.packing import Packed, estimate, pack, render, render_line
from bot.code.syntax import PYTHON, definitions, grammar_of
from bot.code.trees import nodes
from bot.code.trees import parse as parse_tree
from bot.core.config import RepoConfig
from bot.features.review.meaning import reformatted
from bot.github.protocol import FolderTree
from evaluation.crbench.task import read_tasks
from evaluation.git.clones import CommitTree
from evaluation.git.repository import GitError, GitRepository, find_clone

REVIEW = RepoConfig().review


def main() -> None:
    """Print one line a question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--patches", type=int, default=200)
    parser.add_argument("--commits", type=int, default=60)
    parser.add_argument("--tasks")
    given = parser.parse_args()
    patches(given.repos, given.patches)
    if given.tasks:
        reviews(given.repos, given.tasks)
    counts: dict[str, Counter[str]] = {}
    for folder in sorted(given.repos.iterdir()):
        clone = find_clone(given.repos, folder.name.replace("+", "/", 1))
        if clone is not None:
            with GitRepository(clone) as repository:
                commits(repository, given.commits, counts)
                large(repository, folder.name)
                reformattings(repository, folder.name)
    for language, found in sorted(counts.items()):
        share = 100 * found["found"] / max(found["inside"], 1)
        print(f"{language}: {found['found']} of {found['inside']} hunks inside of something: found {share:.1f} %; "
              f"{found['top']} at the top of a file")  # fmt: skip


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
    tokens: dict[str, list[Tokens]] = {}
    opened: dict[str, GitRepository] = {}
    for row, patch, kind in tasks[:count]:
        name = row["repo"]
        opened.setdefault(name, GitRepository(find_clone(repos, name) or repos))
        diff = parse(patch)
        sides = Sides(tree(opened[name], row["base_commit"]), is_old=True)
        started = process_time()
        cost = measured(diff, patch, sides)
        spent.append(process_time() - started)
        tokens.setdefault(f"{kind}, {cost.kind}", []).append(cost)
        for file in diff.files:
            count_hunks(file, sides, counts)
    for repository in opened.values():
        repository.close()
    print(f"{len(spent)} patches: {counts['found']} of {counts['inside']} hunks inside a function or class: found "
          f"{100 * counts['found'] / max(counts['inside'], 1):.1f} %; {counts['top']} at the top of a file, "
          f"{counts['unknown']} in files that do not fit or do not parse")  # fmt: skip
    print(f"processor seconds a patch: median {statistics.median(spent):.2f}, most {max(spent):.2f}")
    tell(tokens)


class Tokens(NamedTuple):
    """What one change costs, upper estimates; ``gone`` is what was left out as it cannot matter."""

    kind: str
    raw: int
    gone: int
    marks: int
    context: int
    calls: int


def measured(diff: Diff, patch: str, sides: Sides) -> Tokens:
    same = reformatted(diff, sides)
    packed = pack(diff, REVIEW.call_tokens, REVIEW.max_calls, same=same)
    surrounded = Surroundings(diff, sides)
    context = sum(surrounded.within(REVIEW.context_tokens, piece.paths).tokens for piece in packed.pieces)
    assert all(piece.tokens <= REVIEW.call_tokens for piece in packed.pieces)
    kept = sum(piece.tokens for piece in packed.pieces)
    # The same change with nothing left out, in the same form: what is left out, apart from what numbers cost.
    whole = sum(estimate(render(file, [render_line(line) for hunk in file.hunks for line in hunk.lines]))
                for file in diff.files)  # fmt: skip
    raw = estimate(patch)
    return Tokens(kind_of(diff, packed), raw, max(0, whole - kept), whole - raw, context, len(packed.pieces))


def kind_of(diff: Diff, packed: Packed) -> str:
    """By what the files are: the code decides, where there is any."""
    if packed.reformatted:
        return "layout only"
    kinds = {risk(file) for file in diff.files if skip_reason(file) is None}
    if kinds & {Risk.SENSITIVE, Risk.SOURCE}:
        return "code with tests" if Risk.TEST in kinds else "code"
    return "tests" if Risk.TEST in kinds else "settings and texts" if kinds else "nothing that is read"


def tell(tokens: dict[str, list[Tokens]]) -> None:
    for kind, rows in sorted(tokens.items()):
        means = {name: statistics.mean(getattr(each, name) for each in rows) for name in Tokens._fields[1:]}
        print(f"tokens a pull request (upper estimate, means), {kind}, {len(rows)}: patch {means['raw']:,.0f}, "
              f"left out as it cannot matter -{means['gone']:,.0f}, line numbers {means['marks']:+,.0f}, "
              f"code around it +{means['context']:,.0f}; {means['calls']:.2f} calls a look")  # fmt: skip


def reviews(repos: Path, source: str) -> None:
    """Review tasks: pull requests of the shared review data, by kind of change."""
    tokens: dict[str, list[Tokens]] = {}
    for task in read_tasks(source):
        clone = find_clone(repos, task.repo)
        if clone is None or task.pull is None:
            continue
        with GitRepository(clone) as repository:
            diff = parse(task.pull.diff)
            cost = measured(diff, task.pull.diff, Sides(tree(repository, task.pull.head_sha)))
        tokens.setdefault(f"review data, {cost.kind}", []).append(cost)
    tell(tokens)


def reformattings(repository: GitRepository, name: str) -> None:
    """The newest commits whose message says that they change the layout: how many ask no model."""
    words = (
        "--grep=^reformat",
        "--grep=^apply black",
        "--grep=^run black",
        "--grep=^ruff format",
        "--grep=^gofmt",
    )
    log = repository.run("log", "--no-merges", "-i", "--format=%H", "-6", *words, repository.head())
    calls = []
    for sha in log.decode().split():
        diff, after = change(repository, sha)
        if len(diff.files) <= 60:
            packed = pack(diff, REVIEW.call_tokens, REVIEW.max_calls, same=reformatted(diff, Sides(after)))
            calls.append(len(packed.pieces))
    if calls:
        print(f"{name}: {len(calls)} commits that say they reformat; calls to a model: {calls}")


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
            counts["found"] += any(around(definitions(text, file.path), numbers))


def functions(text: str) -> list[tuple[int, int]] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        return None
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [(node.lineno, node.end_lineno or node.lineno) for node in nodes if isinstance(node, kinds)]


def commits(repository: GitRepository, limit: int, counts: dict[str, Counter[str]]) -> None:
    """A clone's newest commits: hunks found, by language."""
    shas = repository.run("log", "--no-merges", "--format=%H", f"-{limit}", repository.head()).decode().split()
    for sha in shas:
        try:
            diff, after = change(repository, sha)
        except GitError:  # of a clone that lacks some old file
            continue
        for file in diff.files:
            grammar, text = grammar_of(file.path), after.read(file.path)
            if grammar is None or text is None or file.change == "added":
                continue
            known, spans = definitions(text, file.path), bodies(text, file.path)
            of_language = counts.setdefault("typescript" if grammar.name == "tsx" else grammar.name, Counter())
            for hunk in file.hunks:
                numbers = [line.new for line in hunk.lines if line.mark == "+" and line.text.strip() and line.new]
                if numbers and any(first <= number <= last for number in numbers for first, last in spans):
                    of_language["inside"] += 1
                    of_language["found"] += any(around(known, numbers))
                elif numbers:
                    of_language["top"] += 1


#: Nodes with a body that are statements, and not what people would call a function or a class.
STATEMENT = re.compile(r"statement|loop|block|clause|arm|case|switch|if|else|while|for|try|catch|finally|unsafe")


def bodies(text: str, path: str) -> list[tuple[int, int]]:
    """The lines of everything in a file that has a body and is no statement."""
    tree = parse_tree(text, path)
    if tree is None:
        return []
    return [
        (node.start_point.row + 1, node.end_point.row + 1)
        for node, _ in nodes(tree)
        if node.child_by_field_name("body") is not None and not STATEMENT.search(node.type)
    ]


def change(repository: GitRepository, sha: str) -> tuple[Diff, CommitTree]:
    text = repository.run("diff-tree", "-p", "-M", "--root", "--no-commit-id", sha).decode("utf-8", "replace")
    return parse(text), tree(repository, sha)


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
