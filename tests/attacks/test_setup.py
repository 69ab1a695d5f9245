"""Only the holder of the link from the terminal can set up a server."""

from __future__ import annotations

import re
from typing import NamedTuple

import requests

from tests.attacks.corpus import cases
from tests.bot.web.setup.conftest import Browser, Site, browser, form_of, site  # noqa: F401


class Knock(NamedTuple):
    """One request; ``insider`` is the browser that opened the link."""

    method: str
    path: str
    form: dict[str, str] | None = None
    headers: dict[str, str] = {}  # noqa: RUF012 - a field of a tuple that is never changed
    insider: bool = False


def _back(query: str) -> Knock:
    return Knock("GET", f"/setup/callback?{query}", insider=True)


def _fields(**fields: str) -> Knock:
    return Knock("POST", "/setup", fields, insider=True)


#: All refused, before the set-up is done.
TABLE = {
    "somebody without the link sets the server up": {
        "the page": Knock("GET", "/setup"),
        "the form": Knock("POST", "/setup", {"name": "x"}),
        "the way back": Knock("GET", "/setup/callback?code=a&state=b"),
        "a link that was guessed": Knock("GET", "/setup?link=guess"),
        "a button that was guessed": Knock("POST", "/setup/begin", {"link": "guess"}),
        "an empty link": Knock("POST", "/setup/begin", {"link": ""}),
        "no link": Knock("POST", "/setup/begin", {}),
        "the link in capitals": Knock("POST", "/setup/begin", {"link": "ONE-TIME-LINK"}),
        "a link that is no ASCII": Knock("POST", "/setup/begin", {"link": "é" * 20}),
        "the link that was used": Knock("POST", "/setup/begin", {"link": "one-time-link"}),
        "the link in the address of the button": Knock("POST", "/setup/begin?link=one-time-link", {}),
        "a cookie that was made up": Knock("GET", "/setup", headers={"Cookie": "bouncer_setup=x"}),
        "the link as a cookie": Knock("GET", "/setup", headers={"Cookie": "bouncer_setup=one-time-link"}),
        "an empty cookie": Knock("GET", "/setup", headers={"Cookie": "bouncer_setup="}),
        "who says that he is here": Knock("GET", "/setup", headers={"X-Forwarded-For": "127.0.0.1"}),
        "another method for the button": Knock("GET", "/setup/begin?link=one-time-link"),
        "a path in disguise": Knock("GET", "/setup/../setup"),
    },
    "an answer of GitHub's is forged": {
        "no state": _back("code=abc"),
        "an empty state": _back("code=abc&state="),
        "a state that was guessed": _back("code=abc&state=guess"),
        "a state that is no ASCII": _back("code=abc&state=%C3%A9"),
        "the link as a state": _back("code=abc&state=one-time-link"),
        "two states": _back("code=abc&state=guess&state=STATE"),
        "no code": _back("state=STATE"),
        "a code that is a path": _back("code=..%2F..%2Fapp&state=STATE"),
        "a code that is an address": _back("code=https://evil.example/x&state=STATE"),
        "a code with a line break": _back("code=a%0d%0aX:%20y&state=STATE"),
        "a code with a question": _back("code=a%3Fb%3Dc%23d&state=STATE"),
    },
    "another site's form sets the server up": {
        "no token": _fields(name="x"),
        "a token that was guessed": _fields(name="x", token="guess"),
        "a token that is no ASCII": _fields(name="x", token="é"),
    },
    "a field leads elsewhere or becomes markup": {
        "a name that is markup": _fields(name='"><script>alert(1)</script>', token="TOKEN"),
        "an address that is a script": _fields(web_url="javascript:alert(1)", token="TOKEN"),
        "an address with a password": _fields(web_url="https://me:secret@github.example", token="TOKEN"),
        "an address with a question": _fields(web_url="https://github.example/?x=1", token="TOKEN"),
        "an address that ends the policy": _fields(web_url="https://github.example; script-src *", token="TOKEN"),
        "an address that ends the attribute": _fields(web_url='https://x"onload="alert(1)', token="TOKEN"),
        "an address with a line break": _fields(web_url="https://x\r\nSet-Cookie: y=z", token="TOKEN"),
        "an address that is a file": _fields(public_url="file:///etc/passwd", token="TOKEN"),
        "a webhook at a port of nobody": _fields(webhook_url="https://host:0", token="TOKEN"),
        "an organization that is a path": _fields(owner="organization", organization="a/../b", token="TOKEN"),
        "an organization of dots": _fields(owner="organization", organization="..", token="TOKEN"),
    },
}

#: Programs that look at a link without anybody's wish; afterwards it still works.
PREVIEWS = {
    "a look at the link spends it": {
        "a preview": Knock("GET", "/setup?link=one-time-link"),
        "a preview of the headers": Knock("HEAD", "/setup?link=one-time-link"),
        "a browser that fetches ahead": Knock("GET", "/setup?link=one-time-link", headers={"Purpose": "prefetch"}),
        "a question for what is allowed": Knock("OPTIONS", "/setup/begin"),
        "the button's address": Knock("GET", "/setup/begin"),
    }
}

TABLES = (TABLE, PREVIEWS)


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


def test_only_the_holder_of_the_link_can_set_a_server_up(site: Site, browser: Browser) -> None:  # noqa: F811
    page = browser.open("/setup").text
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token
    state = form_of(browser.choose().text)[0].partition("state=")[2]
    cookie = "; ".join(f"{name}={value}" for name, value in browser.session.cookies.items())
    for never, name, knock in cases(TABLE):
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
    for never, name, knock in cases(PREVIEWS):
        answer = knocked(site, knock)
        assert "Set-Cookie" not in answer.headers, (never, name)
    assert Browser(site).begin().status_code == 200
