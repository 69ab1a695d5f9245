"""The reviewer against a GitHub that checks every request: what stands on the pull request in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.core import events
from bot.core.actions import Decision
from bot.core.config import RepoConfig
from bot.features.services import Services
from bot.github.app import GitHubApp
from bot.github.reader import GitHubForge
from bot.models.prompts import Prompts
from bot.models.protocol import Prompt
from bot.pipeline.body import UNSIGNED
from bot.pipeline.publisher import Publisher
from bot.pipeline.store import Ledger, migrate, open_database
from bot.router import SLASH_COMMANDS, decide
from bot.simgithub import SimulatedGitHub
from tests.bot.features.conftest import NOON
from tests.bot.features.reviews import reply
from tests.builders import finding
from tests.scripted import ScriptedModel

NAME = "acme/rocket"
BASE = "def load(path):\n    with open(path) as file:\n        return parse(file)\n    raise Missing(path)\n"
BROKEN = BASE.replace("return parse(file)", "data = parse(file)\n        return data.value")
WORSE = "import os\n\n\n" + BROKEN.replace("    raise", "    cache[path] = data\n    raise")
FIXED = BASE.replace("return parse(file)", "data = parse(file)\n        return data.value if data else None")

FIRST = finding(line=None, suggestion="        return data.get('value')")
SECOND = finding(quote="cache[path] = data", comment="Grows without end.", category="memory", symbol="cache")


def careful(prompt: Prompt) -> dict[str, Any]:
    """Reports what is wrong with the change that it is shown, every time again."""
    findings = ((FIRST, "return data.value\n"), (SECOND, "cache[path] = data"))
    return reply(*(finding for finding, code in findings if code in prompt.user))


class Site:
    """One repository, the app on it, and a memory: what happens is decided, recorded and published."""

    def __init__(self, github: SimulatedGitHub, app: GitHubApp, installation: int, ledger: Ledger) -> None:
        self.github, self.ledger = github, ledger
        self.model = ScriptedModel(careful)
        self.forge: GitHubForge
        self.writer: Any
        self.forge, self.writer = app.forge(installation, NAME)
        self.publisher = Publisher(ledger.postings)
        self.jobs = 0

    def happen(self, event: events.Event, publish: int = 1) -> Decision | None:
        """Deal with an event as the worker does; publishing may be repeated, as after a crash."""
        services = Services(
            commands=SLASH_COMMANDS,
            prompts=Prompts(),
            forge=self.forge,
            model=self.model,
            config=RepoConfig(),
            clock=lambda: NOON,
            history=self.ledger.decisions,
            repository=self.forge.about(),
        )
        self.jobs += 1
        job = f"{self.jobs}:review"
        decisions = self.ledger.decisions.record(job, decide(event, services, only="review"), "c")
        for position, decision in enumerate(decisions):
            for _ in range(publish):
                published = self.publisher.publish(decision, job, services, self.writer)
                self.ledger.decisions.settle(job, position, published.outcome)
        return decisions[0] if decisions else None

    def pushed(self, number: int, head: str = "") -> events.PullRequestSynchronized:
        pull = self.forge.pull_request(number)
        if head:
            pull = pull.model_copy(update={"head_sha": head})
        return events.PullRequestSynchronized(sender=pull.author, repository=self.forge.about(), pull_request=pull)

    def posted(self, number: int) -> list[tuple[str, int | None]]:
        """Our inline comments: first line of the text, and where it stands."""
        return [
            (comment.body.split("\n")[0], comment.line) for comment in self.github.review_comments(NAME, number)
        ]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    database = open_database(f"sqlite:///{tmp_path}/bouncer.db")
    migrate(database)
    with SimulatedGitHub() as github:
        registered = github.create_app(owner="acme")
        github.create_repository(NAME, {"src/app.py": BASE, "README.md": "# rocket\n"})
        github.grant(NAME, "mia", "triage")
        installation = github.install(registered, NAME)
        with GitHubApp(registered.id, registered.private_key, github.api_url) as app:
            yield Site(github, app, installation.id, Ledger(database))
    database.close()


def opened(site: Site, content: str, **values: Any) -> int:
    return site.github.open_pull(NAME, "Read values", files={"src/app.py": content}, **values)


def test_one_review_stands_on_the_right_line_however_often_it_is_published(site: Site) -> None:
    number = opened(site, BROKEN)
    site.happen(site.pushed(number), publish=3)
    assert site.posted(number) == [("Fails for an empty file. `parse` returns None then.", 4)]
    (comment,) = site.github.review_comments(NAME, number)
    assert "```suggestion\n        return data.get('value')\n```" in comment.body
    (review,) = site.forge.reviews(number)
    assert UNSIGNED.read(review.body) == ("review", site.forge.pull_request(number).head_sha)
    assert site.github.comments(NAME, number) == []


def test_a_later_push_adds_what_is_new_and_names_what_went_away(site: Site) -> None:
    number = opened(site, BROKEN)
    site.happen(site.pushed(number))
    site.github.push(NAME, number, {"src/app.py": WORSE})
    site.happen(site.pushed(number))
    assert [text for text, _ in site.posted(number)] == [
        "Fails for an empty file. `parse` returns None then.",
        "Grows without end.",
    ]
    for content in (FIXED, FIXED + "\n"):
        site.github.push(NAME, number, {"src/app.py": content})
        site.happen(site.pushed(number))
    assert len(site.posted(number)) == 2
    (summary,) = site.github.comments(NAME, number)
    assert "No longer in the change:\n- `src/app.py`: Fails for an empty file\n" in summary
    assert "Grows without end." in summary


def test_a_maintainer_s_thumb_is_heard_at_the_next_push(site: Site) -> None:
    number = opened(site, BROKEN)
    site.happen(site.pushed(number))
    (comment,) = site.github.review_comments(NAME, number)
    site.github.react(NAME, comment.id, "-1", by="mia")
    site.github.push(NAME, number, {"src/app.py": "\n" + BROKEN})
    again = site.happen(site.pushed(number))
    assert again is not None
    assert again.record.counts["suppressed:dismissed"] == 1


def test_a_burst_of_pushes_ends_in_one_review_of_the_last(site: Site) -> None:
    number = opened(site, BASE)
    heads = [site.github.push(NAME, number, {"src/app.py": f"# {count}\n{BROKEN}"}) for count in range(20)]
    for head in heads:
        site.happen(site.pushed(number, head))
    (review,) = site.forge.reviews(number)
    assert review.commit_id == heads[-1]
    assert len(site.posted(number)) == len(site.model.asked) == 1


def test_a_push_between_thinking_and_writing_leaves_nothing_behind(site: Site) -> None:
    number = opened(site, BROKEN)

    def late(prompt: Prompt) -> dict[str, Any]:
        site.github.push(NAME, number, {"src/app.py": WORSE})
        site.model = ScriptedModel(careful)
        return careful(prompt)

    site.model = ScriptedModel(late)
    first = site.happen(site.pushed(number))
    assert first is not None
    assert site.posted(number) == []
    site.happen(site.pushed(number))
    assert len(site.posted(number)) == 2


def test_posted_findings_are_not_posted_again_after_a_moved_head(site: Site) -> None:
    number = opened(site, BROKEN)
    site.happen(site.pushed(number))
    second = WORSE.replace("return data.value", "return data")
    site.github.push(NAME, number, {"src/app.py": second})
    site.writer = Hurried(site.writer, lambda: site.github.push(NAME, number, {"src/app.py": "\n" + second}))
    site.happen(site.pushed(number))
    assert site.github.comments(NAME, number) == []
    assert len(site.posted(number)) == 2
    site.writer = site.writer.inner
    again = site.happen(site.pushed(number))
    assert again is not None
    assert again.record.counts["posted"] == 0
    assert len(site.posted(number)) == 2
    (summary,) = site.github.comments(NAME, number)
    assert "No longer in the change:\n- `src/app.py`: Fails for an empty file" in summary


class Hurried:
    """A writer that sees a push during each review."""

    def __init__(self, inner: Any, then: Callable[[], object]) -> None:
        self.inner, self._then = inner, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def create_review(self, *arguments: Any) -> int:
        id_: int = self.inner.create_review(*arguments)
        self._then()
        return id_
