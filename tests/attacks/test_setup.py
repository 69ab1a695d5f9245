"""Only the holder of the link from the terminal can set up a server."""

from __future__ import annotations

import re

import requests

from tests.attacks.corpus import each
from tests.attacks.setup import PREVIEWS, TABLE, Knock
from tests.bot.web.setup.conftest import Browser, Site, browser, form_of, site  # noqa: F401


def knocked(site: Site, knock: Knock, **values: str) -> requests.Response:  # noqa: F811
    """Return the answer to a request; ``values`` replace words in it."""
    path, form = knock.path, dict(knock.form or {})
    for word, value in values.items():
        path = path.replace(word, value)
        form = {name: text.replace(word, value) for name, text in form.items()}
    session = requests.Session()
    # The path is sent unchanged: requests would normalise it.
    request = session.prepare_request(
        requests.Request(knock.method, site.url, data=form if knock.form is not None else None)
    )
    request.url = site.url + path
    request.headers.update(knock.headers)
    if (cookie := values.get("COOKIE")) and knock.insider:
        request.headers["Cookie"] = cookie
    return session.send(request, timeout=10, allow_redirects=False)


def test_it_is_the_operator_s_alone(site: Site, browser: Browser) -> None:  # noqa: F811
    page = browser.open("/setup").text
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token
    state = form_of(browser.choose().text)[0].partition("state=")[2]
    cookie = "; ".join(f"{name}={value}" for name, value in browser.session.cookies.items())
    for never, name, knock in each(TABLE):
        answer = knocked(site, knock, TOKEN=token[1], STATE=state, COOKIE=cookie)
        context = (never, name, answer.status_code)
        assert 400 <= answer.status_code < 500, context
        assert knock.insider or "<form" not in answer.text, context
        assert "Set-Cookie" not in answer.headers, context
        assert not re.search(r'<script|"onload=', answer.text), context
        assert "evil" not in answer.headers.get("Content-Security-Policy", ""), context
        assert not site.folder.exists(), context
        assert site.github.world.apps == {}, context
    assert [call.path for call in site.github.requests if "conversions" not in call.path] == []
    # Still the operator's: none of it took the set-up away.
    back = browser.create(browser.choose()).headers["Location"]
    assert browser.open(back).status_code == 200
    assert browser.open(back).status_code in (400, 410), "an answer of GitHub's counts once"


def test_link_previews_do_not_use_up_the_link(site: Site) -> None:  # noqa: F811
    for never, name, knock in each(PREVIEWS):
        answer = knocked(site, knock)
        assert "Set-Cookie" not in answer.headers, (never, name)
    assert Browser(site).begin().status_code == 200
