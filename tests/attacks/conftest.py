"""One installation for all classes that attack a running app."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.site import Site, site


@pytest.fixture(scope="package")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Web and worker on SQLite, in processes of their own, with a model provider and GitHub on loopback."""
    with site(tmp_path_factory.mktemp("site")) as running_site:
        yield running_site
