"""What a worker is put together from: a model that is no better than chance posts nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot import settings
from bot.app import Live
from bot.core.events import IssueOpened
from bot.core.subjects import Actor, Issue, Repository
from bot.pipeline.store import Ledger, migrate, open_database
from bot.simgithub import SimulatedGitHub

YML = "triage:\n  mode: comment\nreview:\n  mode: off\nreproduce:\n  mode: comment\n"


@pytest.mark.parametrize(
    ("model", "modes"),
    [
        ("local:smollm2", ("shadow", "shadow", "off", "off")),
        ("openai:gpt-5-mini,local:smollm2", ("shadow", "shadow", "off", "off")),
        ("openai:gpt-5-mini", ("comment", "check", "off", "comment")),
    ],
)
def test_a_model_without_signal_runs_in_shadow_mode_whatever_the_file_says(
    tmp_path: Path, model: str, modes: tuple[str, ...]
) -> None:
    with SimulatedGitHub() as github:
        github.create_repository("acme/rocket", {".github/bouncer.yml": YML})
        app = github.create_app(owner="acme", webhook_secret="secret-secret")
        installation = github.install(app, "acme/rocket")
        database = open_database(f"sqlite:///{tmp_path / 'b.db'}")
        migrate(database)
        loaded = settings.load(
            github_app_id=app.id,
            github_app_private_key=app.private_key,
            github_api_url=github.api_url,
            bouncer_model=model,
            openai_api_key="sk-nobody-is-asked",
        )
        live = Live(loaded, Ledger(database))
        author = Actor(id=5, login="alice")
        services, _ = live.services_for(
            IssueOpened(
                installation=installation.id,
                sender=author,
                repository=Repository(id=1, owner="acme", name="rocket"),
                issue=Issue(number=1, title="It breaks", author=author),
            )
        )
        config = services.config
        live.close()
        database.close()
    assert (config.triage.mode, config.verify.mode, config.review.mode, config.reproduce.mode) == modes
