"""From raw bytes to an event: real payloads of GitHub, incomplete ones, and wrong ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.core import events
from bot.core.errors import InvalidSignature, MalformedDelivery
from bot.core.events import from_json
from bot.github.webhook import load, parse, sign, verify
from tests import deliveries

PAYLOADS = Path(__file__).parents[2] / "payloads"
EXAMPLES = sorted(PAYLOADS.glob("*/*.json"))

#: Our event for GitHub's event and action; all other actions are ignored.
MEANING = {
    "issues/opened": "issue_opened",
    "issues/reopened": "issue_reopened",
    "issues/labeled": "issue_labeled",
    "issues/unlabeled": "issue_unlabeled",
    "issues/deleted": "issue_removed",
    "issues/transferred": "issue_removed",
    "issue_comment/created": "comment_created",
    "issue_comment/edited": "comment_edited",
    "issue_comment/deleted": "comment_deleted",
    "pull_request/opened": "pull_request_opened",
    "pull_request/synchronize": "pull_request_synchronized",
    "pull_request/reopened": "pull_request_reopened",
    "pull_request/ready_for_review": "pull_request_readied",
    "pull_request/closed": "pull_request_closed",
    "pull_request_review_comment/created": "review_comment_created",
    "pull_request_review_comment/edited": "review_comment_edited",
    "pull_request_review_comment/deleted": "review_comment_deleted",
    "pull_request_review_thread/resolved": "review_thread_resolved",
    "check_run/rerequested": "check_rerequested",
    "check_suite/rerequested": "check_rerequested",
    "ping/ping": "pinged",
    **dict.fromkeys(
        ("issues/assigned", "issues/unassigned", "issues/milestoned", "issues/demilestoned"), "issue_planned"
    ),
}


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name.partition('.')[0]}"


def payload_of(path: Path) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return payload


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_real_payload_is_parsed_or_ignored(path: Path) -> None:
    event = parse(path.parent.name, payload_of(path))
    expected = MEANING.get(name_of(path))
    if path.parent.name.startswith("installation"):
        expected = f"{path.parent.name}_changed"
    assert (event.kind if event else None) == expected
    if event is not None:
        assert from_json(event.model_dump_json()) == event


def test_only_edits_of_title_body_and_base_are_events() -> None:
    assert parse("an event of another name", {}) is None
    assert deliveries.issue("edited", changes={"title": {"from": "old"}}).parsed().kind == "issue_edited"
    untouched = deliveries.issue("edited", changes={})
    assert parse(untouched.event, untouched.payload) is None
    assert deliveries.pull_request("edited", changes={"base": {}}).parsed().kind == "pull_request_edited"
    renamed = deliveries.pull_request("edited", changes={"maintainer_can_modify": {}})
    assert parse(renamed.event, renamed.payload) is None


def test_an_issue_event_has_the_text_and_the_sender() -> None:
    event = deliveries.issue(title="T", body="B", number=5, author="alice", sender="bob", labels=["x"]).parsed()
    assert isinstance(event, events.IssueOpened)
    assert (event.issue.title, event.issue.body, event.issue.labels) == ("T", "B", ("x",))
    assert (event.issue.author.login, event.sender.login, event.installation) == ("alice", "bob", 7)
    assert (event.subject.key, event.subject.revision) == ("octo/demo#5", event.issue.revision)


def test_comments_on_pull_requests_and_issues_are_distinguished() -> None:
    on_issue, on_pull = deliveries.comment("a"), deliveries.comment("a", on=deliveries.pull_request())
    assert isinstance(first := on_issue.parsed(), events.CommentCreated)
    assert isinstance(second := on_pull.parsed(), events.CommentCreated)
    assert (first.issue.is_pull_request, second.issue.is_pull_request) == (False, True)


def test_a_check_of_a_fork_names_no_pull_request() -> None:
    own, fork = deliveries.check_rerequested().parsed(), deliveries.check_rerequested(fork=True).parsed()
    assert isinstance(own, events.CheckRerequested)
    assert isinstance(fork, events.CheckRerequested)
    assert (own.numbers, fork.numbers) == ((13,), ())
    assert own.head_sha == fork.head_sha == deliveries.HEAD


def test_built_deliveries_parse_like_real_ones() -> None:
    """Every field that is read has the same place and type in a built payload as in a real one."""
    for delivery in (deliveries.issue(), deliveries.comment("x"), deliveries.pull_request()):
        real = payload_of(next((PAYLOADS / delivery.event).glob(f"{delivery.payload['action']}.github.json")))
        missing = {path for path, _ in paths(delivery.payload) if not reaches(real, path)}
        # New fields, which the example does not have.
        assert {path[-1] for path in missing} <= {
            "installation", "id", "node_id", "state_reason", "visibility", "disabled", "archived", "draft",
            "performed_via_github_app", "labels", "repo", "body", "default", "description", "color", "name", "url",
        }  # fmt: skip


# Missing fields


def paths(value: Any, depth: int = 3) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every path of a payload down to a depth, with its value."""
    if isinstance(value, dict) and depth:
        for key, below in value.items():
            yield (key,), below
            yield from (((key, *path), value) for path, value in paths(below, depth - 1))


