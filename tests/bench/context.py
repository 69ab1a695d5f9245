"""The code around real changes: needed symbols that a question shows, and its cost. No model is asked.

``python -m tests.bench context --repos DIR [--part tuning|final|all] [--missing] [--large] [--tasks FILE]``

DIR holds clones with a whole history, named ``owner+name``. For each language of ``needs.txt`` this prints the
share of needed symbols that the context shows (those that the diff shows do not count), the share of its lines
that are needed or near, and its tokens. ``--part final`` takes only the changes on which nothing was tuned.
``--large`` prints the time for the newest commit of each clone that changes 30 to 60 source files. ``--tasks``
prints the tokens of review tasks, as ``bouncer-eval build golden`` makes them, by kind of change.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import NamedTuple

from bot.code.change.diff import Diff, Sides, parse
from bot.code.change.file_classes import Risk, risk, skip_reason
from bot.code.change.packing import ChangeFilters, Packed, pack
from bot.code.context.surroundings import Surroundings
from bot.code.parsing import parser_process
from bot.code.parsing.grammars import family
from bot.core.config import RepoConfig
from bot.core.text import estimate
from bot.features.review.meaning import reformatted
from evaluation.crbench.task import read_tasks
from evaluation.git.clones import CommitTree
from evaluation.git.repository import GitError, GitRepository, find_clone
from tests.bench.needs import Case, places_in_diff, places_in_text, read_cases

REVIEW = RepoConfig().review
NEEDS = Path(__file__).with_name("needs.txt")


class Score(NamedTuple):
    """The context of one change: needs, those that are met, lines, those that are needed or near, and tokens."""

    needs: int
    met: int
    lines: int
    near: int
    tokens: int


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--part", choices=("tuning", "final", "all"), default="all")
    parser.add_argument("--missing", action="store_true", help="print each needed symbol that is not shown")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--tasks")
    arguments = parser.parse_args()
    print_needs(arguments.repos, arguments.part, with_missing=arguments.missing)
    if arguments.large:
        print_large(arguments.repos)
    if arguments.tasks:
        print_tasks(arguments.repos, arguments.tasks)


def print_needs(repos: Path, part: str, *, with_missing: bool) -> None:
    """Print one line a language."""
    scores: dict[str, list[Score]] = {}
    for case in read_cases(NEEDS):
        clone = find_clone(repos, case.repository)
        if part != "all" and case.is_final != (part == "final"):
            continue
        if clone is None:
            print(f"no clone of {case.repository}: {case.commit} is left out")
            continue
        with GitRepository(clone) as repository:
            scores.setdefault(case.language, []).append(score(case, repository, with_missing=with_missing))
    everything = [row for rows in scores.values() for row in rows]
    for language, rows in [*scores.items(), ("all", everything)]:
        needs, near = percent(rows, "met", "needs"), percent(rows, "near", "lines")
        print(f"{language:11} {len(rows):3} changes; needed symbols shown {needs}; lines needed or near {near}; "
              f"tokens {mean(row.tokens for row in rows):,.0f}")  # fmt: skip


def percent(rows: Iterable[Score], part: str, whole: str) -> str:
    """Return a share of sums, with its numbers."""
    parts, wholes = (sum(getattr(row, name) for row in rows) for name in (part, whole))
    return f"{100 * parts / max(wholes, 1):5.1f} % ({parts} of {wholes})"


def score(case: Case, repository: GitRepository, *, with_missing: bool) -> Score:
    """Hold the context of one change against what its reader needs."""
    diff, tree = read_change(repository, case.commit)
    packed = pack(diff, REVIEW.call_tokens, REVIEW.max_calls)
    surrounded = Surroundings(diff, Sides(tree))
    contexts = [surrounded.within(REVIEW.context_tokens, piece.files) for piece in packed.pieces]
    in_diff = places_in_diff(diff)
    places = set().union(*(places_in_text(context.text, tree.read) for context in contexts))
    needs = [(need, tree.read(need.path) or "") for need in case.needs]
    needs = [(need, source) for need, source in needs if not need.is_met(source, in_diff)]
    met = [need for need, source in needs if need.is_met(source, in_diff | places)]
    for need, _ in needs:
        if with_missing and need not in met:
            print(f"{case.repository} {case.commit}: {need.path} {need.name} {need.mentions}")
    near = {place for need in case.needs for place in need.lines()}
    return Score(
        len(needs), len(met), len(places), len(places & near), sum(context.tokens for context in contexts)
    )


def read_change(repository: GitRepository, commit: str) -> tuple[Diff, CommitTree]:
    """Return the diff of a commit to its parent, and its files."""
    text = repository.run("diff-tree", "-p", "-M", "--root", "--no-commit-id", commit)
    names = repository.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit).split(b"\0")
    tree = CommitTree(repository, commit, [name.decode("utf-8", "replace") for name in names if name])
    return parse(text.decode("utf-8", "replace")), tree


def print_large(repos: Path) -> None:
    """Print the time of the context of large changes, with the time of the parsers' processes."""
    for folder in sorted(repos.iterdir()):
        clone = find_clone(repos, folder.name.replace("+", "/", 1))
        if clone is None:
            continue
        with GitRepository(clone) as repository:
            try:
                commit = next(large_commits(repository), None)
            except GitError:  # a clone without some old files
                continue
            if commit is None:
                continue
            diff, tree = read_change(repository, commit)
            for path in tree.paths():  # git is not measured
                if family(path):
                    tree.read(path)
            parser_process._pool.close()
            before, began = processor_seconds(), perf_counter()
            sides = Sides(tree)
            same = reformatted(diff, sides)
            packed = pack(diff, REVIEW.call_tokens, REVIEW.max_calls, ChangeFilters(same=same))
            surrounded = Surroundings(diff, sides)
            for piece in packed.pieces:
                surrounded.within(REVIEW.context_tokens, piece.files)
            wall = perf_counter() - began
            parser_process._pool.close()
            print(f"{folder.name}: {commit[:10]}, {len(diff.files)} files, {len(tree.paths()):,} in the tree, "
                  f"{len(packed.pieces)} parts: {processor_seconds() - before:.2f} s of processor time, "
                  f"{wall:.2f} s by the clock")  # fmt: skip


