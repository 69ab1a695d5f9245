"""Replies that were paid for are kept on disk and come back as they were."""

from __future__ import annotations

import resource
import threading
from pathlib import Path

import pytest
from pydantic import BaseModel, create_model

from bot.core.actions import Usage
from bot.core.errors import OperatorError, TransientError
from bot.models.protocol import Prompt, Reply, T
from evaluation.run.model import Cached, FolderStore, cache_key, is_key
from tests.scripted import ScriptedModel


class Answer(BaseModel):
    label: str


class Counting:
    """Answers with a number that grows, so that an answer given twice shows."""

    id = "counting:x"

    def __init__(self) -> None:
        self.calls = 0

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        self.calls += 1
        text = f'{{"label": "{self.calls}"}}'
        usage = Usage(calls=1, input_tokens=5, cost_usd=0.25)
        return Reply(value=schema.model_validate_json(text), text=text, usage=usage, model=self.id)


class Wider(Answer):
    more: str = ""


def ask(user: str, **more: object) -> Prompt:
    return Prompt(purpose="triage", system="s", user=user, **more)  # type: ignore[arg-type]


def test_a_question_is_paid_for_once_across_processes(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    paid = Cached(first, FolderStore(tmp_path)).complete(ask("q"), Answer)
    store = FolderStore(tmp_path)
    reply = Cached(second, store).complete(ask("q"), Answer)
    assert (first.calls, second.calls) == (1, 0)
    assert reply == paid
    assert reply.usage.cost_usd == 0.25


def test_another_question_model_or_parameter_is_another_reply() -> None:
    keys = {
        cache_key("m", ask("q"), Answer),
        cache_key("m", ask("r"), Answer),
        cache_key("n", ask("q"), Answer),
        cache_key("m", ask("q", temperature=1.0), Answer),
        cache_key("m", ask("q", effort="low"), Answer),
        cache_key("m", ask("q", max_tokens=10), Answer),
        cache_key("m", ask("q", sample=1), Answer),
        cache_key("m", ask("q"), Wider),
        cache_key("m", ask("q"), create_model("Answer", __base__=Answer, more=(str, ...))),
    }
    assert len(keys) == 9
    assert all(is_key(key) for key in keys)
    assert cache_key("m", ask("q", subject="o/n#1"), Answer) == cache_key("m", ask("q", subject="o/n#2"), Answer)


def test_failures_are_not_remembered(tmp_path: Path) -> None:
    model = Cached(ScriptedModel([TransientError("busy"), {"label": "1"}]), FolderStore(tmp_path))
    with pytest.raises(TransientError):
        model.complete(ask("q"), Answer)
    assert model.complete(ask("q"), Answer).value.label == "1"


def test_a_file_that_was_cut_off_or_has_an_older_shape_is_asked_for_again(tmp_path: Path) -> None:
    model = Counting()
    Cached(model, FolderStore(tmp_path)).complete(ask("q"), Answer)
    (file,) = tmp_path.glob("*/*.json")
    file.write_text(file.read_text()[:20])
    assert Cached(model, FolderStore(tmp_path)).complete(ask("q"), Answer).value.label == "2"
    file.write_text('{"value": {"verdict": 1}}')
    assert Cached(model, FolderStore(tmp_path)).complete(ask("q"), Answer).value.label == "3"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(OperatorError, match=r"\.json: cannot be read"):
        FolderStore(tmp_path).get(file.stem)


def test_many_threads_leave_whole_files_only(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    key = "ab" * 16
    threads = [threading.Thread(target=store.put, args=(key, str(n) * 100_000)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result = store.get(key)
    assert result is not None
    assert len(set(result)) == 1
    assert [file.suffix for file in tmp_path.glob("*/*")] == [".json"]


@pytest.mark.parametrize("name", ["", "..", "../../etc/passwd", "AB" * 16, "ab" * 16 + "/", "ab" * 15])
def test_only_keys_can_name_a_file(name: str) -> None:
    assert not is_key(name)


def test_a_reply_that_cannot_be_kept_is_used_all_the_same(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        reply = Cached(Counting(), FolderStore(tmp_path)).complete(ask("q"), Answer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert reply.value.label == "1"
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
