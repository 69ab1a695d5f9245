"""``gate``: a pull request needs an issue that is ready, in real processes on the simulated GitHub."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.simgithub.state import CheckRunState
from tests.bot.pipeline.rig import wait
from tests.e2e.site import APP, BASE, CLEAR, VAGUE, Repository, Site

GATE = ".github/bouncer.yml"
LARGE = BASE + "".join(f"\n\ndef f{number}():\n    return {number}\n" for number in range(10))
QUIET = "triage: {mode: 'off'}\nverify: {mode: 'off'}\nreview: {mode: 'off'}\n"


@pytest.fixture
def home(repository: Repository) -> Callable[[str], str]:
    def make(gate: str, rest: str = QUIET) -> str:
        return repository(**{GATE: f"{rest}gate: {gate}\n", APP: BASE})

    return make


def opened(shop: Site, home: str, *issues: int, author: str = "alice", text: str = LARGE, body: str = "") -> int:
    return shop.github.open_pull(home, "Read values", body, author, files={APP: text}, closes=issues, fork=True)


def check(shop: Site, home: str, number: int) -> CheckRunState:
    shop.quiet()
    runs = [run for run in shop.checks(home, shop.head(home, number)) if run.name == "bouncer / ready"]
    assert len(runs) == 1
    return runs[0]


def answer(shop: Site, home: str, number: int) -> tuple[str | None, str]:
    run = check(shop, home, number)
    return run.conclusion, run.output["title"]


def is_draft(shop: Site, home: str, number: int) -> bool:
    return shop.pull(home, number).draft


def test_a_label_a_milestone_an_assignee_or_accept_makes_ready(shop: Site, home: Callable[[str], str]) -> None:
    place = home("{mode: check}")
    issues = [shop.github.open_issue(place, f"Issue {number}", author="carol") for number in range(5)]
    pulls = [opened(shop, place, issue, author=f"author{issue}") for issue in issues]
    for issue, pull in zip(issues, pulls, strict=True):
        assert answer(shop, place, pull) == ("failure", f"Not ready: #{issue} is not marked as ready for work")
    shop.github.label(place, issues[0], "ready", by="mia")
    shop.github.milestone(place, issues[1], "1.0", by="mia")
    shop.github.assign(place, issues[2], "carol", by="mia")
    shop.github.comment(place, issues[3], "/bouncer accept", "mia")
    shop.github.label(place, issues[4], "bug", by="mia")
    shop.github.comment(place, issues[4], "/bouncer accept", "carol")
    for issue, pull in list(zip(issues, pulls, strict=True))[:4]:
        assert answer(shop, place, pull) == ("success", f"#{issue} is ready for work")
    assert answer(shop, place, pulls[4])[0] == "failure"
    shop.github.unlabel(place, issues[0], "ready", by="mia")
    assert answer(shop, place, pulls[0])[0] == "failure"
    shop.github.close(place, issues[1], by="mia")
    assert answer(shop, place, pulls[1]) == ("failure", f"Not ready: #{issues[1]} is closed")
    assert [shop.comments_on(place, pull) for pull in pulls] == [[]] * 5
    assert not any(is_draft(shop, place, pull) for pull in pulls)


def test_re_run_is_for_the_pull_request_whose_head_it_is(shop: Site, home: Callable[[str], str]) -> None:
    place = home("{mode: check}")
    lower = opened(shop, place)
    with shop.github.world.lock:
        pull = shop.pull(place, lower)
        assert pull.head_repository is not None
        fork, alice = shop.github.world.repositories[pull.head_repository], shop.github.world.user("alice")
        fork.branches["more"] = first = pull.head_sha
        operations = shop.github._operations
        more = operations.push(fork, "more", {APP: (LARGE * 2).encode()}, alice)
        upper = replace(pull, head_ref="more", head_sha=more, comments=[], reviews=[])
        place_state = shop.github.world.repositories[place]
        number = operations.open_issue(place_state, "More", "", alice, pull=upper).number
    shop.quiet()
    # The first pull request gets both commits, the second one goes back to one of them.
    with shop.github.world.lock:
        pull.head_ref, upper.head_ref = "more", pull.head_ref
        pull.head_sha, upper.head_sha = more, first
    run = check(shop, place, number)
    before = [len(shop.decided(place, item, "gate")) for item in (lower, number)]
    shop.slowly.rerequest(place, run.id, by="mia")
    assert [len(shop.decided(place, item, "gate")) for item in (lower, number)] == [before[0], before[1] + 1]


def test_an_issue_that_is_deleted_or_transferred_counts_no_more(shop: Site, home: Callable[[str], str]) -> None:
    place, other = home("{mode: check}"), home("{mode: 'off'}")
    issues = [shop.github.open_issue(place, "It breaks", labels=["ready"]) for _ in range(2)]
    pulls = [opened(shop, place, issue, author=f"author{issue}", body=f"Fixes #{issue}") for issue in issues]
    for issue, pull in zip(issues, pulls, strict=True):
        assert answer(shop, place, pull) == ("success", f"#{issue} is ready for work")
    shop.github.delete(place, issues[0], by="mia")
    shop.github.transfer(place, issues[1], other, by="mia")
    for issue, pull in zip(issues, pulls, strict=True):
        assert answer(shop, place, pull) == ("failure", f"Not ready: `#{issue}` cannot be found")


def test_the_earlier_pull_request_for_an_issue_is_named(shop: Site, home: Callable[[str], str]) -> None:
    place = home("{mode: check}")
    issue = shop.github.open_issue(place, "It breaks", labels=["ready"])
    first, second = opened(shop, place, issue), opened(shop, place, issue, author="bob")
    assert answer(shop, place, first) == ("success", f"#{issue} is ready for work")
    assert answer(shop, place, second) == ("failure", f"Not ready: #{first} was opened earlier for #{issue}")
    shop.github.close(place, first)
    assert answer(shop, place, second) == ("success", f"#{issue} is ready for work")
    shop.github.reopen(place, first)
    assert answer(shop, place, second)[0] == "failure"


def test_a_pull_request_is_a_draft_until_its_issue_is_ready(shop: Site, home: Callable[[str], str]) -> None:
    place = home("{mode: draft}")
    issue = shop.github.open_issue(place, "It breaks")
    number, other = opened(shop, place, issue), opened(shop, place)
    assert answer(shop, place, number)[0] == "failure"
    assert is_draft(shop, place, number)
    (comment,) = shop.comments_on(place, number)
    assert comment.startswith(
        "Thanks for the pull request. Here it needs an issue that is ready for work, so I made"
    )
    assert f"- #{issue} is not marked as ready for work." in comment
    shop.slowly.push(place, number, {APP: LARGE + "\n\nX = 1\n"})
    assert shop.comments_on(place, number) == [comment]
    shop.github.label(place, issue, "ready", by="mia")
    assert answer(shop, place, number) == ("success", f"#{issue} is ready for work")
    assert not is_draft(shop, place, number)
    (comment,) = shop.comments_on(place, number)
    assert comment.startswith(f"#{issue} is ready for work, so this pull request is ready for review again.")

    assert answer(shop, place, other) == ("failure", "Not ready: no issue is linked")
    assert is_draft(shop, place, other)
    shop.github.ready(place, other, by="alice")
    shop.github.push(place, other, {APP: LARGE + "\n\nY = 1\n"})
    assert answer(shop, place, other)[0] == "failure"
    assert not is_draft(shop, place, other), "a person decided"
    assert shop.github.find(place, other).state == "open"
    assert len(shop.comments_on(place, other)) == 1


@pytest.mark.parametrize("mode", ["off", "shadow", "check"])
def test_drafts_return_after_the_gate_was_switched_off(shop: Site, home: Callable[[str], str], mode: str) -> None:
    place = home("{mode: draft}")
    number, own = opened(shop, place), opened(shop, place, author="bob")
    shop.quiet()
    shop.slowly.ready(place, own, by="bob")
    assert [is_draft(shop, place, pull) for pull in (number, own)] == [True, False]
    shop.slowly.commit(place, {GATE: f"{QUIET}gate: {{mode: '{mode}'}}\n"})
    for line in ("\n\nX = 1\n", "\n\nX = 2\n"):
        for pull in (number, own):
            shop.github.push(place, pull, {APP: LARGE + line})
        shop.quiet()
        assert not is_draft(shop, place, number)
        (comment,) = shop.comments_on(place, number)
        assert comment.startswith("Pull requests are no longer made drafts here, so this one is ready")
        (comment,) = shop.comments_on(place, own)
        assert comment.startswith("Thanks for the pull request.")
        if mode == "check":
            assert answer(shop, place, number) == ("failure", "Not ready: no issue is linked")
    assert not shop.jobs.list(("dead",), place)


def test_a_recheck_before_the_conversion_is_written_decides_nothing(
    shop: Site, home: Callable[[str], str]
) -> None:
    place = home("{mode: draft}")
    issue = shop.github.open_issue(place, "It breaks")
    shop.github.fail("bad_gateway", "POST", rf"/repos/{place}/check-runs", times=2)
    number = opened(shop, place, issue)
    wait(lambda: shop.decided(place, number, "gate"), 30, "decided, and not written yet")
    shop.github.comment(place, number, "/bouncer recheck", "mia")
    shop.quiet(meanwhile=shop.hasten)
    assert answer(shop, place, number)[0] == "failure"
    assert is_draft(shop, place, number)
    shop.github.label(place, issue, "ready", by="mia")
    assert answer(shop, place, number)[0] == "success"
    assert not is_draft(shop, place, number)


def test_a_draft_of_the_author_stays_a_draft(shop: Site, home: Callable[[str], str]) -> None:
    place = home("{mode: draft}")
    issue = shop.github.open_issue(place, "It breaks")
    number = shop.github.open_pull(place, "Read", files={APP: LARGE}, closes=[issue], draft=True)
    assert answer(shop, place, number)[0] == "failure"
    shop.github.label(place, issue, "ready", by="mia")
    assert answer(shop, place, number)[0] == "success"
    assert (is_draft(shop, place, number), shop.comments_on(place, number)) == (True, [])


@pytest.mark.parametrize(
    ("gate", "author", "files", "title"),
    [
        ("{mode: draft}", "mia", {APP: LARGE}, "its author belongs to the project"),
        ("{mode: draft}", "helper[bot]", {APP: LARGE}, "its author is a bot"),
        ("{mode: draft}", "bob", {APP: BASE + "\nX = 1\n"}, "it changes 2 lines"),
        (
            "{mode: draft}",
            "bob",
            {"docs/a.txt": LARGE, "NEWS.rst": LARGE},
            "it changes only files in gate.exempt_p",
        ),
        ("{mode: draft, exempt_paths: [src/]}", "bob", {APP: LARGE}, "it changes only files in gate.exempt_paths"),
    ],
)
def test_exempt_pull_requests_need_no_issue(
    shop: Site, home: Callable[[str], str], gate: str, author: str, files: dict[str, str], title: str
) -> None:
    place = home(gate)
    number = shop.github.open_pull(place, "Change", "", author, files=files)
    conclusion, sentence = answer(shop, place, number)
    assert conclusion == "skipped"
    assert sentence.startswith(f"No issue needed: {title}")
    assert not is_draft(shop, place, number)


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        (
            "{mode: draft, known_authors: true}",
            ("skipped", "No issue needed: its author has a merged pull request"),
        ),
        ("{mode: draft}", ("failure", "Not ready: no issue is linked")),
    ],
)
def test_known_authors_need_no_issue_if_the_repository_says_so(
    shop: Site, home: Callable[[str], str], gate: str, expected: tuple[str, str]
) -> None:
    place = home(gate)
    merged, closed = (opened(shop, place, author=author) for author in ("alice", "bob"))
    shop.github.merge(place, merged, by="mia")
    shop.github.close(place, closed)
    contributor, stranger = (opened(shop, place, author=author, text=LARGE * 2) for author in ("alice", "bob"))
    assert answer(shop, place, contributor) == expected
    assert answer(shop, place, stranger) == ("failure", "Not ready: no issue is linked")
    assert is_draft(shop, place, contributor) == (expected[0] == "failure")
    assert is_draft(shop, place, stranger)


def test_a_bounced_issue_is_not_ready_until_it_is_clear(shop: Site, home: Callable[..., str]) -> None:
    place = home("{mode: check, trust_triage: true}", "verify: {mode: 'off'}\nreview: {mode: 'off'}\n")
    bounced = shop.github.open_issue(place, *VAGUE, labels=["ready"])
    clear = shop.slowly.open_issue(place, *CLEAR)
    first, second = opened(shop, place, bounced), opened(shop, place, clear)
    missing = f"Not ready: #{bounced} still lacks details that its author was asked for"
    assert answer(shop, place, first) == ("failure", missing)
    assert answer(shop, place, second) == ("success", f"#{clear} is ready for work")
    shop.github.comment(place, bounced, "It is version 4.2, on an empty file.")
    assert answer(shop, place, first) == ("success", f"#{bounced} is ready for work")


def test_an_issue_of_another_repository_counts_where_the_app_is(shop: Site, home: Callable[[str], str]) -> None:
    place, tracker = home("{mode: check}"), home("{mode: 'off'}")
    secret = home("{mode: 'off'}")
    shop.github.world.repositories[secret].private = True
    issues = {name: shop.github.open_issue(name, "It breaks", labels=["ready"]) for name in (tracker, secret)}
    name = f"{tracker}#{issues[tracker]}"
    number = opened(shop, place, body=f"Fixes {name}")
    hidden = opened(shop, place, body=f"Fixes {secret}#{issues[secret]}")
    missing = opened(shop, place, body="Fixes other/place#1")
    assert answer(shop, place, number) == ("success", f"{name} is ready for work")
    second = opened(shop, place, body=f"Fixes {name}", author="bob")
    assert answer(shop, place, second) == ("failure", f"Not ready: #{number} was opened earlier for {name}")
    shop.github.close(place, number)
    assert answer(shop, place, second) == ("success", f"{name} is ready for work")
    assert answer(shop, place, hidden) == ("failure", f"Not ready: `{secret}#{issues[secret]}` cannot be found")
    assert answer(shop, place, missing) == ("failure", "Not ready: `other/place#1` cannot be found")


def test_a_link_that_is_edited_in_counts(shop: Site, home: Callable[[str], str]) -> None:
    place = home("{mode: check}")
    issue = shop.github.open_issue(place, "It breaks", labels=["ready"])
    number = opened(shop, place)
    assert answer(shop, place, number) == ("failure", "Not ready: no issue is linked")
    shop.github.edit(place, number, body=f"Fixes #{issue}")
    assert answer(shop, place, number) == ("success", f"#{issue} is ready for work")


def test_only_pull_requests_that_link_the_issue_are_evaluated(shop: Site, home: Callable[[str], str]) -> None:
    place = home("{mode: check}")
    issue, other = (shop.github.open_issue(place, "It breaks") for _ in range(2))
    opened(shop, place, issue), opened(shop, place, other)
    shop.quiet()
    before = len(shop.github.requests)
    shop.slowly.label(place, issue, "ready", by="mia")
    requests = [request for request in list(shop.github.requests)[before:] if "access_tokens" not in request.path]
    assert [(request.method, request.path.partition(place)[2] or request.path) for request in requests] == [
        ("POST", "/graphql"),
        ("POST", "/graphql"),
        ("PATCH", requests[-1].path.partition(place)[2]),
    ]
    before = len(shop.github.requests)
    shop.github.open_issue(place, "Nobody links it", labels=["ready"])
    shop.slowly.label(place, other, "bug", by="mia")
    assert not any(request.path == "/graphql" for request in list(shop.github.requests)[before:])


def test_it_is_off_by_default_and_silent_in_shadow_mode(shop: Site, repository: Repository) -> None:
    place, shadow = repository(**{APP: BASE}), repository(**{GATE: "gate: {mode: shadow}\n", APP: BASE})
    for name in (place, shadow):
        opened(shop, name)
    shop.quiet()
    names = [run.name for name in (place, shadow) for run in shop.github.checks(name)]
    assert "bouncer / ready" not in names
    assert shop.decided(place, 1, "gate") == ()
    (decision,) = shop.decided(shadow, 1, "gate")
    assert (decision.verdict, len(decision.withheld)) == ("not ready", 1)


def test_without_the_permission_it_stays_a_check(shop: Site, home: Callable[[str], str]) -> None:
    place = home("{mode: draft}")
    (installation,) = shop.github.world.installed(shop.github.world.repositories[place])
    installation.permissions = {**installation.permissions, "contents": "read"}
    number = opened(shop, place)
    assert answer(shop, place, number)[0] == "failure"
    assert (is_draft(shop, place, number), shop.comments_on(place, number)) == (False, [])


def test_a_recheck_finds_a_link_that_github_did_not_announce(shop: Site, home: Callable[[str], str]) -> None:
    place = home("{mode: check}")
    issue = shop.github.open_issue(place, *CLEAR, labels=["ready"])
    number = opened(shop, place)
    assert answer(shop, place, number)[0] == "failure"
    shop.pull(place, number).closes = [(place, issue)]
    shop.github.comment(place, number, "/bouncer recheck", "mia")
    assert answer(shop, place, number)[0] == "success"
    assert shop.comments_on(place, number) == []


def test_a_re_run_writes_the_check_again_if_nothing_changed(shop: Site, home: Callable[[str], str]) -> None:
    place = home("{mode: check}")
    run = check(shop, place, opened(shop, place))
    before = len(shop.github.requests)
    shop.slowly.rerequest(place, run.id, by="mia")
    writes = [request.path for request in shop.github.requests[before:] if request.method == "PATCH"]
    assert writes == [f"/repos/{place}/check-runs/{run.id}"]
