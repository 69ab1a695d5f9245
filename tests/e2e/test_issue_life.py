"""The life of an issue, from the first vague line to the end, as its author and the maintainers see it."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.provider import completion, failure
from tests.e2e.site import BOUNCER, VAGUE, Repository, Site

BOUNCED = """Thanks for the report. To work on this, a maintainer will probably need:
- Which version is this?

Edit the issue or reply below and I'll read it again. *I'm a bot using an AI model and may be wrong. \
Maintainers: `/bouncer accept` to override.*

<details><summary>Why I'm asking</summary>

Nobody can tell what is meant.

too vague (90% likely), `openai:gpt-5-mini`, DAY, [what this bot does](SITE/apps/bouncer)
</details>

<!-- bouncer:triage:v1 -->"""
CLEARED = "Thanks, that answers my questions. (I'm a bot; an AI model read this.)\n\n<!-- bouncer:triage:v1 -->"

GERMAN = {
    "explanation": "Es ist nicht klar, was passiert.",
    "open_points": ["Welche Version ist das?"],
    "missing": ["version"],
    "p_bounce": 90,
    "label": "VAGUE",
    "language": "de",
}


@pytest.fixture
def home(repository: Repository) -> str:
    return repository()


def bounced(shop: Site, home: str) -> int:
    number = shop.slowly.open_issue(home, *VAGUE)
    assert shop.github.labels(home, number) == ["needs-info"]
    return number


def read(shop: Site, home: str, number: int) -> str:
    """The only comment of ours."""
    (body,) = shop.comments_on(home, number)
    return body


def test_a_vague_issue_is_asked_one_question_and_labelled(shop: Site, home: str) -> None:
    body = read(shop, home, bounced(shop, home))
    assert re.sub(r"\d{4}-\d\d-\d\d", "DAY", body).replace(shop.github.web_url, "SITE") == BOUNCED


def test_a_maintainer_accepts_by_mention_with_a_reason(shop: Site, home: str) -> None:
    number = bounced(shop, home)
    shop.github.grant(home, "mia", "triage")
    shop.slowly.comment(home, number, "@somebody accept this is known", "mia")
    assert shop.github.labels(home, number) == ["needs-info"]
    shop.slowly.comment(home, number, "@bouncer accept this is known", "mia")
    assert read(shop, home, number).startswith("Accepted as is by mia: this is known.")
    shop.slowly.comment(home, number, "/bouncer", "mia")
    assert "Commands, each on a line of its own:" in shop.comments_on(home, number)[-1]


def test_the_author_answers_and_the_issue_is_cleared(shop: Site, home: str) -> None:
    number = bounced(shop, home)
    shop.slowly.comment(home, number, "Hm, I do not know.", "alice")
    assert "Which version is this?" not in read(shop, home, number), "asked again after an answer"
    assert "- version" not in read(shop, home, number), "asked again in other words"
    assert shop.github.labels(home, number) == ["needs-info"]
    shop.slowly.comment(home, number, "It is version 4.2, on an empty file.", "alice")
    assert read(shop, home, number) == CLEARED
    assert shop.github.labels(home, number) == []


def test_an_edit_clears_it_and_a_worse_edit_bounces_it_again(shop: Site, home: str) -> None:
    number = bounced(shop, home)
    shop.slowly.edit(home, number, body="With version 4.2 it fails on an empty file.")
    assert (read(shop, home, number), shop.github.labels(home, number)) == (CLEARED, [])
    shop.slowly.edit(home, number, body="Never mind the details.")
    assert "a maintainer will probably need" in read(shop, home, number)
    assert shop.github.labels(home, number) == ["needs-info"]


def test_a_maintainer_accepts_and_it_is_never_bounced_again(shop: Site, home: str) -> None:
    number = bounced(shop, home)
    command = shop.slowly.comment(home, number, "/bouncer accept", "mia")
    assert read(shop, home, number) == "Accepted as is by mia.\n\n<!-- bouncer:triage:v1 -->"
    assert shop.github.labels(home, number) == []
    assert reactions(shop, home, command) == ["+1"]
    shop.github.edit(home, number, body="Shorter.")
    shop.slowly.comment(home, number, "/bouncer recheck", "alice")
    accepted, notice = shop.comments_on(home, number)
    assert accepted.startswith("Accepted as is by mia.")
    assert notice.startswith("alice: I can't read this again: a maintainer accepted this issue.")
    assert shop.github.labels(home, number) == []


def test_a_maintainer_takes_the_label_off_and_sets_it_again(shop: Site, home: str) -> None:
    number = bounced(shop, home)
    shop.slowly.unlabel(home, number, "needs-info", by="mia")
    assert read(shop, home, number).startswith("Accepted as is by mia.")
    shop.slowly.edit(home, number, body="Shorter.")
    assert shop.github.labels(home, number) == []
    shop.slowly.label(home, number, "needs-info", by="mia")
    body = read(shop, home, number)
    assert body.startswith("Thanks for the report. mia asked for more details. To work on this,")
    assert "- Which version is this?" in body
    assert "VAGUE" not in body, "the maintainer decided, not the model"
    shop.slowly.comment(home, number, "It is version 4.2, on an empty file.", "alice")
    assert (read(shop, home, number), shop.github.labels(home, number)) == (CLEARED, [])


def test_each_comment_with_commands_gets_an_answer_of_its_own(shop: Site, home: str) -> None:
    number = bounced(shop, home)
    for author, body in (
        ("alice", "/bouncer help"),
        ("mia", "/bouncer acept"),
        ("stranger", "/bouncer accept\n/bouncer help"),
    ):
        shop.slowly.comment(home, number, body, author)
    bounce, helped, hinted, refused = shop.comments_on(home, number)
    assert "a maintainer will probably need" in bounce
    assert helped.startswith("alice: Commands")
    assert hinted.startswith("mia: I don't know that command. Did you mean `/bouncer accept`?")
    assert "- `/bouncer accept`: this issue is fine" in refused, "the same comment asked for help"
    assert "Only people with triage permission in this repository can use `/bouncer accept`." in refused
    for _ in range(12):
        shop.github.comment(home, number, "/bouncer accept", "stranger")
    shop.quiet()
    assert len(shop.comments_on(home, number)) <= 12, "nobody can have a wall of answers written"


def test_a_recheck_that_cannot_be_done_is_answered(shop: Site, home: str) -> None:
    number = bounced(shop, home)
    shop.slowly.comment(home, number, "/bouncer pause", "mia")
    promise = "Edit the issue or reply below and I'll read it again."
    assert promise not in read(shop, home, number)
    assert "A maintainer paused me here, so I won't read this again for now." in read(shop, home, number)
    asking = shop.slowly.comment(home, number, "/bouncer recheck", "alice")
    assert shop.comments_on(home, number)[1].startswith("alice: A maintainer paused me here.")
    assert reactions(shop, home, asking) == ["confused"]
    before = len(shop.decided(home, number, "triage"))
    shop.slowly.comment(home, number, "/bouncer recheck", "mia")
    assert [decision.verdict for decision in shop.decided(home, number, "triage")][before:] == ["VAGUE"]
    assert promise not in shop.comments_on(home, number)[0], "still paused"
    shop.slowly.comment(home, number, "/bouncer resume", "mia")
    assert promise in shop.comments_on(home, number)[0]
    shop.github.close(home, number, by="mia")
    asking = shop.slowly.comment(home, number, "/bouncer recheck", "mia")
    assert shop.comments_on(home, number)[-1].startswith("mia: I can't read this again: the issue is closed.")
    assert reactions(shop, home, asking) == ["confused"]


def reactions(shop: Site, home: str, comment: int) -> list[str]:
    stored_comment = shop.github.world.repositories[home].comment(comment)
    assert stored_comment is not None
    return [reaction.content for reaction in stored_comment.reactions if reaction.user.login == BOUNCER]


def test_auto_asks_in_the_language_of_the_issue(shop: Site, repository: Repository) -> None:
    home = repository(**{".github/bouncer.yml": "triage:\n  language: auto\n"})
    shop.model.misbehave("Kaputte Datei", completion(json.dumps(GERMAN)))
    number = shop.slowly.open_issue(home, "Kaputte Datei", "Es geht nicht mehr.")
    (body,) = shop.comments_on(home, number)
    assert body.startswith(
        "Thanks for the report. To work on this, a maintainer will probably need:\n- Welche Version ist das?\n\n"
    )
    assert "Es ist nicht klar, was passiert." in body
    (question,) = shop.model.about("Kaputte Datei", "TranslatedReply")
    assert question.purpose == "TranslatedReply"
    shop.slowly.comment(home, number, "/bouncer accept, ist bekannt", "mia")
    assert shop.comments_on(home, number)[0].startswith("Accepted as is by mia: ist bekannt.\n")


def test_answers_before_a_late_first_verdict_are_read(shop: Site, home: str) -> None:
    shop.model.misbehave("late verdict", failure(503))
    number = shop.github.open_issue(home, "late verdict", VAGUE[1])
    shop.slowly.comment(home, number, "It is version 4.2, on an empty file.", "alice")
    assert (shop.comments_on(home, number), shop.github.labels(home, number)) == ([], [])


def test_answers_are_read_again_after_a_transfer(shop: Site, home: str, repository: Repository) -> None:
    number, other = bounced(shop, home), repository()
    shop.slowly.comment(home, number, "It is version 4.2, on an empty file.", "alice")
    moved = shop.slowly.transfer(home, number, other, by="mia")
    assert (read(shop, other, moved), shop.github.labels(other, moved)) == (CLEARED, [])
