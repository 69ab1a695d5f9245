"""The composition root: builds concrete objects from settings for the commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from bot.core import config_file, events
from bot.core.config import Problem, RepoConfig
from bot.core.errors import ForgeError, NotFound, OperatorError, ProviderRefused, SettingsError, TransientError
from bot.core.io_limits import read_file
from bot.features.services import NoHistory, Services
from bot.features.shared.rights import by_maintainer
from bot.models.budget import Budget, Limit, MemoryBudget, load_prices
from bot.models.conversation import Refusals
from bot.models.prompts import Prompts
from bot.models.protocol import Model
from bot.models.recorded import Recording
from bot.models.registry import ModelKeys, Models, leaves
from bot.models.wrappers import load_maps
from bot.settings import Settings, reveal

if TYPE_CHECKING:
    from bot.core.events import Event
    from bot.core.subjects import Repository
    from bot.github.app import GitHubApp
    from bot.github.http import Observe
    from bot.github.protocol import Forge
    from bot.github.reader import GitHubForge
    from bot.github.writer import GitHubWriter
    from bot.pipeline.notices import Notices
    from bot.pipeline.store import Ledger
    from bot.sandbox.protocol import Sandbox


_log = structlog.get_logger(__name__)


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


def prompts(settings: Settings) -> Prompts:
    """Return the packaged prompts, or the operator's. Raises SettingsError."""
    return Prompts(settings.bouncer_prompts_dir)


def offline_services(settings: Settings, forge: Forge, config: RepoConfig, model: Model | None = None) -> Services:
    """Return services without GitHub and database, for commands on files and for evaluation."""
    from bot.router import SLASH_COMMANDS

    return Services(
        forge=forge,
        model=model or build_model(settings),
        config=config,
        clock=now,
        history=NoHistory(),
        repository=forge.about(),
        commands=SLASH_COMMANDS.addressed_to(lambda: forge.identity().login),
        prompts=prompts(settings),
        secrets=settings.secrets,
        about_url=settings.bouncer_about_url or "",
    )


class Access(NamedTuple):
    """Access of a command to a repository; ``by`` names the credential."""

    forge: GitHubForge
    writer: GitHubWriter
    by: str


@contextmanager
def access(settings: Settings, repository: str, observe: Observe | None = None) -> Iterator[Access]:
    """Reach ``owner/name`` with GITHUB_TOKEN, else as the App that is set up, else without credentials.

    Raises SettingsError, NotFound if the App is not installed there, and the errors of the HTTP client.
    """
    from bot.github.app import forge_as
    from bot.github.http import no_metrics

    if settings.github_token is None and not settings.needs_setup:
        with build_app(settings, observe) as github:
            owner, _, name = repository.partition("/")
            yield Access(*github.forge(github.installation_for(owner, name).id, repository), "the App")
        return
    token = reveal(settings.github_token).strip()
    with forge_as(token, repository, settings.github_api_url, observe or no_metrics) as halves:
        yield Access(*halves, "GITHUB_TOKEN" if token else "")


def repo_config(path: str | None, overrides: Mapping[str, Mapping[str, Any]]) -> RepoConfig:
    """Return a local bouncer.yml with the command line's keys on top.

    Raises OperatorError for a file that cannot be read, and for every problem in it.
    """
    config, problems = RepoConfig(), tuple[Problem, ...]()
    if path is not None:
        try:
            config, problems = config_file.load(read_file(Path(path), config_file.MAX_BYTES))
        except OSError as error:
            raise OperatorError(f"{path}: {error.strerror or error}") from None
    if problems:
        raise OperatorError(f"{path}: {problems[0]}")
    return laid_over(config, overrides)


def laid_over(config: RepoConfig, overrides: Mapping[str, Mapping[str, Any]]) -> RepoConfig:
    """Return a configuration with other keys on top, except None. Raises ConfigError for a wrong value."""
    values = config.model_dump()
    for section, keys in overrides.items():
        values.setdefault(section, {}).update({key: value for key, value in keys.items() if value is not None})
    return config_file.checked(values)


def build_models(settings: Settings, refusals: Refusals | None = None) -> Models:
    """Return the builder of models with this operator's keys and prices. Raises SettingsError."""
    keys = ModelKeys.model_validate(settings, from_attributes=True)
    maps = load_maps(settings.bouncer_maps_file) if settings.bouncer_maps_file else None
    return Models(keys, load_prices(settings.bouncer_prices_file), maps, refusals)


def build_model(settings: Settings, model_id: str | None = None, budget: Budget | None = None) -> Model:
    """Return the model of that id, or the operator's, for a command: it is retried.

    Its replies are written to BOUNCER_RECORD_FILE if that is set. Raises SettingsError if no model is named.
    """
    model = build_models(settings).build(model_id or settings.bouncer_model, budget, attempts=3)
    return Recording(model, settings.bouncer_record_file) if settings.bouncer_record_file else model


def total_budget(usd: float | None) -> Budget | None:
    """Return the budget of one command; None if there is no limit."""
    # A command that passes midnight has one budget, so its day never ends.
    started = now()
    return None if usd is None else Budget(MemoryBudget(), (Limit(scope="this run", usd=usd),), lambda: started)


def build_app(settings: Settings, observe: Observe | None = None) -> GitHubApp:
    """Return the GitHub App. Raises SettingsError that names the missing setting."""
    from bot.github.app import GitHubApp
    from bot.github.http import no_metrics
    from bot.github.identity import load_key

    key = settings.private_key()
    if settings.github_app_id is None:
        raise SettingsError("GITHUB_APP_ID is not set; to register a new App, start `bouncer serve`")
    if key is None:
        raise SettingsError("neither GITHUB_APP_PRIVATE_KEY nor GITHUB_APP_PRIVATE_KEY_PATH is set")
    load_key(key, settings.private_key_source)
    return GitHubApp(
        settings.github_app_id,
        key,
        settings.github_api_url,
        observe=observe or no_metrics,
        archives=settings.bouncer_data_dir / "archives",
    )


