"""A server that is being set up belongs to whoever has the link from its terminal, and to nobody else."""

from __future__ import annotations

import re

import requests

from tests.attacks.corpus import each
from tests.attacks.setup import PREVIEWS, TABLE, Knock
from tests.bot.web.setup.conftest import Browser, Site, browser, form_of, site  # noqa: F401


def knocked(site: Site, knock: Knock, **known: str) -> requests.Response:  # noqa: F811
    """The answer to a request; ``known`` takes the place of words in it."""
    path, form = knock.path, dict(knock.form or {})
    for word, value in known.items():
        path = path.replace(word, value)
        form = {name: each.replace(word, value) for name, each in form.items()}
    session = requests.Session()
    # What is attacked stands as it is on the wire.
    asked = session.prepare_request(
        requests.Request(knock.method, site.url, data=form if knock.form is not None else None)
    )
    asked.url = site.url + path
    asked.headers.update(knock.headers)
    if (cookie := known.get("COOKIE")) and knock.insider:
        asked.headers["Cookie"] = cookie
    return session.send(asked, timeout=10, allow_redirects=False)


def test_it_is_the_operator_s_alone(site: Site, browser: Browser) -> None:  # noqa: F811
    page = browser.open("/setup").text
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token
    state = form_of(browser.choose().text)[0].partition("state=")[2]
    cookie = "; ".join(f"{name}={value}" for name, value in browser.session.cookies.items())
    for never, name, knock in each(TABLE):
        answer = knocked(site, knock, TOKEN=token[1], STATE=state, COOKIE=cookie)
        what = (never, name, answer.status_code)
        assert 400 <= answer.status_code < 500, what
        assert knock.insider or "<form" not in answer.text, what
        assert "Set-Cookie" not in answer.headers, what
        assert not re.search(r'<script|"onload=', answer.text), what
        assert "evil" not in answer.headers.get("Content-Security-Policy", ""), what
        assert not site.folder.exists(), what
        assert site.github.world.apps == {}, what
    assert [each.path for each in site.github.requests if "conversions" not in each.path] == []
    # Still the operator's: none of it took the set-up away.
    back = browser.create(browser.choose()).headers["Location"]
    assert browser.open(back).status_code == 200
    assert browser.open(back).status_code in (400, 410), "an answer of GitHub's counts once"


def test_looks_at_the_link_spend_nothing(site: Site) -> None:  # noqa: F811
    for never, name, knock in each(PREVIEWS):
        answer = knocked(site, knock)
        assert "Set-Cookie" not in answer.headers, (never, name)
    assert Browser(site).begin().status_code == 200
