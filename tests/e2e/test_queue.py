"""``bouncer queue`` and the page on the dashboard: open pull requests in the order in which to look at them."""

from __future__ import annotations

import json
import re

from tests.e2e.site import APP, BROKEN, CLEAR, FIXED, WORSE, Repository, Site


def queue(shop: Site, home: str, *options: str, code: int = 0) -> str:
    return shop.run("queue", home, *options, code=code)


def test_verified_ones_come_first_then_those_that_wait_for_us(shop: Site, repository: Repository) -> None:
    home, github = repository(**{".github/bouncer.yml": "review: {mode: 'off'}\n"}), shop.github
    issue = github.open_issue(home, *CLEAR)

    def opened(title: str, text: str, *closes: int, draft: bool = False) -> int:
        body = "".join(f"Fixes #{number}\n" for number in closes)
        return github.open_pull(home, title, body, "alice", files={APP: text}, closes=closes, draft=draft)

    short = opened("Return value <b>", BROKEN, issue)
    draft = opened("Draft", FIXED, issue, draft=True)
    commented, waiting = opened("Tidy", WORSE), opened("Tidy more", WORSE)
    good = opened("Keep empty files", FIXED, issue)
    shop.quiet()
    github.advance(minutes=1)
    github.comment(home, commented, "Please split this.", "mia")
    github.comment(home, waiting, "Please split this.", "mia")
    github.comment(home, waiting, "Me too.", "carol")
    github.advance(minutes=1)
    shop.slowly.comment(home, waiting, "Done.", "alice")
    before = len(github.requests)
    answer = json.loads(queue(shop, home, "--json"))
    paths = [request.path for request in list(github.requests)[before:] if "access_tokens" not in request.path]
    assert paths.count("/graphql") == 1
    rows = [(row["number"], row["verdict"], row["turn"]) for row in answer["pulls"]]
    assert rows == [
        (good, "verified", "maintainers"),
        (waiting, "not judged", "maintainers"),
        (draft, "not judged", "author"),
        (commented, "not judged", "author"),
        (short, "may fall short", "author"),
    ]
    assert answer["pulls"][0]["url"].endswith(f"/{home}/pull/{good}")
    text = queue(shop, home)
    assert text.startswith(f"{home}, 5 open pull requests: 2 wait for a maintainer, 3 for the author.\n\nverified")

    page = shop.browser().get(f"/queue?repository={home}")
    assert re.findall(r'/pull/(\d+)">', page) == [str(row[0]) for row in rows]
    assert "Return value &lt;b&gt;" in page


def test_a_repository_that_cannot_be_read_is_one_clear_line(shop: Site) -> None:
    shop.github.create_repository("elsewhere/private")
    assert queue(shop, "elsewhere/private", code=2).startswith("bouncer: elsewhere/private: ")
    assert queue(shop, "nonsense", code=2).count("\n") == 1
