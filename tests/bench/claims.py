"""How many issues name something that does not exist at their base commit. No model is asked.

``python -m tests.bench claims --repos DIR [--list] [FILE]``

FILE has SWE-bench's instances (default: those in ``BOUNCER_DATA``). DIR holds clones with a whole history, named
``owner+name``; repositories without a clone, and instances without a base commit, are counted apart.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from pathlib import Path
from time import perf_counter

from bot.core.errors import OperatorError
from bot.features.triage.claims import absent
from bot.features.triage.record import Claim
from evaluation.bouncerbench.construct import read_instances
from evaluation.git.clones import Clones, CommitTree, listing
from tests.bench.replay import DATA

TYPES = ("file", "name", "option", "version")


def main() -> None:
    """Print one line for each repository."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--list", action="store_true", help="print each claim")
    parser.add_argument("instances", nargs="?", default=str(DATA / "swebench/instances.jsonl.gz"))
    arguments = parser.parse_args()
    claims: defaultdict[str, list[tuple[Claim, ...]]] = defaultdict(list)
    unreadable: Counter[str] = Counter()
    start = perf_counter()
    with Clones(arguments.repos) as clones:
        for identity, row in read_instances(arguments.instances).items():
            name, commit = row["repo"], row["base_commit"] or ""
            try:
                claims[name].append(_absent(clones, name, commit, row["problem_statement"]))
            except OperatorError:
                unreadable[name] += 1
                continue
            for claim in claims[name][-1] if arguments.list else ():
                print(f"{identity}: {claim.sentence}")
    _print(claims, unreadable)
    print(f"{perf_counter() - start:.0f} seconds")


def _absent(clones: Clones, name: str, commit: str, text: str) -> tuple[Claim, ...]:
    clone = clones.at(name, commit)
    tree = CommitTree(clone, commit, [file.path for file in listing(clone, commit)])
    tags = [ref.removeprefix("refs/tags/") for ref in clone.refs("refs/tags")]
    return absent(text, name.partition("/")[2], tree, lambda: tags)


def _print(claims: dict[str, list[tuple[Claim, ...]]], unreadable: Counter[str]) -> None:
    print(f"{'repository':28}{'issues':>8}{'name absent things':>20}", *(f"{name:>9}" for name in TYPES))
    everything = [issue for issues in claims.values() for issue in issues]
    for name, issues in [*sorted(claims.items()), ("all", everything)]:
        if not issues:
            continue
        some = sum(map(bool, issues))
        counts = [sum(any(claim.type == word for claim in issue) for issue in issues) for word in TYPES]
        share = f"{some} ({some / len(issues):.0%})"
        print(f"{name:28}{len(issues):8}{share:>20}", *(f"{count:9}" for count in counts))
    for name, count in sorted(unreadable.items()):
        print(f"{name:28}{count:8} without clone or base commit")


if __name__ == "__main__":
    main()