def reaches(value: Any, path: tuple[str, ...]) -> bool:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def without(payload: dict[str, Any], path: tuple[str, ...], *replacement: Any) -> dict[str, Any]:
    """Return the payload without the field, or with another value in its place."""
    key, *rest = path
    if rest:
        return {**payload, key: without(payload[key], tuple(rest), *replacement)}
    copy = {name: value for name, value in payload.items() if name != key}
    return {**copy, key: replacement[0]} if replacement else copy


#: Required fields; all others may be missing or null.
ESSENTIAL = {
    "issues": {"issue", "issue.number", "repository", "repository.full_name"},
    "issue_comment": {
        "issue", "issue.number", "comment", "comment.id", "repository", "repository.full_name", "action",
    },
    "pull_request": {
        "pull_request", "pull_request.number", "pull_request.head", "pull_request.head.sha", "pull_request.base",
        "repository", "repository.full_name",
    },
    "pull_request_review_comment": {
        "pull_request", "pull_request.number", "pull_request.head", "pull_request.head.sha", "pull_request.base",
        "comment", "comment.id", "repository", "repository.full_name",
    },
    "pull_request_review_thread": {
        "pull_request", "pull_request.number", "pull_request.head", "pull_request.head.sha", "pull_request.base",
        "thread", "repository", "repository.full_name",
    },
    "check_run": {"check_run", "check_run.head_sha", "repository", "repository.full_name"},
    "check_suite": {"check_suite", "check_suite.head_sha", "repository", "repository.full_name"},
    "installation": {"installation"},
    "installation_repositories": {"installation"},
    "ping": set(),
}  # fmt: skip


def one_of_each_kind() -> list[Path]:
    examples = {name_of(path): path for path in reversed(EXAMPLES)}
    return [path for name, path in examples.items() if name in MEANING or name.startswith("installation")]


@pytest.mark.parametrize("path", one_of_each_kind(), ids=name_of)
def test_optional_fields_may_be_missing_or_null(path: Path) -> None:
    payload, event = payload_of(path), path.parent.name
    needed = set()
    for field, _ in paths(payload):
        for payload_without in (without(payload, field), without(payload, field, None)):
            try:
                parse(event, payload_without)
            except MalformedDelivery:
                needed.add(".".join(field))
    assert needed <= ESSENTIAL[event]


@pytest.mark.parametrize("path", one_of_each_kind(), ids=name_of)
@pytest.mark.parametrize("wrong", [[None], {}, "text", 1.5], ids=repr)
def test_a_field_of_a_wrong_type_is_tolerated_or_named(path: Path, wrong: Any) -> None:
    payload, event = payload_of(path), path.parent.name
    for field, _ in paths(payload):
        with suppress(MalformedDelivery):
            event_read = parse(event, without(payload, field, wrong))
            assert event_read is None or from_json(event_read.model_dump_json()) == event_read


# Signatures

SECRETS = st.text(min_size=1, max_size=40)


@given(body=st.binary(max_size=400), secret=SECRETS, other=SECRETS)
def test_the_signature_of_any_configured_secret_is_accepted(body: bytes, secret: str, other: str) -> None:
    verify(body, sign(body, secret), [other, secret])
    verify(body, sign(body, other), [other, secret])


@given(body=st.binary(max_size=400), secret=SECRETS, position=st.integers(0, 70), change=st.integers(1, 255))
def test_one_changed_character_of_body_or_signature_is_refused(
    body: bytes, secret: str, position: int, change: int
) -> None:
    signature = sign(body, secret)
    at = position % len(signature)
    bent = signature[:at] + chr(ord(signature[at]) ^ change) + signature[at + 1 :]
    # White space around a header's value is not part of it.
    if bent.strip() != signature:
        with pytest.raises(InvalidSignature):
            verify(body, bent, [secret])
    with pytest.raises(InvalidSignature):
        verify(body + b" ", signature, [secret])


@given(signature=st.none() | st.text(max_size=100), body=st.binary(max_size=50))
def test_no_signature_passes_without_the_secret(signature: str | None, body: bytes) -> None:
    for secrets in (["secret"], [], [""]):
        with pytest.raises(InvalidSignature):
            verify(body, signature, secrets)


