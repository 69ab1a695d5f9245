"""The operator's side: the environment and env files, read once, here and nowhere else."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from io import StringIO
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from bot.core.errors import SettingsError
from bot.core.frozen import first_fault
from bot.core.io_limits import read_file
from bot.sandbox.protocol import IMAGE

#: Of an env file or a key, bytes.
_LARGEST = 1 << 20
_ACCOUNT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_]|-(?=[A-Za-z0-9])){0,38}")


def readable_on_the_way(url: str) -> bool:
    """Return True for plain http:// to anything but this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost" or host.endswith(".localhost")
    return parts.scheme == "http" and not local


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http:// or https:// URL")
    return url


def _without_extras(url: str) -> str:
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must carry no user, password, query or fragment")
    return url.rstrip("/")


def _encrypted(url: str, info: ValidationInfo) -> str:
    if readable_on_the_way(url) and not info.data.get("bouncer_allow_http"):
        raise ValueError("plain http:// to another machine: use https://, or set BOUNCER_ALLOW_HTTP=true")
    return url


def _accounts(value: str) -> str:
    for account in filter(None, map(str.strip, value.split(","))):
        if not _ACCOUNT.fullmatch(account.removeprefix("org:")):
            raise ValueError(f"{account!r} is neither a GitHub login nor org:NAME")
    return value


def _folders(value: str) -> str:
    for folder in map(Path, filter(None, value.split(":"))):
        if not folder.is_absolute() or folder.resolve() == Path("/") or not folder.is_dir():
            raise ValueError(f"{folder} is no absolute path of a folder (and never everything)")
    return value


def _proxies(value: object) -> object:
    return {"true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0}.get(str(value).lower(), value)


Address = Annotated[str, AfterValidator(_address), AfterValidator(_without_extras)]
EncryptedAddress = Annotated[Address, AfterValidator(_encrypted)]
LogLevel = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(str.upper)]


