"""Build the dashboard and the access to ``/metrics`` from settings, for the web server."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bot.app import access, build_app, reveal
from bot.core.errors import ForgeError, OperatorError, SettingsError, TransientError

if TYPE_CHECKING:
    from bot.github.oauth import GitHubLogin
    from bot.github.protocol import OpenPull
    from bot.settings import Settings
    from bot.web.app import Pages
    from bot.web.public import Readers


def dashboard_pages(settings: Settings) -> tuple[Pages, ...]:
    """Return the pages beside the webhook: the dashboard, if a login to it is set."""
    github = _github_login(settings)
    if settings.bouncer_admin_password is None and github is None:
        return ()
    from bot.web.dashboard import Admins, DashboardSettings
    from bot.web.dashboard.pages import blueprint

    ids, logins, organizations = settings.admins
    dashboard = DashboardSettings(
        password=reveal(settings.bouncer_admin_password),
        github=github,
        admins=Admins(ids=ids, logins=logins, organizations=organizations),
        session_key=_session_key(settings),
        public_url=settings.bouncer_public_url,
        host=settings.host,
        web_url=settings.github_web_url,
        about_url=settings.about_url,
        model=settings.bouncer_model,
        paused=settings.bouncer_paused,
        may_open_pulls=partial(_may_open_pulls, settings),
        open_pulls=partial(_open_pulls, settings),
        # Set-up in the browser may choose it while the server runs.
        in_shadow=lambda: settings.completed().in_shadow,
        daily_usd=settings.bouncer_daily_budget_usd,
        repository_usd=settings.bouncer_repository_budget_usd,
        repository_calls=settings.bouncer_repository_calls,
    )
    return (partial(blueprint, dashboard),)


def _may_open_pulls(settings: Settings, repository: str) -> bool:
    """Return True if the App was granted what draft pull requests need; False if GitHub does not answer."""
    owner, _, name = repository.partition("/")
    try:
        with build_app(settings.completed()) as github:
            return github.installation_for(owner, name).permissions.get("contents") == "write"
    except (ForgeError, SettingsError, TransientError):
        return False


#: Pull requests on the dashboard's page.
_MAX_PULLS = 200


def _open_pulls(settings: Settings, repository: str) -> tuple[OpenPull, ...]:
    try:
        with access(settings.completed(), repository) as granted:
            return granted.forge.open_pulls(_MAX_PULLS)
    except (ForgeError, TransientError) as error:
        raise OperatorError(str(error)) from None


def metrics_readers(settings: Settings) -> Readers:
    """Return the rules of access to /metrics."""
    from bot.web.public import Readers

    return Readers(
        open=settings.bouncer_metrics == "open",
        token=reveal(settings.bouncer_metrics_token),
        session_key=_session_key(settings),
    )


def _session_key(settings: Settings) -> str:
    """Return the key of the dashboard's sessions, which end when it changes."""
    ways = (reveal(settings.bouncer_admin_password), settings.bouncer_admins)
    return "\0".join((*ways, reveal(settings.github_app_client_secret))) if any(ways) else ""


def _github_login(settings: Settings) -> GitHubLogin | None:
    """Return the login with GitHub; None if it has no users, or if the App is not set up yet.

    Raises SettingsError if it has users and a setting for it is missing.
    """
    if not settings.bouncer_admins or settings.needs_setup:
        return None
    from bot.github.oauth import GitHubLogin

    secret = reveal(settings.github_app_client_secret)
    if not settings.github_app_client_id or not secret:
        raise SettingsError(
            "BOUNCER_ADMINS needs GITHUB_APP_CLIENT_ID and GITHUB_APP_CLIENT_SECRET, to log in with"
        )
    return GitHubLogin(
        client_id=settings.github_app_client_id,
        client_secret=secret,
        web_url=settings.github_web_url,
        api_url=settings.github_api_url,
    )