def large_commits(repository: GitRepository) -> Iterator[str]:
    """Yield the newest commits that change 30 to 60 source files."""
    log = repository.run("log", "--no-merges", "--format=%x00%H", "--name-only", "-1500", repository.head())
    for entry in log.decode("utf-8", "replace").split("\0")[1:]:
        commit, *paths = entry.split()
        if 30 <= sum(bool(family(path)) for path in paths) <= 60:
            yield commit


def processor_seconds() -> float:
    """Return the time of this process and of its children that have ended."""
    usages = (resource.getrusage(scope) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def print_tasks(repos: Path, source: str) -> None:
    """Print the tokens of review tasks by kind of change: upper estimates, means."""
    costs: dict[str, list[tuple[int, int, int]]] = {}
    for task in read_tasks(source):
        clone = find_clone(repos, task.repo)
        if clone is None or task.pull is None:
            continue
        with GitRepository(clone) as repository:
            _, tree = read_change(repository, task.pull.head_sha)
            diff, sides = parse(task.pull.diff), Sides(tree)
            filters = ChangeFilters(same=reformatted(diff, sides))
            packed = pack(diff, REVIEW.call_tokens, REVIEW.max_calls, filters)
            surrounded = Surroundings(diff, sides)
            context = sum(surrounded.within(REVIEW.context_tokens, piece.files).tokens for piece in packed.pieces)
        change = sum(piece.tokens for piece in packed.pieces)
        costs.setdefault(kind_of(diff, packed), []).append((estimate(task.pull.diff), change, context))
    for kind, rows in sorted(costs.items()):
        patch, change, context = (mean(column) for column in zip(*rows, strict=True))
        print(
            f"{kind}, {len(rows)}: patch {patch:,.0f} tokens, shown {change:,.0f}, code around it {context:,.0f}"
        )


def kind_of(diff: Diff, packed: Packed) -> str:
    """Return the kind of a change: code, if there is any in it."""
    if packed.reformatted:
        return "layout only"
    risks = {risk(file) for file in diff.files if skip_reason(file) is None}
    if risks & {Risk.SENSITIVE, Risk.SOURCE}:
        return "code with tests" if Risk.TEST in risks else "code"
    return "tests" if Risk.TEST in risks else "settings and texts" if risks else "nothing that is read"


if __name__ == "__main__":
    main()
