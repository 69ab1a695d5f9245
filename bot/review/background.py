"""What a reviewer is told besides the change: linked issues, house rules, supported versions, all files of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.bouncers import linked
from bot.core.config import Instruction, gitignore
from bot.core.model import PullRequest
from bot.core.text import folded, without_middle
from bot.errors import ForgeError, NotFound, NotRecorded
from bot.forge.protocol import Forge
from bot.review.context import Surroundings
from bot.review.packing import Packed
from bot.review.strategies import Background, HouseRule, LinkedIssue
from bot.services import Services

#: Files in which a repository tells contributors and agents its rules, most telling first.
RULES = ("AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md", "CONTRIBUTING.md", ".github/CONTRIBUTING.md")
#: Characters of one such file, of all of them, and of a linked issue.
MAX_RULE, MAX_RULES, MAX_ISSUE = 6_000, 12_000, 12_000


def background(pull: PullRequest, packed: Packed, around: Surroundings, services: Services) -> Background:
    """Everything that stands beside each piece of a change. What cannot be read is left out."""
    paths = [file.path for file in packed.diff.files]
    config = services.config.review
    return Background(
        issues=_issues(pull, services),
        runtimes=around.runtimes(),
        rules=(*_instructions(config.instructions, paths), *_rules(around, services.forge, services)),
        files=packed.files,
        partly=any("not shown" in each for each in packed.files),
    )


def _issues(pull: PullRequest, services: Services) -> tuple[LinkedIssue, ...]:
    try:
        found, _ = linked.issues(linked.links(pull, services), services)
    except ForgeError:
        return ()
    return tuple(LinkedIssue(each.title, folded(each.body, MAX_ISSUE)) for each in found)


def _instructions(instructions: Iterable[Instruction], paths: Sequence[str]) -> Iterable[HouseRule]:
    """What bouncer.yml says about these files."""
    for each in instructions:
        about = gitignore(each.paths)
        if not each.paths or any(about.match_file(path.encode("utf-8", "replace").decode()) for path in paths):
            yield HouseRule(f"review.instructions {' '.join(each.paths)}".strip(), each.text)


def _rules(around: Surroundings, forge: Forge, services: Services) -> Iterable[HouseRule]:
    """The files of rules that the default branch has: never those of the change under review."""
    left = MAX_RULES
    known = frozenset(() if around.sides is None else around.sides.tree.paths())
    for path in RULES:
        if path not in known or left <= 0:
            continue
        try:
            content = forge.file(path, services.repository.default_branch)
        except (NotFound, NotRecorded, ForgeError):
            continue
        text = without_middle(content.decode("utf-8", "replace"), min(MAX_RULE, left))
        left -= len(text)
        yield HouseRule(path, text)