class Settings(BaseSettings):
    """Everything an operator can set. Secrets never show in ``repr`` or logs."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True)

    # First: the addresses below are checked against it.
    bouncer_allow_http: bool = Field(
        False, description="allow plain http:// to other machines, where keys and texts can be read on the way"
    )

    github_app_id: int | None = Field(None, gt=0, description="the App's numeric id")
    github_app_private_key: SecretStr | None = Field(None, description="the App's key, PEM text")
    github_app_private_key_path: Path | None = Field(None, description="a file that holds the App's key")
    github_webhook_secret: SecretStr | None = Field(
        None, description="webhook secret; several, separated by commas, while one is being replaced"
    )
    github_app_client_id: str | None = Field(None, description="the App's client id, to log in with GitHub")
    github_app_client_secret: SecretStr | None = Field(None, description="the App's client secret")
    github_api_url: EncryptedAddress = Field(
        "https://api.github.com", description="the API's address; for GitHub Enterprise Server https://HOST/api/v3"
    )
    github_web_url: EncryptedAddress = Field("https://github.com", description="GitHub's address in a browser")

    github_token: SecretStr | None = Field(
        None, description="a personal or workflow token, for commands that read a repository when no App is set up"
    )

    database_url: str = Field("sqlite:///bouncer.db", description="sqlite:///FILE or postgresql://...")
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on")
    log_level: LogLevel = Field("INFO", description="DEBUG, INFO, WARNING or ERROR")

    bouncer_model: str = Field(
        "",
        description="the model that judges, as provider:name; more after commas, to fall back on when one fails; "
        "the server does not start without it",
    )
    bouncer_model_seconds: float = Field(
        300.0, gt=0, le=3600, description="seconds to wait for an answer of a model"
    )
    bouncer_judge_model: str | None = Field(None, description="the model that judges reviews in bouncer-eval")
    bouncer_data_dir: Path = Field(Path("bouncer-data"), description="folder for set-up's credentials, and caches")
    bouncer_admin_password: SecretStr | None = Field(
        None, description="password for the dashboard, which is off unless this or BOUNCER_ADMINS is set"
    )
    bouncer_admins: Annotated[str, AfterValidator(_accounts)] = Field(
        "",
        description="who may open the dashboard with their GitHub account: numeric ids, logins, and org:NAME for "
        "an organization's members, separated by commas; a name counts for the account that first used it here",
    )
    bouncer_metrics: Literal["operator", "open"] = Field(
        "operator",
        description="who may read /metrics: operator = with BOUNCER_METRICS_TOKEN or logged in to the "
        "dashboard; open = everyone",
    )
    bouncer_metrics_token: SecretStr | None = Field(
        None, description="bearer token to read /metrics with; without one only the dashboard's session opens it"
    )
    bouncer_notify_url: SecretStr | None = Field(
        None,
        description="address to send each verdict and each failed job to, as a signed POST; may be private",
    )
    bouncer_notify_secret: SecretStr | None = Field(None, description="signs what is sent to BOUNCER_NOTIFY_URL")
    bouncer_marker_key: SecretStr | None = Field(
        None, description="secret that signs hidden markers in the Action; otherwise the model's key does"
    )
    bouncer_prompts_dir: Path | None = Field(None, description="folder with your own prompt templates")
    bouncer_prices_file: Path | None = Field(None, description="file with your own model prices")
    bouncer_maps_file: Path | None = Field(
        None, description="file with probability maps for mean(...), written by bouncer-eval calibrate"
    )
    bouncer_record_file: Path | None = Field(
        None, description="file to record models' replies in, to be replayed as recorded:FILE#NAME"
    )
    bouncer_database_seconds: float = Field(30.0, ge=0, description="seconds to wait for PostgreSQL at start")
    bouncer_public_url: Address | None = Field(None, description="this server's address for browsers and GitHub")
    bouncer_trust_proxy: Annotated[int, BeforeValidator(_proxies)] = Field(
        0,
        ge=0,
        le=10,
        description="number of proxies in front whose X-Forwarded-* headers are trusted: 0 = none; true = 1",
    )
    bouncer_daily_budget_usd: float | None = Field(None, ge=0, description="total that models may cost per day")
    bouncer_owner_budget_usd: float | None = Field(
        None, ge=0, description="most that models may cost one owner per day"
    )
    bouncer_repository_budget_usd: float | None = Field(
        None, ge=0, description="most that models may cost one repository per day"
    )
    bouncer_budget_reserve: int = Field(
        20, ge=0, lt=100, description="percentage of every budget kept for maintainers' commands"
    )
    bouncer_repository_calls: int | None = Field(
        2_000, ge=0, description="most model calls per day for one repository, also of models without a price"
    )
    bouncer_keep_days: int = Field(
        180,
        ge=0,
        description="days to keep replies, and decisions on closed issues and pull requests; 0 = forever",
    )
    bouncer_mode: Literal["live", "shadow"] | None = Field(
        None,
        description="shadow: judge and record everything, post nothing, whatever a bouncer.yml says; "
        "without it the choice made at set-up counts, else live",
    )
    bouncer_about_url: Address | None = Field(
        None, description="page about the bot that comments link to; otherwise /about below BOUNCER_PUBLIC_URL"
    )
    bouncer_paused: bool = Field(False, description="pause: record deliveries, call no model, post nothing")
    bouncer_sandbox: Literal["bubblewrap", "docker", "off"] = Field(
        "bubblewrap", description="what runs tests: bubblewrap, docker, or off"
    )
    bouncer_sandbox_image: str = Field(IMAGE, description="image for BOUNCER_SANDBOX=docker")
    bouncer_sandbox_network: str | None = Field(
        None,
        description="network of set-up commands: none = no network; with docker, else the name of a Docker "
        "network that reaches neither this host nor private addresses",
    )
    bouncer_sandbox_folders: Annotated[str, AfterValidator(_folders)] = Field(
        "", description="folders with tools that tests may read: absolute paths, separated by colons"
    )

    otel_exporter_otlp_endpoint: Address | None = Field(
        None, description="OpenTelemetry collector to send traces to (OTLP over HTTP)"
    )

    openai_api_key: SecretStr | None = Field(None, description="key for openai: models")
    openai_base_url: EncryptedAddress | None = Field(
        None, description="another server that speaks OpenAI's protocol (Ollama, vLLM, Azure, LM Studio)"
    )
    anthropic_api_key: SecretStr | None = Field(None, description="key for anthropic: models")
    anthropic_base_url: EncryptedAddress | None = Field(
        None, description="a server that speaks Anthropic's protocol"
    )

    @field_validator("bouncer_notify_url")
    @classmethod
    def _secret_address(cls, url: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        # A validator in its type would hide from ``settings_options`` that it is a secret.
        if url:
            _encrypted(_address(url.get_secret_value()), info)
        return url

    @property
    def webhook_secrets(self) -> tuple[str, ...]:
        """The secrets that sign deliveries, newest first as the operator wrote them."""
        parts = reveal(self.github_webhook_secret).split(",")
        return tuple(part.strip() for part in parts if part.strip())

    @property
    def session_key(self) -> str:
        """The key of the dashboard's sessions, which end when it changes; empty if there is no log-in."""
        password, secret = reveal(self.bouncer_admin_password), reveal(self.github_app_client_secret)
        return "\0".join((password, self.bouncer_admins, secret)) if password or self.bouncer_admins else ""

    @property
    def marker_key(self) -> bytes:
        """The key that signs hidden markers in the Action; empty if there is no secret."""
        keys = map(reveal, (self.bouncer_marker_key, *self._provider_keys))
        return next(filter(None, keys), "").encode()

    @property
    def _provider_keys(self) -> tuple[SecretStr | None, ...]:
        """The keys of all model providers, as declared: a new one goes last, so that ``marker_key`` stays."""
        return tuple(getattr(self, name) for name in type(self).model_fields if name.endswith("_api_key"))

    def check_model(self) -> None:
        """Refuse to serve without a model. Raises SettingsError."""
        if not self.bouncer_model:
            raise SettingsError("BOUNCER_MODEL is not set: name the model that judges, such as openai:gpt-5-mini")

    @property
    def in_shadow(self) -> bool:
        """True if the whole server posts nothing."""
        return self.bouncer_mode == "shadow"

    @property
    def about_url(self) -> str:
        """The page that explains the bot to people who got a comment; empty if there is none."""
        server = f"{self.bouncer_public_url}/about" if self.bouncer_public_url else ""
        return self.bouncer_about_url or server

    @property
    def needs_setup(self) -> bool:
        """True if no setting of a GitHub App is there; if some are, it is a mistake and no first start."""
        app = (self.github_app_id, self.github_app_private_key, self.github_app_private_key_path)
        return not any((*app, self.github_webhook_secret))

    def completed(self) -> Settings:
        """Return the settings with what set-up in the browser stored, if the environment names no GitHub App.

        Raises SettingsError if the stored file cannot be used.
        """
        from bot.github.registration import stored

        app = stored(self.bouncer_data_dir) if self.needs_setup else None
        if app is None:
            return self
        credentials = {name.lower(): value for name, value in app.variables().items() if value}
        mode = self.bouncer_mode or app.mode
        values = {name: getattr(self, name) for name in self.model_fields_set}
        return _validated(**{**values, **credentials, "bouncer_mode": mode})

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every value that must never be shown, in all forms in which it can occur."""
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        fields = (getattr(self, name) for name in type(self).model_fields)
        values = [value.get_secret_value() for value in fields if isinstance(value, SecretStr)]
        try:
            password = make_url(self.database_url).password
        except (ArgumentError, ValueError):
            # ValueError: of a port, or a host in brackets.
            password = None
        return tuple(filter(None, (*values, *self.webhook_secrets, password, self.private_key())))

    @property
    def withheld(self) -> tuple[str, ...]:
        """The secrets that are kept out of the database, without passwords, which could be ordinary words."""
        keys = (self.bouncer_metrics_token, self.github_app_client_secret, *self._provider_keys)
        return tuple(filter(None, (*self.webhook_secrets, *map(reveal, keys), self.private_key())))

    @property
    def private_key_source(self) -> str:
        """The source of ``private_key`` in words: the variable, and the file that it names."""
        if self.github_app_private_key is not None or self.github_app_private_key_path is None:
            return "GITHUB_APP_PRIVATE_KEY"
        return f"GITHUB_APP_PRIVATE_KEY_PATH: {self.github_app_private_key_path}"

    def private_key(self) -> str | None:
        """The App's key as PEM text, from the variable or the file.

        Raises SettingsError if the file cannot be read.
        """
        if self.github_app_private_key is not None:
            # Many hosts keep a variable on one line, with the line ends written out.
            return self.github_app_private_key.get_secret_value().replace("\\n", "\n")
        if self.github_app_private_key_path is None:
            return None
        return _text(self.github_app_private_key_path, self.private_key_source)


class Workflow(BaseSettings):
    """Variables of a step of a GitHub workflow, without its token and the API's address; empty outside of one."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True)

    github_event_name: str = ""
    github_event_path: Path | None = None
    github_step_summary: Path | None = None