def test_an_empty_secret_signs_nothing() -> None:
    with pytest.raises(InvalidSignature):
        verify(b"{}", sign(b"{}", ""), [""])


def test_a_missing_and_a_wrong_signature_are_distinguished() -> None:
    with pytest.raises(InvalidSignature, match="is missing"):
        verify(b"{}", None, ["secret"])
    with pytest.raises(InvalidSignature, match="does not match"):
        verify(b"{}", "sha256=00", ["secret"])


# Bodies

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


@given(st.dictionaries(st.text(max_size=9), st.none() | st.text(max_size=30) | st.integers(-(2**63), 2**63 - 1)))
def test_the_same_object_is_read_from_json_and_from_a_form(payload: dict[str, Any]) -> None:
    text = json.dumps(payload)
    assert load(text.encode(), JSON) == load(urlencode({"payload": text}).encode(), FORM)


@given(body=st.binary(max_size=200), kind=st.sampled_from([JSON, FORM, "text/plain", "", "application/json; x=y"]))
@example(body=b"[" * 100_000, kind=JSON)
@example(body=b'{"a":' * 100_000, kind=JSON)
@example(body=b'{"number": ' + b"9" * 100_000 + b"}", kind=JSON)
@example(body=b'{"number": 1e999999}', kind=JSON)
@example(body=b"payload=%ff", kind=FORM)
@example(body=b"&".join([b"a=b"] * 50), kind=FORM)
@example(body="payload={}&é".encode("latin-1"), kind=FORM)
def test_a_body_that_is_no_object_is_refused_in_one_line(body: bytes, kind: str) -> None:
    message = ""
    try:
        assert isinstance(load(body, kind), dict)
    except MalformedDelivery as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b"{}", "text/plain", "content type 'text/plain' is neither JSON nor a form"),
        (b"a=b", FORM, "the form has no field 'payload'"),
        (b"[]", JSON, "the body is not a JSON object"),
        (b"{", JSON, "the body is not JSON: Expecting property name"),
        (b'{"number": 99999999999999999999}', JSON, "the body is not JSON: a number is too large"),
    ],
)
def test_the_fault_of_a_body_is_named(body: bytes, kind: str, message: str) -> None:
    with pytest.raises(MalformedDelivery) as caught:
        load(body, kind)
    assert str(caught.value).startswith(message)


def test_half_a_surrogate_pair_or_a_nul_in_a_title_can_be_stored() -> None:
    delivery = deliveries.issue(title="a\ud800b\0c \U0001f600", body="\udfff")
    event = parse(delivery.event, load(delivery.body, JSON))
    assert isinstance(event, events.IssueOpened)
    assert (event.issue.title, event.issue.body) == ("a\ufffdb\ufffdc \U0001f600", "\ufffd")
    assert from_json(event.model_dump_json()) == event


@pytest.mark.parametrize(
    ("ref", "kind"), [("refs/heads/trunk", "branch_pushed"), ("refs/heads/main", None), ("refs/tags/trunk", None)]
)
def test_only_pushes_to_the_default_branch_are_events(ref: str, kind: str | None) -> None:
    repository = {"id": 1, "full_name": "octo/demo", "default_branch": "trunk"}
    payload = {"ref": ref, "repository": repository, "sender": {"id": 2, "login": "octo"}}
    event = parse("push", payload)
    assert (event and event.kind) == kind
    assert event is None or from_json(event.model_dump_json()) == event


@pytest.mark.parametrize(
    ("commits", "forced", "expected"),
    [
        ([{"added": [], "modified": ["a.py"], "removed": []}], False, False),
        ([{"modified": ["a.py"]}, {"added": [".github/bouncer.yml"]}], False, True),
        ([{"removed": [".github/bouncer.yml"]}], False, True),
        ([{"modified": ["a.py"]}], True, True),
        ([], False, True),
        ([{"modified": ["a.py"]}] * 2048, False, True),
    ],
)
def test_a_push_states_if_it_may_change_the_configuration(
    commits: list[dict[str, list[str]]], forced: bool, expected: bool
) -> None:
    repository = {"id": 1, "full_name": "octo/demo", "default_branch": "main"}
    payload = {
        "ref": "refs/heads/main", "after": "a" * 40, "forced": forced, "commits": commits,
        "repository": repository, "sender": {"id": 2, "login": "octo"},
    }  # fmt: skip
    event = parse("push", payload)
    assert isinstance(event, events.BranchPushed)
    assert (event.head_sha, event.may_change_config) == ("a" * 40, expected)