def build_sandbox(settings: Settings) -> Sandbox | None:
    """Return the sandbox for untrusted code; None if the operator switched it off."""
    if settings.bouncer_sandbox == "docker":
        from bot.sandbox.docker import Docker

        return Docker(settings.bouncer_sandbox_image, network=settings.bouncer_sandbox_network)
    if settings.bouncer_sandbox == "bubblewrap":
        from bot.sandbox.bubblewrap import Bubblewrap

        folders = filter(None, settings.bouncer_sandbox_folders.split(":"))
        return Bubblewrap(folders=tuple(map(Path, folders)), offline=settings.bouncer_sandbox_network == "none")
    return None


def notices(settings: Settings, ledger: Ledger) -> Notices | None:
    """Return the sender of notices; None if the operator named no receiver."""
    url, secret = reveal(settings.bouncer_notify_url), reveal(settings.bouncer_notify_secret)
    if not url:
        return None
    from bot.pipeline.notices import Notices

    return Notices(url, secret, ledger.overview, settings.github_web_url)


class Live:
    """Builds the services for an event; one object per worker process.

    Raises SettingsError if a setting that the worker needs is missing or wrong.
    """

    def __init__(self, settings: Settings, ledger: Ledger, observe: Observe | None = None) -> None:
        from bot.pipeline.readings import Configurations
        from bot.reproduction.setup import Environments, SandboxHarnesses
        from bot.router import SLASH_COMMANDS

        self._settings = settings
        self._ledger = ledger
        self.app = build_app(settings, observe)
        self._models = build_models(settings, ledger.faults)
        self._secrets = settings.secrets
        self._prompts = prompts(settings)
        self._slash_commands = SLASH_COMMANDS
        sandbox, folder = build_sandbox(settings), settings.bouncer_data_dir / "environments"
        self._harnesses = SandboxHarnesses(sandbox, Environments(folder)) if sandbox else None
        self._configurations = Configurations(ledger.database)
        # Raises now, and not at the first issue, if a key or a price is missing.
        self._model_for("owner/name")

    def services_for(self, event: Event) -> tuple[Services, GitHubWriter]:
        """Return services for the event's repository, and the writer, which only the publisher gets."""
        repository: Repository | None = getattr(event, "repository", None)
        if repository is None or event.installation is None:
            raise ForgeError("the event names no repository or no installation")
        forge, writer = self.app.forge(event.installation, repository.full_name)
        if isinstance(event, events.IssueUnanswered):
            # It names the default branch of the day on which it was stored, perhaps months ago.
            repository = repository.model_copy(update={"default_branch": forge.about().default_branch})
        config, problems = self._configurations.of(event.installation, repository, forge)
        if self._settings.in_shadow:
            config = config.in_shadow()
        services = Services(
            forge=forge,
            model=self._model_for(repository.full_name, reserve=True),
            config=config,
            clock=now,
            history=self._ledger.decisions,
            issue_index=self._ledger.issues,
            repository=repository,
            commands=self._slash_commands.addressed_to(lambda: forge.identity().login),
            prompts=self._prompts,
            config_problems=problems,
            harnesses=self._harnesses,
            secrets=self._secrets,
            about_url=self._settings.about_url,
            shadow=self._settings.in_shadow,
            elsewhere=self._elsewhere,
        )
        if by_maintainer(event, services):
            services = replace(services, model=self._model_for(repository.full_name))
        return services, writer

    def _elsewhere(self, repository: str) -> Forge | None:
        try:
            installation = self.app.installation_for(*repository.split("/"))
        except NotFound:
            return None
        return None if installation.suspended else self.app.forge(installation.id, repository)[0]

    def check_models(self) -> bool:
        """Ask each provider if it accepts the key and knows the model, and record the refusals.

        Return True if no provider refused and all could be reached.
        """
        models, faults = leaves(self._settings.bouncer_model), self._ledger.faults
        faults.keep_only(models)
        good = True
        for model in models:
            try:
                if self._models.check(model):
                    faults.answered(model)
            except ProviderRefused as error:
                _log.error("model_refused", model=model, why=str(error))
                faults.refused(model, str(error))
                good = False
            except TransientError as error:
                _log.warning("model_not_checked", model=model, why=str(error))
                good = False
        return good

    def close(self) -> None:
        """Close all connections."""
        self.app.close()

    def _model_for(self, repository: str, *, reserve: bool = False) -> Model:
        budget = Budget(self._ledger.budgets, limits(self._settings, repository, reserve=reserve), now)
        return self._models.build(self._settings.bouncer_model, budget)


def limits(settings: Settings, repository: str, *, reserve: bool = False) -> tuple[Limit, ...]:
    """Return the daily limits for a repository: its own, its owner's, and the one of all together.

    ``reserve``: without the share that is reserved for maintainers' commands.
    """
    share = settings.bouncer_budget_reserve / 100 if reserve else 0.0
    scopes = (
        (f"repository:{repository}", settings.bouncer_repository_budget_usd, settings.bouncer_repository_calls),
        (f"owner:{repository.partition('/')[0]}", settings.bouncer_owner_budget_usd, None),
        ("all", settings.bouncer_daily_budget_usd, None),
    )
    return tuple(Limit(scope=scope, usd=usd, calls=calls, reserve=share) for scope, usd, calls in scopes)