def reveal(secret: SecretStr | None) -> str:
    """Return the text of a secret setting; empty if it is not set."""
    return secret.get_secret_value() if secret else ""


def _text(file: Path, place: str) -> str:
    """Return the text of a file. Raises SettingsError that begins with ``place``."""
    try:
        # Some editors begin a file with a mark.
        return read_file(file, _LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SettingsError(f"{place}: not UTF-8 text") from None
    except OSError as error:
        raise SettingsError(f"{place}: {error.strerror or error}") from None


def export(file: Path) -> None:
    """Set the variables of an env file in this process's environment, except those that are set.

    Raises SettingsError, also for a line that would be ignored.
    """
    text = _text(file, str(file))
    for binding in parse_stream(StringIO(text)):
        if binding.error:
            raise SettingsError(f"{file}, line {binding.original.line}: not of the form NAME=value")
    for name, value in dotenv_values(stream=StringIO(text)).items():
        if value is not None and not os.environ.get(name):
            os.environ[name] = value


def load(*, env_file: Path | None = None, **overrides: Any) -> Settings:
    """Read the settings of the environment; ``overrides`` (the command line) win if they are not None.

    Servers export ``env_file``, the ``.env`` of their folder, if it exists; commands that work on a checkout read
    no file by themselves. Raises SettingsError with one line that names the variable.
    """
    if env_file is not None and env_file.is_file():
        export(env_file)
    options = {name: value for name, value in overrides.items() if value is not None}
    return _validated(**options).completed()


def _validated(**values: Any) -> Settings:
    try:
        return Settings(**values)
    except ValidationError as error:
        place, message = first_fault(error)
        raise SettingsError(f"{place.upper()}: {message}") from None


def unknown_variables() -> dict[str, str]:
    """Return the BOUNCER_* variables that no setting reads, each with the closest name or an empty text."""
    names = {name.upper() for name in Settings.model_fields}
    variables = {name for name in os.environ if name.startswith("BOUNCER_")}
    return {name: next(iter(get_close_matches(name, names, n=1)), "") for name in sorted(variables - names)}
