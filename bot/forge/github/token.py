"""A repository as the holder of one token sees it, or as everybody does: no App of our own behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bot.core.model import Actor
from bot.forge.github.archive import Archives
from bot.forge.github.http import Client, Holder, Observe, read, unobserved
from bot.forge.github.reader import GitHubForge
from bot.forge.github.writer import GitHubWriter

_VIEWER = "query { viewer { login databaseId } }"

#: All that is asked in GraphQL here.
QUERIES = (_VIEWER,)

#: Nobody writes, so nothing that stands anywhere is ours.
_STRANGER = Actor(id=-1, login="bouncer[bot]", is_bot=True)


@contextmanager
def forge_as(
    token: str, repository: str, api_url: str, observe: Observe = unobserved
) -> Iterator[tuple[GitHubForge, GitHubWriter]]:
    """Both halves of the forge for ``owner/name``; without a token what is public can be read."""
    client, archives = Client(Holder(token), api_url, observe), Archives()
    viewers: list[Actor] = []

    def viewer(_: Any) -> Actor:
        if not viewers:
            viewers.append(_viewer(client) if token else _STRANGER)
        return viewers[0]

    try:
        yield GitHubForge(client, repository, viewer, archives), GitHubWriter(client, client, repository)
    finally:
        client.close()
        archives.close()


def _viewer(client: Client) -> Actor:
    # The one question that people, installations and workflows are all answered.
    value = client.graphql(_VIEWER, {})

    def convert() -> Actor:
        login = str(value["viewer"]["login"])
        return Actor(id=value["viewer"]["databaseId"], login=login, is_bot=login.endswith("[bot]"))

    return read(convert)
