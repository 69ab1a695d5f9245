"""The operator's side: the environment and env files, read once, here and nowhere else."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from io import StringIO
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from bot.core.errors import SettingsError
from bot.core.io_limits import read_file
from bot.sandbox.protocol import IMAGE

#: Of env files; some editors begin one with a mark.
_ENCODING = "utf-8-sig"
#: Of an env file or a key, bytes.
_LARGEST = 1 << 20
#: Longest value of a number or boolean that an error shows, characters; a key is longer.
_LONGEST_SHOWN = 12
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


class Settings(BaseSettings):
    """Everything an operator can set. Secrets never show in ``repr`` or logs."""

    model_config = SettingsConfigDict(
        env_file_encoding=_ENCODING, frozen=True, extra="ignore", env_ignore_empty=True
    )

    # First: the addresses below are checked against it.
    bouncer_allow_http: bool = Field(
        False,
        description="allow plain http:// to other machines for GitHub, models and notices: keys and texts can be "
        "read on the way",
    )

    github_app_id: int | None = Field(None, gt=0, description="the App's numeric id")
    github_app_private_key: SecretStr | None = Field(None, description="the App's key, PEM text")
    github_app_private_key_path: Path | None = Field(None, description="a file that holds the App's key")
    github_webhook_secret: SecretStr | None = Field(
        None, description="webhook secret; several, separated by commas, while one is being replaced"
    )
    github_app_client_id: str | None = Field(None, description="the App's client id, to log in with GitHub")
    github_app_client_secret: SecretStr | None = Field(None, description="the App's client secret")
    github_api_url: str = Field(
        "https://api.github.com", description="the API's address; for GitHub Enterprise Server https://HOST/api/v3"
    )
    github_web_url: str = Field("https://github.com", description="GitHub's address in a browser")

    github_token: SecretStr | None = Field(
        None, description="a personal or workflow token, for commands that read a repository when no App is set up"
    )

    database_url: str = Field("sqlite:///bouncer.db", description="sqlite:///FILE or postgresql://...")
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on")
    log_level: str = Field("INFO", description="DEBUG, INFO, WARNING or ERROR")

    bouncer_model: str = Field(
        "",
        description="the model that judges, as provider:name; more after commas, to fall back on when one fails; "
        "the server does not start without it",
    )
    bouncer_model_seconds: float = Field(
        300.0, gt=0, le=3600, description="seconds to wait for one answer from a model"
    )
    bouncer_judge_model: str | None = Field(None, description="the model that judges reviews in bouncer-eval")
    bouncer_data_dir: Path = Field(
        Path("bouncer-data"), description="folder for credentials from set-up, and caches"
    )
    bouncer_admin_password: SecretStr | None = Field(
        None, description="password for the dashboard, which is off unless this or BOUNCER_ADMINS is set"
    )
    bouncer_admins: str = Field(
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
    bouncer_notify_secret: SecretStr | None = Field(
        None, description="secret that signs what is sent to BOUNCER_NOTIFY_URL"
    )
    bouncer_marker_key: SecretStr | None = Field(
        None, description="secret that signs hidden markers in the Action; otherwise the model's key does"
    )
    bouncer_prompts_dir: Path | None = Field(None, description="folder with your own prompt templates")
    bouncer_prices_file: Path | None = Field(None, description="file with your own model prices")
    bouncer_maps_file: Path | None = Field(
        None,
        description="file with probability maps by model, written by bouncer-eval calibrate; for mean(...)",
    )
    bouncer_record_file: Path | None = Field(
        None, description="file to record models' replies in, to be replayed as recorded:FILE#NAME"
    )
    bouncer_database_seconds: float = Field(30.0, ge=0, description="seconds to wait for PostgreSQL at start")
    bouncer_public_url: str | None = Field(
        None, description="this server's address as browsers and GitHub reach it"
    )
    bouncer_trust_proxy: int = Field(
        0,
        ge=0,
        le=10,
        description="number of proxies in front whose X-Forwarded-* headers are trusted: 0 = none; true = 1",
    )
    bouncer_daily_budget_usd: float | None = Field(
        None, ge=0, description="most that models may cost per day, all repositories together"
    )
    bouncer_owner_budget_usd: float | None = Field(
        None, ge=0, description="most that models may cost per day for one owner"
    )
    bouncer_repository_budget_usd: float | None = Field(
        None, ge=0, description="most that models may cost per day for one repository"
    )
    bouncer_budget_reserve: int = Field(
        20, ge=0, lt=100, description="percentage of every budget kept for maintainers' commands"
    )
    bouncer_repository_calls: int | None = Field(
        2_000,
        ge=0,
        description="most model calls per day for one repository; also limits models without a known price",
    )
    bouncer_keep_days: int = Field(
        180,
        ge=0,
        description="days to keep models' replies, and decisions on closed issues and pull requests; 0 = forever",
    )
    bouncer_mode: Literal["live", "shadow"] | None = Field(
        None,
        description="shadow: judge and record everything, post nothing, whatever a bouncer.yml says; "
        "without it the choice made at set-up counts, else live",
    )
    bouncer_about_url: str | None = Field(
        None,
        description="page that comments link to for what this bot does; otherwise /about below BOUNCER_PUBLIC_URL",
    )
    bouncer_paused: bool = Field(
        False, description="pause everything: record deliveries, call no model, post nothing"
    )
    bouncer_sandbox: Literal["bubblewrap", "docker", "off"] = Field(
        "bubblewrap", description="what runs tests: bubblewrap, docker, or off"
    )
    bouncer_sandbox_image: str = Field(IMAGE, description="image for BOUNCER_SANDBOX=docker")
    bouncer_sandbox_network: str | None = Field(
        None,
        description="network of set-up commands: none = no network; with docker, else the name of a Docker "
        "network that reaches neither this host nor private addresses",
    )
    bouncer_sandbox_folders: str = Field(
        "", description="folders with tools that tests may read: absolute paths, separated by colons"
    )

    otel_exporter_otlp_endpoint: str | None = Field(
        None, description="OpenTelemetry collector to send traces to (OTLP over HTTP)"
    )

    openai_api_key: SecretStr | None = Field(None, description="key for openai: models")
    openai_base_url: str | None = Field(
        None, description="another server that speaks OpenAI's protocol (Ollama, vLLM, Azure, LM Studio)"
    )
    anthropic_api_key: SecretStr | None = Field(None, description="key for anthropic: models")
    anthropic_base_url: str | None = Field(None, description="another server that speaks Anthropic's protocol")

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, value: str) -> str:
        if value.upper() not in ("DEBUG", "INFO", "WARNING", "ERROR"):
            raise ValueError("must be DEBUG, INFO, WARNING or ERROR")
        return value.upper()

    @field_validator(
        "github_api_url",
        "github_web_url",
        "openai_base_url",
        "anthropic_base_url",
        "bouncer_public_url",
        "bouncer_about_url",
        "bouncer_notify_url",
        "otel_exporter_otlp_endpoint",
    )
    @classmethod
    def _http(cls, value: str | SecretStr | None) -> str | SecretStr | None:
        if value is None:
            return None
        parts = urlsplit(value if isinstance(value, str) else value.get_secret_value())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an http:// or https:// URL")
        if isinstance(value, SecretStr):
            return value
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("must carry no user, password, query or fragment")
        return value.rstrip("/")

    @field_validator(
        "github_api_url", "github_web_url", "openai_base_url", "anthropic_base_url", "bouncer_notify_url"
    )
    @classmethod
    def _encrypted(cls, value: str | SecretStr | None, info: ValidationInfo) -> str | SecretStr | None:
        url = value.get_secret_value() if isinstance(value, SecretStr) else value
        if url and readable_on_the_way(url) and not info.data.get("bouncer_allow_http"):
            raise ValueError("plain http:// to another machine: use https://, or set BOUNCER_ALLOW_HTTP=true")
        return value

    @field_validator("bouncer_trust_proxy", mode="before")
    @classmethod
    def _proxies(cls, value: object) -> object:
        return {"true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0}.get(str(value).lower(), value)

    @field_validator("bouncer_admins")
    @classmethod
    def _accounts(cls, value: str) -> str:
        for account in filter(None, map(str.strip, value.split(","))):
            if not _ACCOUNT.fullmatch(account.removeprefix("org:")):
                raise ValueError(f"{account!r} is neither a GitHub login nor org:NAME")
        return value

    @field_validator("bouncer_sandbox_folders")
    @classmethod
    def _folders(cls, value: str) -> str:
        for folder in map(Path, filter(None, value.split(":"))):
            if not folder.is_absolute() or folder.resolve() == Path("/") or not folder.is_dir():
                raise ValueError(f"{folder} is no absolute path of a folder (and never everything)")
        return value

    @field_validator("database_url")
    @classmethod
    def _database(cls, value: str) -> str:
        scheme = value.partition("://")[0].partition("+")[0]
        if scheme == "postgres":
            return "postgresql" + value[len("postgres") :]
        if scheme not in ("sqlite", "postgresql"):
            raise ValueError("must start with sqlite:/// or postgresql://")
        return value

    @property
    def webhook_secrets(self) -> tuple[str, ...]:
        """The secrets that sign deliveries, newest first as the operator wrote them."""
        if self.github_webhook_secret is None:
            return ()
        parts = self.github_webhook_secret.get_secret_value().split(",")
        return tuple(part.strip() for part in parts if part.strip())

    @property
    def session_key(self) -> str:
        """The key of the dashboard's sessions, which end when it changes; empty if there is no log-in."""
        secrets = (self.bouncer_admin_password, self.github_app_client_secret)
        password, secret = (value.get_secret_value() if value else "" for value in secrets)
        return "\0".join((password, self.bouncer_admins, secret)) if password or self.bouncer_admins else ""

    @property
    def marker_key(self) -> bytes:
        """The key that signs hidden markers in the Action; empty if there is no secret."""
        keys = (self.bouncer_marker_key, *self._provider_keys)
        return next((key.get_secret_value().encode() for key in keys if key and key.get_secret_value()), b"")

    @property
    def _provider_keys(self) -> tuple[SecretStr | None, ...]:
        """The keys of all model providers, as declared: a new one goes last, so that ``marker_key`` stays."""
        return tuple(getattr(self, name) for name in type(self).model_fields if name.endswith("_api_key"))

    def check_model(self) -> None:
        """Refuse to serve without a model. Raises SettingsError."""
        if not self.bouncer_model:
            raise SettingsError(
                "BOUNCER_MODEL is not set: name the model that judges, such as openai:gpt-5-mini; "
                "without one nothing is ever posted"
            )

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

        Raises SettingsError if the stored file cannot be read.
        """
        from bot.github.registration import stored

        app = stored(self.bouncer_data_dir) if self.needs_setup else None
        if app is None:
            return self
        if readable_on_the_way(app.api_url) and not self.bouncer_allow_http:
            raise SettingsError(
                f"GITHUB_API_URL: set-up stored {app.api_url}: set BOUNCER_ALLOW_HTTP=true to use it"
            )
        return self.model_copy(
            update={
                "github_app_id": app.app_id,
                "github_app_private_key": SecretStr(app.private_key),
                "github_webhook_secret": SecretStr(app.webhook_secret),
                "github_app_client_id": app.client_id or None,
                "github_app_client_secret": SecretStr(app.client_secret) if app.client_secret else None,
                "github_api_url": app.api_url,
                "github_web_url": app.web_url,
                "bouncer_mode": self.bouncer_mode or app.mode,
            }
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every value that must never be shown, in all forms in which it can occur."""
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        fields = (getattr(self, name) for name in type(self).model_fields)
        values = [value.get_secret_value() for value in fields if isinstance(value, SecretStr)]
        try:
            password = make_url(self.database_url).password
        except ArgumentError:
            password = None
        return tuple(filter(None, (*values, *self.webhook_secrets, password, self.private_key())))

    @property
    def withheld(self) -> tuple[str, ...]:
        """The secrets that are kept out of the database, without passwords, which could be ordinary words."""
        keys = (self.bouncer_metrics_token, self.github_app_client_secret, *self._provider_keys)
        values = (key.get_secret_value() for key in keys if key)
        return tuple(filter(None, (*self.webhook_secrets, *values, self.private_key())))

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
        try:
            return read_file(self.github_app_private_key_path, _LARGEST).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
            raise SettingsError(
                f"GITHUB_APP_PRIVATE_KEY_PATH: cannot read {self.github_app_private_key_path}: {why}"
            ) from None


