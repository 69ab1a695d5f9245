"""Reproducing a reported bug: when it is tried, what is posted, and what is left for later."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bot import router
from bot.core import events
from bot.core.actions import Decision, SetLabels, UpsertComment
from bot.core.errors import ModelError
from bot.core.subjects import Actor, Comment
from bot.features.reproduce.record import stored_test
from bot.features.triage.record import TriageRecord
from bot.github.offline import Snapshot
from bot.reproduction.setup import Environments
from bot.sandbox.bubblewrap import Bubblewrap
from tests import builders
from tests.bot.features.conftest import Build, Remembered, decision_on
from tests.builders import ANN, BOUNCER, MIA, NO_PLUGINS
from tests.scripted import ScriptedModel

pytestmark = [pytest.mark.debian("bubblewrap"), pytest.mark.usefixtures("remembered_runs")]

SHA = "abc1234" + "0" * 33
PYTEST = "python -m pytest -q -p no:cacheprovider {tests}"

FILES = {
    **NO_PLUGINS,
    "shapes/__init__.py": b"",
    "shapes/lists.py": b"def split(items, size):\n"
    b"    return [items[i * size : (i + 1) * size] for i in range(len(items) // size)]\n",
    "tests/test_lists.py": b"from shapes.lists import split\n\n\n"
    b"def test_even():\n    assert split([1, 2], 2) == [[1, 2]]\n",
}
RIGHT = "from shapes.lists import split\n\ndef test_rest():\n    assert split([1, 2, 3], 2) == [[1, 2], [3]]\n"
BODY = "`split([1, 2, 3], 2)` returns `[[1, 2]]`. I expect `[[1, 2], [3]]`."

#: What the handler needs beside the mode; a real project's command is as short as the default.
CONFIG = f"reproduce:\n  mode: comment\n  samples: 1\n  command: {PYTEST}\n"


issue = partial(builders.issue, number=12, title="split drops the rest", body=BODY)


def snapshot(*comments: Comment, **values: Any) -> Snapshot:
    rights = {"ann": "read", "mia": "triage"}
    fields = {"permissions": rights, "heads": {"main": SHA}, "checkouts": {SHA: FILES}, **values}
    return builders.snapshot(comments={12: comments}, **fields)


def commented(body: str, by: Actor = MIA, **values: Any) -> events.CommentCreated:
    return builders.comment_created(body, by, issue(**values))


def labelled(label: str = "bug", **values: Any) -> events.IssueLabeled:
    return builders.event(events.IssueLabeled, issue(labels=(label,), **values), label=label)


def drafts(*codes: str) -> ScriptedModel:
    return ScriptedModel(lambda prompt: {"plan": "", "code": codes[prompt.sample % len(codes)]})


#: A maintainer asks for an attempt.
ASKED = commented("/bouncer reproduce")
AUTOMATIC = CONFIG + "  automatic: true\n"


def reproduce(
    services: Build,
    event: events.Event,
    model: ScriptedModel,
    config: str = CONFIG,
    shot: Snapshot | None = None,
    **tools: Any,
) -> Any:
    """Return the decision about an event, with a real sandbox unless ``tools`` have another."""
    here = services(model, shot or snapshot(), config, **{"sandbox": Bubblewrap(), **tools})
    return decision_on(event, here, "reproduce")


def test_a_test_that_was_asked_for_is_offered_in_a_comment_and_recorded(services: Build) -> None:
    decision = reproduce(services, ASKED, drafts(RIGHT))
    assert decision.verdict == "reproduced"
    comment, label = decision.actions
    assert label == SetLabels(number=12, add=("reproduced",))
    body = comment.body
    head, _, rest = body.partition("<details><summary>Output</summary>")
    assert head == (
        "**Reproduced on `main` at abc1234: "
        "`python -m pytest -q -p no:cacheprovider tests/test_lists.py::test_issue_12` "
        "fails with `AssertionError: assert [[1, 2]] == [[1, 2], [3]]` as reported (1 of 1 drafts agree).**\n\n"
        "```python\ndef test_issue_12():\n    assert split([1, 2, 3], 2) == [[1, 2], [3]]\n```\n\n"
    )
    assert "E   assert [[1, 2]] == [[1, 2], [3]]" in rest
    assert "To use it, add it to `tests/test_lists.py`." in rest
    assert "_A scripted model answered: this is a rehearsal, not a verdict._" in rest
    test = stored_test([router.read_decision(json.loads(decision.model_dump_json()))])
    assert (test.path, test.name, test.sha) == ("tests/test_lists.py", "test_issue_12", SHA)
    assert test.command == tuple(PYTEST.split())


def test_all_drafts_without_a_usable_answer_cost(services: Build) -> None:
    config = CONFIG.replace("samples: 1", "samples: 3")
    decision = reproduce(services, ASKED, ScriptedModel(lambda prompt: "I cannot."), config)
    assert (decision.abstained, decision.usage.calls) == ("model:malformed", 6)


def test_draft_pull_request_adds_the_test_and_nothing_else(services: Build) -> None:
    decision = reproduce(services, ASKED, drafts(RIGHT), CONFIG.replace("comment", "pull"))
    pull, label = decision.actions
    assert isinstance(label, SetLabels)
    assert (pull.number, pull.base, pull.base_sha) == (12, "main", SHA)
    assert pull.branch == "bouncer/reproduce-12"
    assert pull.path == "tests/test_lists.py"
    assert pull.content.startswith(FILES["tests/test_lists.py"].decode())
    assert pull.content.endswith("def test_issue_12():\n    assert split([1, 2, 3], 2) == [[1, 2], [3]]\n")
    assert pull.title == "Add a failing test for #12: split drops the rest"
    assert pull.body.startswith("This adds one test for #12 and nothing else. Reproduced on `main` at abc1234")


def test_what_was_tried_in_vain_is_said_to_those_who_asked(services: Build) -> None:
    code = "def test_x():\n    assert 1 == 1\n"
    model = drafts(code, "def test_x():\n    import os\n    os.zzz\n", "garbage(")
    decision = reproduce(services, ASKED, model, CONFIG.replace("samples: 1", "samples: 3"))
    assert decision.verdict == "not reproduced"
    (comment,) = decision.actions
    assert not comment.only_edit
    assert comment.body.startswith(
        "**Not reproduced on `main` at abc1234.** 3 drafts were tried: "
        "no draft fails steadily for the reported reason.\n"
    )
    assert "- 1 x passes on the present code" in comment.body
    assert "- 1 x fails with AttributeError, which is not what the report tells of" in comment.body
    assert "- 1 x it does not parse" in comment.body


@pytest.mark.parametrize(
    ("event", "config"),
    [
        (commented("/bouncer reproduce", by=ANN), CONFIG),
        (commented("please /bouncer reproduce"), CONFIG),
        (commented("/bouncer reproduce", is_pull_request=True), CONFIG),
        (commented("/bouncer reproduce", by=BOUNCER), CONFIG),
        (labelled(), CONFIG),
        (labelled("question"), AUTOMATIC),
        (labelled(), AUTOMATIC),
        (labelled(), ""),
    ],
)
def test_nothing_is_tried_without_a_maintainers_word_or_the_repositorys(
    services: Build, event: events.Event, config: str
) -> None:
    shot = snapshot(permissions={"ann": "read", "mia": "triage", "bouncer[bot]": "write"})
    assert reproduce(services, event, ScriptedModel(), config, shot) is None


def test_nothing_is_tried_on_a_locked_issue(services: Build) -> None:
    decision = reproduce(services, commented("/bouncer reproduce", locked=True), ScriptedModel())
    assert (decision.abstained, decision.actions) == ("skipped:locked", ())


def triaged(**values: Any) -> Decision:
    return Decision(
        kind="triage",
        subject=labelled().subject,
        verdict="WELL_SPECIFIED",
        record=TriageRecord(),
        **values,
    )


def test_an_accepted_issue_with_the_label_is_tried_once_by_itself(services: Build, history: Remembered) -> None:
    history.past.append(triaged())
    first = reproduce(services, labelled(), drafts(RIGHT), AUTOMATIC)
    history.past.append(first)
    assert first.verdict == "reproduced"
    assert reproduce(services, labelled(), ScriptedModel(), AUTOMATIC) is None


def test_by_itself_it_says_nothing_about_what_it_tried_in_vain(services: Build, history: Remembered) -> None:
    history.past.append(triaged())
    decision = reproduce(services, labelled(), drafts("def test_x():\n    pass\n"), AUTOMATIC)
    assert decision.verdict == "not reproduced"
    assert all(isinstance(action, UpsertComment) and action.only_edit for action in decision.actions)


def test_a_bounced_or_reworded_issue_is_not_tried_by_itself(services: Build, history: Remembered) -> None:
    history.past.append(triaged())
    reworded = labelled(body="Something else by now.")
    assert reproduce(services, reworded, ScriptedModel(), AUTOMATIC) is None
    history.past[0] = history.past[0].model_copy(update={"verdict": "VAGUE", "record": TriageRecord(bounced=True)})
    assert reproduce(services, labelled(), ScriptedModel(), AUTOMATIC) is None


@pytest.mark.parametrize(
    ("config", "sandbox", "model", "word", "text"),
    [
        ("", True, ScriptedModel(), "skipped:off", "Drafting tests is switched off here"),
        (CONFIG, False, ScriptedModel(), "sandbox", "has switched the sandbox off"),
        (CONFIG.replace("{tests}", "'"), True, ScriptedModel(), "input", "`reproduce.command` cannot be used"),
        (CONFIG, True, ScriptedModel([ModelError("no", reason="refused")]), "model:refused", "no usable answer"),
        (
            CONFIG.replace("command: python", "command: no-such-python"),
            True,
            drafts(RIGHT),
            "sandbox",
            "Tests cannot be run here",
        ),
        (
            CONFIG,
            True,
            ScriptedModel(
                lambda prompt: (
                    {
                        "plan": "",
                        "code": "import no_such_package\n\ndef test_a():\n    assert no_such_package.a() == 1\n",
                    }
                    if prompt.purpose == "reproduce"
                    else {"plan": "`no_such_package` is not installed.", "at_fault": "the environment", "code": ""}
                )
            ),
            "environment",
            "The environment that tests run in is at fault, not the report: `no_such_package` is not",
        ),
    ],
)
def test_not_run_is_a_state_of_its_own_with_its_reason(
    services: Build, config: str, sandbox: bool, model: ScriptedModel, word: str, text: str
) -> None:
    decision = reproduce(services, ASKED, model, config, sandbox=Bubblewrap() if sandbox else None)
    assert decision.verdict is None
    assert decision.abstained == word
    (comment,) = decision.actions
    assert comment.body.startswith("**Not run.** ")
    assert text in comment.body


def test_drafts_use_the_author_s_answers_and_earlier_issues(services: Build) -> None:
    files = {
        **FILES,
        "tests/test_old.py": b"def test_empty():\n    # regression: issue 3\n    assert split([], 2) == []\n",
    }
    answers = (
        Comment(id=1, body="It happens with tuples, too.", author=ANN),
        Comment(id=2, body="me too", author=MIA),
        Comment(id=3, body="/bouncer recheck", author=ANN),
    )
    earlier = issue(number=3, title="split of an empty list fails", body="`split([], 2)` should be `[]`.")
    model = drafts(RIGHT)
    shot = snapshot(*answers, checkouts={SHA: files}, issues={3: earlier})
    reproduce(services, ASKED, model, CONFIG + "  examples: repository\n", shot)
    (prompt,) = model.asked
    assert "The author added:\n\nIt happens with tuples, too." in prompt.user
    assert "me too" not in prompt.user
    assert "/bouncer recheck" not in prompt.user
    assert "split of an empty list fails" in prompt.user
    assert "# regression: issue 3" in prompt.user


def set_up(folder: Path) -> dict[str, Any]:
    """Return what runs a set-up; without network, as nothing is fetched here."""
    return {"sandbox": Bubblewrap(offline=True), "environments": Environments(folder / "environments")}


def test_the_repositorys_set_up_runs_first_and_is_kept(services: Build, tmp_path: Path) -> None:
    """The set-up makes a module that the tests then need."""
    setup = (
        # Without pip: the interpreter would take seconds to install it.
        'python3 -m venv --without-pip "$VIRTUAL_ENV"',
        "python -c \"import sysconfig; open(sysconfig.get_path('purelib') + '/extra.py', 'w').write('REST = 3')\"",
    )
    config = (
        CONFIG.replace(PYTEST, "python -m unittest {tests}") + f"  python: 'true'\n  setup: {json.dumps(setup)}\n"
    )
    code = (
        "import unittest\nimport extra\nfrom shapes.lists import split\n\n"
        "class TestRest(unittest.TestCase):\n    def test_rest(self):\n"
        "        self.assertEqual(split([1, 2, extra.REST], 2), [[1, 2], [3]])\n"
    )
    files = {**FILES, "tests/__init__.py": b""}
    decision = reproduce(
        services, ASKED, drafts(code), config, snapshot(checkouts={SHA: files}), **set_up(tmp_path)
    )
    assert decision.verdict == "reproduced", decision.record
    assert list((tmp_path / "environments").glob("*/complete"))


def test_a_set_up_that_fails_is_not_run_with_what_it_printed(services: Build, tmp_path: Path) -> None:
    # The interpreter would take seconds to make an environment.
    config = CONFIG + "  python: 'true'\n  setup: ['echo no such package; exit 3']\n"
    decision = reproduce(services, ASKED, ScriptedModel(), config, **set_up(tmp_path))
    assert decision.abstained == "setup"
    (comment,) = decision.actions
    assert "The set-up of the test environment failed (exit code 3)" in comment.body
    assert "no such package" in comment.body
