"""The life of a pull request, from the first push to the merge, as its author and the maintainers see it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.bot.pipeline.rig import wait
from tests.e2e.provider import DEFECTS
from tests.e2e.site import APP, BASE, BROKEN, CLEAR, FIXED, WORSE, Repository, Site

CHECK = "bouncer / verify"

FINDING = """Fails for an empty file. `parse` returns None then.

Severity: high. *AI review, may be wrong.*

```suggestion
        return data.value if data else None
```

<!-- bouncer:review:v1 PRINT -->"""
SUMMARY = """### #1: Probably doesn't solve it

Missing:
- Empty files still fail.

<details><summary>Why: INCORRECT (88% likely to fall short)</summary>

The empty file still fails.

</details>

*An AI model's opinion; it may be wrong.*

<details><summary>Model and cost</summary>

`openai:gpt-5-mini`: 1 call, 200 + 50 tokens, 0.0001 USD

</details>"""


@pytest.fixture
def home(shop: Site, repository: Repository) -> str:
    """A repository with one clear issue, number 1."""
    name = repository()
    shop.github.open_issue(name, *CLEAR)
    return name


def opened(shop: Site, home: str, content: str = BROKEN, **values: object) -> int:
    """A pull request that says it closes issue 1."""
    fields = {"body": "Fixes #1", "closes": [1], **values}
    return shop.slowly.open_pull(home, "Read values", files={APP: content}, **fields)  # type: ignore[arg-type]


def check(shop: Site, home: str, number: int) -> tuple[str | None, str]:
    """(conclusion, title) of the one check on the head."""
    (run,) = shop.checks(home, shop.head(home, number))
    assert (run.name, run.status) == (CHECK, "completed")
    return run.conclusion, run.output["title"]


def lines(shop: Site, home: str, number: int) -> list[tuple[str, int | None]]:
    return [(comment.body.split(".")[0], comment.line) for comment in shop.inline(home, number)]


def test_a_patch_that_falls_short_gets_a_neutral_check_and_a_review(shop: Site, home: str) -> None:
    number = opened(shop, home)
    assert check(shop, home, number) == ("neutral", "Probably doesn't solve #1")
    (run,) = shop.checks(home, shop.head(home, number))
    assert run.output["summary"] == SUMMARY
    (comment,) = shop.inline(home, number)
    assert re.sub(r"v1 [0-9a-f]{16}", "v1 PRINT", comment.body) == FINDING
    assert (comment.path, comment.line, comment.side) == (APP, 4, "RIGHT")
    (review,) = shop.reviews(home, number)
    assert (review.state, review.commit_id) == ("COMMENTED", shop.head(home, number))
    assert review.body.startswith(f"AI review of {review.commit_id[:7]}: 1 possible defect. Reply")
    assert shop.comments_on(home, number) == [], "no summary where nothing needs saying"


def test_a_push_gets_a_check_of_its_own_and_only_what_is_new(shop: Site, home: str) -> None:
    number = opened(shop, home)
    first = shop.head(home, number)
    shop.slowly.push(home, number, {APP: WORSE})
    assert [text for text, _ in lines(shop, home, number)] == ["Fails for an empty file", "Grows without end"]
    assert lines(shop, home, number)[1] == ("Grows without end", 8)
    assert [review.commit_id for review in shop.reviews(home, number)] == [first, shop.head(home, number)]
    shop.slowly.push(home, number, {APP: FIXED})
    assert check(shop, home, number)[0] == "success"
    assert len(shop.reviews(home, number)) == 2
    (summary,) = shop.comments_on(home, number)
    assert "No longer in the change:\n- `src/app.py`: Fails for an empty file\n" in summary
    assert "- `src/app.py`: Grows without end" in summary
    assert [comment.minimized for comment in shop.inline(home, number)] == ["OUTDATED", "OUTDATED"]
    assert len(shop.github.checks(home, CHECK)) == 3


def test_a_dismissed_finding_stays_away(shop: Site, home: str) -> None:
    number = opened(shop, home)
    (finding,) = shop.inline(home, number)
    shop.slowly.reply(home, finding.id, "/bouncer dismiss, the caller checks", by="mia")
    _, note = shop.inline(home, number)
    assert note.in_reply_to == finding.id
    assert shop.inline(home, number)[0].minimized == "RESOLVED"
    assert note.body.startswith("Dismissed by mia: the caller checks. I won't post it here again.")
    assert shop.comments_on(home, number) == []
    shop.slowly.push(home, number, {APP: f"# More.\n{BROKEN}"})
    assert len(shop.inline(home, number)) == 2
    assert shop.decided(home, number, "review")[-1].record.counts["suppressed:dismissed"] == 1
    (row,) = [rate for rate in shop.ledger.signals.rates(home) if rate.category == "data"]
    assert (row.dismissed, row.total) == (1, 1)


def test_re_run_judges_again_and_edits_the_check_in_place(shop: Site, home: str) -> None:
    number = opened(shop, home)
    (run,) = shop.checks(home, shop.head(home, number))
    before = len(shop.model.about("With version 4.2", "OutputReply"))
    shop.github.edit(home, 1, body="With version 4.2 `load` fails where there is `if data`, on an empty file.")
    shop.slowly.rerequest(home, run.id, by="mia")
    assert len(shop.model.about("With version 4.2", "OutputReply")) == before + 1
    assert [item.id for item in shop.checks(home, shop.head(home, number))] == [run.id]
    assert check(shop, home, number)[0] == "success"
    assert len(shop.reviews(home, number)) == 1, "the commit has its review"


def test_the_check_of_a_head_settles_when_its_worse_pull_request_closes(
    shop: Site, repository: Repository
) -> None:
    file = "verify: {gate: true}\ngate: {mode: check, exempt_lines: 0}\n"
    home = repository(**{".github/bouncer.yml": file})
    unsolved = shop.github.open_issue(home, *CLEAR)
    solved = shop.github.open_issue(home, "Empty", "With version 4.2 it fails at `if data`.", labels=["ready"])
    shop.github.commit(home, {APP: BASE}, branch="stable")
    worse = shop.slowly.open_pull(home, "Read values", files={APP: BROKEN}, author="zoe", closes=[unsolved])
    with shop.github.world.lock:
        place, author = shop.github.world.repositories[home], shop.github.world.user("alice")
        pull = shop.pull(home, worse)
        same_head = replace(pull, base_ref="stable", closes=[(home, solved)], comments=[], reviews=[])
        title = "Read values"
        number = shop.github._operations.open_issue(place, title, "", author, pull=same_head).number

    def checks() -> dict[str, str | None]:
        shop.quiet()
        return {run.name: run.conclusion for run in shop.checks(home, shop.head(home, number))}

    assert checks() == {CHECK: "failure", "bouncer / ready": "failure"}
    shop.github.close(home, worse)
    assert checks() == {CHECK: "success", "bouncer / ready": "success"}


def test_a_draft_waits_until_it_is_ready(shop: Site, home: str) -> None:
    number = opened(shop, home, draft=True)
    assert check(shop, home, number) == ("skipped", "Not judged: it is a draft")
    assert shop.inline(home, number) == []
    shop.slowly.ready(home, number)
    assert check(shop, home, number) == ("neutral", "Probably doesn't solve #1")
    assert lines(shop, home, number) == [("Fails for an empty file", 4)]


@pytest.mark.parametrize(
    ("change", "word"),
    [("close", "skipped:closed"), ("lock", "skipped:locked"), ("make_draft", "skipped:draft")],
)
def test_a_pull_request_that_ends_during_its_review_is_left_alone(
    shop: Site, home: str, change: str, word: str
) -> None:
    title = f"{change} meanwhile"
    shop.model.misbehave(title, lambda _: getattr(shop.github, change)(home, 2, by="mia"))
    shop.slowly.open_pull(home, title, files={APP: BROKEN})
    assert (shop.reviews(home, 2), shop.github.checks(home, "bouncer / review")) == ([], [])
    assert [decision.abstained for decision in shop.decided(home, 2, "review")] == [word]


def test_a_locked_pull_request_is_left_alone_and_its_commands_are_heard(shop: Site, home: str) -> None:
    number = opened(shop, home, draft=True)
    shop.github.lock(home, number, by="mia")
    before = len(shop.model.asked)
    shop.github.ready(home, number)
    for word in ("review", "why", "help", "pause"):
        shop.github.comment(home, number, f"/bouncer {word}", "mia")
    shop.quiet()
    assert len(shop.model.asked) == before
    assert check(shop, home, number) == ("skipped", "Not judged: the pull request is locked")
    for task in ("review", "why"):
        assert {decision.abstained for decision in shop.decided(home, number, task)[-2:]} == {"skipped:locked"}
    assert shop.comments_on(home, number) == []
    assert shop.decided(home, number, "commands")[-1].record.done == ("pause",)
    assert not [job for job in shop.jobs.list(("dead",)) if job.number == number and job.repository == home]


def test_a_lost_answer_about_a_superseded_check_makes_no_second_one(shop: Site, home: str) -> None:
    shop.github.fail("lost", "POST", f"/repos/{home}/check-runs$")
    number = shop.github.open_pull(home, "Read values", "Fixes #1", files={APP: FIXED}, closes=[1])
    wait(lambda: shop.checks(home), 30, "the check stands")
    shop.slowly.edit(home, number, body="Fixes #1, really")
    assert check(shop, home, number)[0] == "success"


def test_commands_on_a_pull_request(shop: Site, home: str) -> None:
    number = opened(shop, home, FIXED)
    shop.slowly.comment(home, number, "/bouncer review", "mia")
    (answer,) = shop.comments_on(home, number)
    assert answer.startswith(
        f"**AI review of {shop.head(home, number)[:7]}**: no defects found. `openai:gpt-5-mini`"
    )
    shop.slowly.comment(home, number, "/bouncer pause", "mia")
    shop.slowly.push(home, number, {APP: BROKEN})
    assert shop.inline(home, number) == []
    assert check(shop, home, number) == ("skipped", "Not judged: paused by a maintainer")
    shop.slowly.comment(home, number, "/bouncer verify", "mia")
    assert check(shop, home, number) == ("neutral", "Probably doesn't solve #1")


def test_what_people_made_of_it_is_recorded_when_it_ends(shop: Site, home: str) -> None:
    number = opened(shop, home, WORSE)
    first, second = shop.inline(home, number)
    shop.github.resolve(home, first.id, by="alice")
    shop.slowly.react(home, second.id, "-1", by="mia")
    shop.slowly.merge(home, number, by="mia")
    signs = {
        (sign.category, sign.outcome, sign.source)
        for decision in shop.decided(home, number, "feedback")
        for sign in decision.record.signals
    }
    categories = {text: item["category"] for text, item in DEFECTS.items()}
    assert signs == {
        (categories["return data.value"], "addressed", "resolved"),
        (categories["cache[path] = data"], "dismissed", "reaction"),
    }
    assert len(shop.reviews(home, number)) == 1


def test_the_dashboard_shows_what_was_decided_and_why(shop: Site, home: str) -> None:
    number = opened(shop, home)
    page = shop.browser()
    listing = page.get(f"/decisions?repository={home}&came=bounced&kind=verify")
    assert f"{home}#{number}" in listing
    match = re.search(rf'/decisions/(\d+)">{home}#{number}', listing)
    assert match
    whole = page.get(f"/decisions/{match[1]}")
    for words in ("INCORRECT", "Read values", "Empty files still fail.", "gpt-5-mini", "200 + 50", f"{home}#"):
        assert words in whole
    assert "Check bouncer / verify: neutral" in whole
    assert home in page.get(f"/?repository={home}")
    assert home in page.get("/costs")
    job = shop.jobs.list(("done",), home)[0]
    assert job.id in page.get(f"/jobs?repository={home}")
    metrics = page.get("/metrics")
    assert 'bouncer_decisions_total{abstained="",kind="verify",verdict="INCORRECT"}' in metrics


def test_the_base_file_holds_no_defect() -> None:
    """The words that the provider knows stand in no file that it is not meant to find them in."""
    assert not any(f"{code}\n" in BASE + FIXED for code in DEFECTS)
