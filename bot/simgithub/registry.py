"""Registering apps and installing them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cache

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.simgithub.state import App, InstallationState, Json, RepositoryState, Token, User, World


def create_app(world: World, manifest: Json, owner: User) -> App:
    """Create the app that a manifest describes, with a key and new secrets."""
    key = _key(len(world.apps))
    name = str(manifest["name"])
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    hook = manifest.get("hook_attributes") or {}
    app = App(
        id=world.next_id(),
        slug=slug,
        name=name,
        owner=owner,
        bot=world.user(f"{slug}[bot]"),
        private_key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        ).decode(),
        public_key=key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode(),
        client_secret=secrets.token_hex(20),
        webhook_url=hook.get("url", "") if hook.get("active", True) else "",
        webhook_secret=manifest.get("webhook_secret") or secrets.token_hex(20),
        events=tuple(manifest.get("default_events") or ()),
        permissions={"metadata": "read", **(manifest.get("default_permissions") or {})},
        setup_url=manifest.get("setup_url", ""),
        callback_urls=tuple(manifest.get("callback_urls") or ()),
    )
    world.apps[app.id] = app
    return app


@cache
def _key(number: int) -> rsa.RSAPrivateKey:
    """Return the key of a world's n-th app: worlds of one process share keys, as one takes 50 ms of CPU time."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def create_token(
    world: World, installation: InstallationState, repositories: Iterable[str], permissions: Mapping[str, str]
) -> Token:
    """Create a token that is valid for an hour."""
    token = Token(
        value="ghs_" + secrets.token_hex(18),
        installation=installation,
        repositories=tuple(repositories),
        permissions=dict(permissions),
        expires_at=world.now() + timedelta(hours=1),
    )
    world.tokens[token.value] = token
    return token


def install(world: World, app: App, account: User, repositories: list[RepositoryState]) -> InstallationState:
    """Give an app access to an account's repositories with all permissions that it asks for."""
    installation = InstallationState(
        id=world.next_id(),
        app=app,
        account=account,
        repositories=[repository.full_name for repository in repositories],
        permissions=dict(app.permissions),
        events=app.events,
    )
    world.installations[installation.id] = installation
    return installation
