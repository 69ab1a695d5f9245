"""Models around models: fallback chains, retries, recordings."""

from __future__ import annotations

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bot.core.actions import Usage
from bot.core.errors import BudgetExceeded, ModelError, SettingsError, TransientError
from bot.models.conversation import Answer, Conversation, Request
from bot.models.protocol import Model, Prompt
from bot.models.recorded import Recorded, Recording
from bot.models.registry import Retried
from bot.models.wrappers import Fallback
from tests.bot.models.replies import CLEAR, PROMPT, Verdict
from tests.scripted import ScriptedModel


def recorded(file: Path, name: str = "") -> Model:
    return Conversation(f"recorded:{file}#{name}", Recorded(file, name))


def write(file: Path, *lines: object) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


# --- a chain --------------------------------------------------------------------------------------------


def test_a_chain_names_the_model_and_counts_the_cost_of_all() -> None:
    first = ScriptedModel([Answer("no", "stop", 10, 1), Answer("no", "stop", 10, 1)], "first")
    chain = Fallback((first, ScriptedModel([CLEAR], "second")))
    reply = chain.complete(PROMPT, Verdict)
    assert chain.id == "scripted:first,scripted:second"
    assert reply.model == "scripted:second"
    assert reply.usage.calls == 3
    assert reply.usage.input_tokens == 22


def test_a_spent_budget_ends_the_chain() -> None:
    second = ScriptedModel([CLEAR])
    with pytest.raises(BudgetExceeded):
        Fallback((ScriptedModel([BudgetExceeded("spent")]), second)).complete(PROMPT, Verdict)
    assert second.asked == []


@pytest.mark.parametrize(
    ("waits", "wait"), [((30.0, 5.0), 5.0), ((30.0, None), None), ((5.0, ModelError("no", "refused")), 5.0)]
)
def test_a_failed_chain_has_the_shortest_wait_of_its_models(
    waits: tuple[float | ModelError | None, ...], wait: float | None
) -> None:
    errors = [wait if isinstance(wait, ModelError) else TransientError("busy", wait) for wait in waits]
    with pytest.raises(TransientError) as caught:
        Fallback(tuple(ScriptedModel([error]) for error in errors)).complete(PROMPT, Verdict)
    assert caught.value.wait == wait


def test_a_failed_chain_names_every_error() -> None:
    chain = Fallback((ScriptedModel([ModelError("a", "refused")]), ScriptedModel([ModelError("b", "length")])))
    with pytest.raises(ModelError, match="a; b") as caught:
        chain.complete(PROMPT, Verdict)
    assert caught.value.reason == "length"


# --- retries --------------------------------------------------------------------------------------------


def test_retries_wait_as_asked_or_back_off() -> None:
    waits: list[float] = []
    script = [TransientError("busy", 7.0), TransientError("busy"), TransientError("busy"), CLEAR]
    model = Retried(ScriptedModel(script), attempts=4, sleep=waits.append)
    assert model.complete(PROMPT, Verdict).value == CLEAR
    assert waits == [7.0, 2.0, 4.0]


def test_the_last_retry_raises_the_error_with_the_usage() -> None:
    waits: list[float] = []
    script = [Answer("x", "stop", 5, 5), TransientError("a"), TransientError("b")]
    with pytest.raises(TransientError, match="b") as caught:
        Retried(ScriptedModel(script), attempts=2, sleep=waits.append).complete(PROMPT, Verdict)
    assert waits == [1.0]
    assert caught.value.usage == Usage(
        calls=1, input_tokens=5, output_tokens=5, seconds=caught.value.usage.seconds
    )


def test_a_model_error_after_a_retry_has_the_usage_of_both_tries() -> None:
    script = [Answer("x", "stop", 5, 5), TransientError("a"), Answer("no", "refusal", 5, 5)]
    with pytest.raises(ModelError) as caught:
        Retried(ScriptedModel(script), attempts=2, sleep=lambda _: None).complete(PROMPT, Verdict)
    assert caught.value.usage is not None
    assert caught.value.usage.calls == 2


