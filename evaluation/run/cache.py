"""Replies that were paid for, kept on disk: the store behind ``bot.models.wrappers.Cached``.

One file a reply, named by its key: the hash of model id, prompt (text and parameters) and reply schema. ``batch
import`` fills the same folder.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path

from bot.errors import OperatorError
from evaluation.run.lines import replace

_KEY = re.compile(r"[0-9a-f]{32,64}")


class FolderStore:
    """A folder of replies as JSON text; several threads and processes may share it.

    ``hits`` counts the replies that were found, which therefore cost nothing now.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hits = 0
        self._mutex = threading.Lock()

    def get(self, key: str) -> str | None:
        """The reply under a key; None where there is none. Raises OperatorError where it cannot be read."""
        file = self._file(key)
        try:
            found = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise OperatorError(f"{file}: cannot be read: {error}") from None
        with self._mutex:
            self.hits += 1
        return found

    def put(self, key: str, reply: str) -> None:
        """Keep a reply; an older one under the same key is replaced."""
        file = self._file(key)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, reply)

    def _file(self, key: str) -> Path:
        assert is_key(key)
        return self.folder / key[:2] / f"{key}.json"


def is_key(text: str) -> bool:
    """Whether a text can name a reply: hex digits only, so that it can never lead out of the folder."""
    return _KEY.fullmatch(text) is not None
