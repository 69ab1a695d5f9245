"""Checks over the network: GitHub as the App sees it, the public address, and each model of the chain."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import httpx2
from pydantic import ValidationError

from bot import app
from bot.cli.doctor import Diagnosis, fail, note, ok
from bot.core.errors import ForgeError, ModelError, SettingsError, TransientError
from bot.core.frozen import Frozen
from bot.core.http_client import HttpClient
from bot.github import webhook
from bot.github.registration import manifest
from bot.models.budget import Budget, MemoryBudget
from bot.models.protocol import Prompt
from bot.models.registry import Models, leaves
from bot.settings import Settings
from bot.web.public import NONCE

if TYPE_CHECKING:
    from bot.github.app import AppInfo, GitHubApp, Installation


#: A token is issued a minute back and good for five: beyond this GitHub refuses it, seconds.
MAX_SKEW = 60.0
#: GitHub keeps deliveries for about this long.
KEPT = timedelta(days=3)
_SECONDS = 10.0


def github(settings: Settings) -> Iterator[Diagnosis]:
    """Check that GitHub can be reached, the clock, permissions and events, the webhook and its deliveries.

    Checks without credentials come first, then those as the App.
    """
    reached = tuple(_reach(settings))
    yield from reached
    if any(finding.state == "fail" for finding in reached):
        return
    try:
        github_app = app.build_app(settings)
    except SettingsError as error:
        yield fail("github app", str(error), "see the settings above")
        return
    with github_app:
        try:
            yield from _app(github_app, settings)
        except (ForgeError, TransientError) as error:
            yield fail("github app", str(error), "check that GITHUB_APP_ID and the private key belong together")


def _reach(settings: Settings) -> Iterator[Diagnosis]:
    url = settings.github_api_url
    try:
        with HttpClient(_SECONDS) as client:
            response = client.get(url)
    except httpx2.HTTPError as error:
        yield fail(
            "github", f"{url} does not answer ({type(error).__name__})", "check GITHUB_API_URL and the network"
        )
        return
    if response.status_code >= 500:
        yield fail("github", f"{url} answers {response.status_code}", "try again later")
        return
    yield ok("github", f"{url} answers")
    if date := response.headers.get("date"):
        yield _clock(date, time.time())


def _clock(date: str, now: float) -> Diagnosis:
    try:
        skew = now - parsedate_to_datetime(date).timestamp()
    except ValueError:
        return note("clock", "GitHub's time cannot be read")
    if abs(skew) > MAX_SKEW:
        way = "ahead of" if skew > 0 else "behind"
        return fail("clock", f"{abs(skew):.0f} s {way} GitHub's: its tokens are refused", "let NTP set the clock")
    return ok("clock", f"within {max(1, round(abs(skew)))} s of GitHub's")


def _app(app: GitHubApp, settings: Settings) -> Iterator[Diagnosis]:
    info = app.app()
    yield ok("github app", f"{info.slug} (id {info.id}), {info.html_url}")
    yield from _rights(info)
    installations = app.installations()
    yield from _installations(installations, info)
    if active := [installation for installation in installations if not installation.suspended]:
        yield from _graphql(app, active[0].id)
    yield _webhook(app.webhook_url(), settings)
    yield _deliveries(app)


def _rights(info: AppInfo) -> Iterator[Diagnosis]:
    needs = manifest()
    if gaps := needs.gaps(info.permissions, info.events):
        where = "change it in the App's settings under Permissions & events, and have installations accept it"
        yield fail("permissions and events", f"missing: {', '.join(gaps)}", where)
    else:
        yield ok("permissions and events", "all that app.yml names")
    most = needs.extended(test_pulls=True, members=True).default_permissions
    if spare := [name for name in info.permissions if name not in most]:
        yield note("permissions", f"more than is used: {', '.join(spare)}", "take them away")
    if info.permissions.get("contents") != "write":
        modes = "reproduce.mode: pull and gate.mode: draft"
        yield note("permissions", f"contents: write is missing, so {modes} do not work")


def _installations(installations: tuple[Installation, ...], info: AppInfo) -> Iterator[Diagnosis]:
    needs = manifest()
    if not installations:
        yield note("installations", "none yet", f"install the App: {info.html_url}/installations/new")
        return
    yield ok(
        "installations",
        f"{len(installations)} ({', '.join(installation.account for installation in installations[:5])})",
    )
    for installation in installations:
        if installation.suspended:
            yield note("installations", f"{installation.account} suspended the App")
        elif gaps := needs.gaps(installation.permissions, installation.events):
            message = f"{installation.account} has not granted {', '.join(gaps)}"
            yield fail("installations", message, "accept the request there")


_NO_LINKS = "verify knows linked issues from the pull request's text alone, and the gate is off"
#: A GraphQL field -> what does not work on a server without it, such as an older GitHub Enterprise Server.
_NEEDED_FIELDS = {
    "PullRequest.closingIssuesReferences": _NO_LINKS,
    "PullRequest.reviewThreads": "a resolved thread does not count as an answer to its finding",
    "Issue.closedByPullRequestsReferences": "the gate is off",
    "Mutation.convertPullRequestToDraft": "gate.mode: draft is off",
    "Mutation.markPullRequestReadyForReview": "gate.mode: draft is off",
}


def _graphql(app: GitHubApp, installation: int) -> Iterator[Diagnosis]:
    try:
        fields = app.graphql_fields(installation)
    except ForgeError:
        yield note("graphql", f"not there: {_NO_LINKS}", "update the server")
        return
    missing = [name for name in _NEEDED_FIELDS if name not in fields]
    for name in missing:
        yield note("graphql", f"{name} is missing: {_NEEDED_FIELDS[name]}", "update the server")
    if not missing:
        yield ok("graphql", "every field that is used")


def _webhook(url: str, settings: Settings) -> Diagnosis:
    expected = f"{settings.bouncer_public_url}/webhook" if settings.bouncer_public_url else None
    if not url:
        return fail(
            "webhook", "the App has no webhook URL", f"set it to {expected or 'https://YOUR-HOST/webhook'}"
        )
    if expected and url != expected:
        return fail("webhook", f"GitHub delivers to {url}, not to {expected}", "change it in the App's settings")
    parts = urlsplit(url)
    if not parts.path.endswith("/webhook"):
        return note("webhook", f"GitHub delivers to {url}", "Bouncer listens at /webhook, unless a proxy maps it")
    if parts.scheme != "https":
        return note("webhook", f"GitHub delivers to {url} in the clear", "put TLS in front")
    return ok("webhook", url)


def _deliveries(app: GitHubApp) -> Diagnosis:
    failed = app.failed_deliveries(datetime.now(UTC) - KEPT)
    if not failed:
        return ok("deliveries", "none failed in the last 3 days")
    last = failed[-1]
    when = f"{last.delivered_at:%Y-%m-%d %H:%M} UTC"
    return note(
        "deliveries",
        f"{len(failed)} failed in the last 3 days, the last one {last.event} at {when} with {last.status_code}",
        "`bouncer serve` has them delivered again",
    )


#: A reserved address (RFC 5737) that a client could claim to have.
_CLAIMED = "192.0.2.123"
#: A name that no server has (RFC 2606).
_FORGED_HOST = "forged.invalid"


class Arrival(Frozen):
    """How a request of ours reached the server: see ``/doctor`` in bot.web.public."""

    address: str
    url: str
    forwarded_for: tuple[str, ...]


def address(settings: Settings) -> Iterator[Diagnosis]:
    """Check the proxies: call the server at its public address, as a client that claims another address."""
    url = settings.bouncer_public_url
    if not url or not settings.webhook_secrets:
        yield note("public address", "not checked: BOUNCER_PUBLIC_URL or the webhook secret is not set")
        return
    nonce = f"doctor {secrets.token_hex(16)}"
    signature = webhook.sign(nonce.encode(), settings.webhook_secrets[0])
    headers = {
        NONCE: nonce,
        "X-Hub-Signature-256": signature,
        "X-Forwarded-For": _CLAIMED,
        "X-Forwarded-Host": _FORGED_HOST,
    }
    try:
        with HttpClient(_SECONDS) as client:
            response = client.get(f"{url}/doctor", headers=headers)
    except httpx2.HTTPError as error:
        message = f"{url} does not answer from here ({type(error).__name__})"
        yield note(
            "public address", message, "start the server, and run the doctor where that address can be reached"
        )
        return
    if response.status_code == 401:
        yield fail("public address", f"the server at {url} has another webhook secret", "set both to the same one")
        return
    try:
        arrival = Arrival.model_validate_json(response.content if response.is_success else b"")
    except ValidationError:
        message = f"{url}/doctor answers {response.status_code}"
        yield note("public address", message, "let the proxy pass on every path, or skip this check")
        return
    yield _proxies(arrival, url, settings.bouncer_trust_proxy)


def _proxies(arrival: Arrival, url: str, trusted: int) -> Diagnosis:
    subject = "public address"
    if arrival.address == _CLAIMED:
        return fail(
            subject,
            "a client can choose its own address (X-Forwarded-For): guessing the password is not slowed down",
            f"let the proxy set the header, and BOUNCER_TRUST_PROXY (now {trusted}) to the number of proxies",
        )
    if urlsplit(arrival.url).hostname == _FORGED_HOST:
        return fail(subject, "a client can choose X-Forwarded-Host", "let the proxy set that header")
    # A proxy appends the address that it sees, or replaces what the client sent.
    added = [value for value in arrival.forwarded_for if value != _CLAIMED]
    if len(added) != trusted:
        return note(
            subject,
            f"X-Forwarded-For has addresses of {len(added)} proxies, and BOUNCER_TRUST_PROXY is {trusted}: all "
            "visitors count as one address, so one who guesses passwords slows down everyone",
            f"set BOUNCER_TRUST_PROXY={len(added)}",
        )
    return ok(subject, f"{url} answers, and clients cannot choose their address (trusted proxies: {trusted})")


class Word(Frozen):
    """The smallest reply."""

    word: Literal["ok"]


#: Room for the thoughts of a reasoning model; the answer itself is a handful of tokens.
QUESTION = Prompt(
    purpose="doctor", system="You answer in JSON.", user='Answer {"word": "ok"}.', max_tokens=500, effort="low"
)


def models(settings: Settings) -> Iterator[Diagnosis]:
    """Ask every model of BOUNCER_MODEL and BOUNCER_JUDGE_MODEL for one word, in a schema."""
    try:
        built = app.build_models(settings)
    except SettingsError as error:
        yield fail("model", f"cannot be built: {error}")
        return
    chain = leaves(settings.bouncer_model) if settings.bouncer_model else []
    for model_id in chain:
        yield _budget(model_id, built, settings)
    for model_id in dict.fromkeys([*chain, *leaves(settings.bouncer_judge_model or "")]):
        if model_id:
            yield _ask(model_id, built)


def _budget(model_id: str, built: Models, settings: Settings) -> Diagnosis:
    limits = app.limits(settings, "owner/name")
    dollars = ", ".join(
        f"{limit.scope.partition(':')[0]} {limit.usd:.2f} USD" for limit in limits if limit.usd is not None
    )
    try:
        built.build(model_id, Budget(MemoryBudget(), limits))
    except SettingsError as error:
        return fail("budget", str(error))
    return ok("budget", f"{model_id}: {dollars} a day" if dollars else f"{model_id}: no USD limit is set")


def _ask(model_id: str, built: Models) -> Diagnosis:
    subject = f"model {model_id}"
    if model_id.startswith("recorded:"):
        return note(subject, "answers from a file and is not asked")
    try:
        reply = built.build(model_id).complete(QUESTION, Word)
    except SettingsError as error:
        return fail("model", str(error))
    except TransientError as error:
        return fail(subject, str(error), "try again; check its base URL and the network")
    except ModelError as error:
        return fail(subject, str(error), "check its name, key and base URL")
    usage = reply.usage
    cost = "price not known" if usage.cost_usd is None else f"{usage.cost_usd:.6f} USD"
    tokens = usage.input_tokens + usage.output_tokens
    return ok(subject, f"answers in the schema ({usage.seconds:.1f} s, {tokens} tokens, {cost})")