def test_a_long_wait_is_not_slept_through() -> None:
    with pytest.raises(TransientError):
        Retried(ScriptedModel([TransientError("busy", 61.0), CLEAR]), sleep=pytest.fail).complete(PROMPT, Verdict)


def test_a_model_error_is_not_retried() -> None:
    with pytest.raises(ModelError):
        Retried(ScriptedModel([ModelError("no"), CLEAR]), sleep=pytest.fail).complete(PROMPT, Verdict)


# --- recorded -------------------------------------------------------------------------------------------


def test_a_recorded_run_answers_again_without_a_model(tmp_path: Path) -> None:
    file = tmp_path / "said.jsonl"
    vague = {"explanation": "Which version?", "label": "VAGUE"}
    live = Recording(ScriptedModel(["no JSON at all", CLEAR, vague], "live"), file)
    again = PROMPT.model_copy(update={"sample": 1})
    before = [live.complete(PROMPT, Verdict), live.complete(again, Verdict)]

    model = recorded(file)
    after = [model.complete(PROMPT, Verdict), model.complete(again, Verdict)]
    assert [reply.value for reply in after] == [reply.value for reply in before]
    assert after[0].usage.input_tokens == before[0].usage.input_tokens
    assert after[0].model == f"recorded:{file}#"


def test_a_recorded_failure_fails_again_for_the_same_reason(tmp_path: Path) -> None:
    file = tmp_path / "said.jsonl"
    live = Recording(ScriptedModel([ModelError("it would not", "refused")]), file)
    with pytest.raises(ModelError):
        live.complete(PROMPT, Verdict)
    with pytest.raises(ModelError, match="it would not") as caught:
        recorded(file).complete(PROMPT, Verdict)
    assert caught.value.reason == "refused"


def test_a_missing_folder_is_named_before_any_request(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no folder"):
        Recording(ScriptedModel(), tmp_path / "gone" / "said.jsonl")


def test_transient_errors_and_spent_budgets_are_not_recorded(tmp_path: Path) -> None:
    file = tmp_path / "said.jsonl"
    live = Recording(ScriptedModel([TransientError("busy"), BudgetExceeded("spent")]), file)
    for error in (TransientError, BudgetExceeded):
        with pytest.raises(error):
            live.complete(PROMPT, Verdict)
    assert not file.exists()


def test_another_question_on_the_same_subject_is_unrecorded(tmp_path: Path) -> None:
    file = tmp_path / "said.jsonl"
    Recording(ScriptedModel([CLEAR]), file).complete(PROMPT, Verdict)
    with pytest.raises(ModelError, match="holds no reply of scripted:test for o/r#1") as caught:
        recorded(file).complete(PROMPT.model_copy(update={"user": "Something else"}), Verdict)
    assert caught.value.reason == "unrecorded"


def test_published_responses_are_keyed_by_instance_and_model(tmp_path: Path) -> None:
    lines = [
        {"instance_id": "a-1", "model": "m", "label": "CLEAR", "explanation": "first\u2028line"},
        {"instance_id": "a-1", "model": "m", "label": "VAGUE", "explanation": "second draw"},
        {"instance_id": "a-1", "model": "n", "label": "VAGUE", "explanation": "other model"},
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    file = tmp_path / "responses.jsonl.gz"
    file.write_bytes(gzip.compress(text.encode()))
    ask = Prompt(purpose="triage", system="s", user="u", subject="a-1")
    model = recorded(file, "m")
    assert model.complete(ask, Verdict).value.explanation == "first\u2028line"
    assert model.complete(ask.model_copy(update={"sample": 1}), Verdict).value.label == "VAGUE"
    for missing in ({"sample": 2}, {"subject": "a-2"}):
        with pytest.raises(ModelError) as caught:
            model.complete(ask.model_copy(update=missing), Verdict)
        assert caught.value.reason == "unrecorded"


def test_an_unusable_recorded_reply_stays_unusable(tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", {"subject": "o/r#1", "model": "m", "label": "MAYBE", "explanation": ""})
    with pytest.raises(ModelError, match="something unusable: label: Input should be") as caught:
        recorded(file).complete(PROMPT, Verdict)
    assert caught.value.reason == "invalid"


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b'{"model": "m", "subject": "s"}\n', "x", "holds no model 'x' (it holds m)"),
        (b'{"model": "m", "subject": "s"}\n{"model": "n", "subject": "s"}\n', "", "holds several models"),
        (b"", "", "nothing at all"),
        (b'{"model": "m", "subject": "s"}\n{"mod', "", "line 2 is not JSON"),
        (b'{"model": "m"}\n', "", "line 1 needs 'model' and 'subject'"),
        (b"[]\n", "", "line 1 needs"),
        (b"\xff\xfe", "", "cannot be read"),
        (b'{"model": "m", "subject": "s", "contains": 5}\n', "", "line 1: 'contains' has the wrong type"),
        (b'{"model": "m", "subject": "s", "error": "x"}\n', "", "line 1: 'error' has the wrong type"),
        (b'{"model": "m", "subject": "s", "prompt_hash": []}\n', "", "line 1: 'prompt_hash' has the wrong type"),
    ],
)
def test_an_unusable_file_is_named_with_its_fault(tmp_path: Path, content: bytes, name: str, message: str) -> None:
    file = tmp_path / "said.jsonl"
    file.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        Recorded(file, name)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_missing_or_plain_gzip_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.gz").write_bytes(b"plain")
    (tmp_path / "damaged.jsonl.gz").write_bytes(gzip.compress(b"{}" * 99)[:10] + b"\xff" * 30)
    for name in ("x.jsonl.gz", "damaged.jsonl.gz", "gone.jsonl"):
        with pytest.raises(SettingsError, match=f"{name} cannot be read"):
            Recorded(tmp_path / name)


