"""One site for all tests that do not kill it: each works in a repository of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.bot.conftest import database_url, postgres_uri  # noqa: F401
from tests.e2e.site import Site, site

_numbers = count(1)


@pytest.fixture(scope="package")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Web and worker on SQLite, in processes of their own."""
    folder: Path = tmp_path_factory.mktemp("site")
    with site(folder) as shop:
        yield shop


@pytest.fixture
def repository(shop: Site) -> Callable[..., str]:
    """Makes repositories for one test alone."""

    def make(**files: str) -> str:
        return shop.repository(f"acme/r{next(_numbers)}", files)

    return make