class Workflow(BaseSettings):
    """Variables of a step of a GitHub workflow, without its token and the API's address; empty outside of one."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True)

    github_event_name: str = ""
    github_event_path: Path | None = None
    github_step_summary: Path | None = None


def _env_text(file: Path) -> str:
    """Return the text of an env file. Raises SettingsError for a line that would be ignored."""
    try:
        text = read_file(file, _LARGEST).decode(_ENCODING)
    except UnicodeDecodeError:
        raise SettingsError(f"{file}: not UTF-8 text") from None
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror or error}") from None
    for binding in parse_stream(StringIO(text)):
        if binding.error:
            raise SettingsError(f"{file}, line {binding.original.line}: not of the form NAME=value")
    return text


def export(file: Path) -> None:
    """Set the variables of an env file in this process's environment, except those that are set.

    For a file that the user named: commands that work on a checkout read no file by themselves. Raises
    SettingsError.
    """
    for name, value in dotenv_values(stream=StringIO(_env_text(file))).items():
        if value is not None:
            os.environ.setdefault(name, value)


def load(*, env_file: Path | None = None, **overrides: Any) -> Settings:
    """Read the settings of the environment; ``overrides`` (the command line) win if they are not None.

    ``env_file`` is read too if it exists; servers pass ``.env`` of their folder. Raises SettingsError with one
    line that names the variable.
    """
    options = {name: value for name, value in overrides.items() if value is not None}
    if env_file is not None and env_file.is_file():
        _env_text(env_file)
    try:
        return Settings(_env_file=env_file, **options).completed()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]).upper() if first["loc"] else "settings"
        raise SettingsError(f"{name}: {_message(dict(first))}") from None


def _message(error: Mapping[str, Any]) -> str:
    """Return pydantic's message in plain words, without a long value: it may be a secret under a wrong name."""
    value = repr(error["input"]) if len(str(error["input"])) <= _LONGEST_SHOWN else ""
    if error["type"] in ("int_parsing", "float_parsing"):
        return f"not a number: {value}" if value else "not a number"
    if error["type"] == "bool_parsing":
        return f"must be true or false, not {value}" if value else "must be true or false"
    return str(error["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")


def unknown_variables(env_file: Path | None = None) -> dict[str, str]:
    """Return the BOUNCER_* variables that no setting reads, each with the closest name or an empty text."""
    names = {name.upper() for name in Settings.model_fields}
    variables = {name for name in os.environ if name.startswith("BOUNCER_")}
    if env_file is not None and env_file.is_file():
        variables |= {name for name in dotenv_values(env_file) if name.startswith("BOUNCER_")}
    return {name: next(iter(get_close_matches(name, names, n=1)), "") for name in sorted(variables - names)}