def test_a_recorded_answer_can_be_for_one_purpose_and_one_state(tmp_path: Path) -> None:
    about = {"model": "m", "subject": "o/r#1"}
    file = write(
        tmp_path / "x.jsonl",
        {**about, "purpose": "triage", "explanation": "first", "label": "CLEAR"},
        {**about, "purpose": "triage", "contains": "an answer", "explanation": "later", "label": "CLEAR"},
    )
    ask = PROMPT.model_copy(update={"subject": "o/r#1", "purpose": "triage"})
    model = recorded(file)
    assert model.complete(ask, Verdict).value.explanation == "first"
    later = ask.model_copy(update={"user": "and an answer"})
    assert model.complete(later, Verdict).value.explanation == "later"
    with pytest.raises(ModelError, match="holds no reply"):
        model.complete(ask.model_copy(update={"purpose": "review"}), Verdict)


def test_many_threads_record_whole_lines(tmp_path: Path) -> None:
    file = tmp_path / "said.jsonl"
    live = Recording(ScriptedModel(lambda prompt: {"explanation": prompt.user * 500, "label": "CLEAR"}), file)
    prompts = [PROMPT.model_copy(update={"user": f"question {n}"}) for n in range(60)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda prompt: live.complete(prompt, Verdict), prompts))
    again = recorded(file)
    for prompt in prompts:
        assert again.complete(prompt, Verdict).value.explanation == prompt.user * 500


@pytest.mark.parametrize("kind", ["input", "output"])
def test_the_responses_published_with_bouncerbench_can_be_replayed(shared_data: Path, kind: str) -> None:
    file = shared_data / "bouncerbench" / f"recorded_{kind}_responses.jsonl.gz"
    with gzip.open(file, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    row = next(row for row in rows if row["model"] == "o4-mini")
    recording = Recorded(file, "o4-mini")
    ask = Prompt(purpose="x", system="", user="", subject=row["instance_id"])
    answer = json.loads(recording.complete(Request(ask, Verdict, "medium")).text)
    assert answer == {"label": row["label"], "explanation": row["explanation"]}
