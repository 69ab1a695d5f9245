"""Requests to the dashboard: by whom, and what must come of them."""

from __future__ import annotations

from typing import NamedTuple

HOSTILE = '<script>document.title="owned"</script>"\'><img src=x onerror=alert(1)>'


class Visit(NamedTuple):
    """One request; ``statuses`` are the answers that are right."""

    path: str
    statuses: tuple[int, ...]
    form: dict[str, str] | None = None
    logged_in: bool = False
    headers: dict[str, str] = {}  # noqa: RUF012 - a field of a tuple that is never changed
    method: str = ""


def _closed(path: str, **values: str) -> Visit:
    return Visit(path, (302, 403, 404, 405), **values)  # type: ignore[arg-type]


def _cookie(value: str) -> dict[str, str]:
    return {"Cookie": f"bouncer={value}"}


_PAGES = (
    "/",
    "/decisions",
    "/decisions/1",
    "/decisions.csv",
    "/decisions.json",
    "/queue",
    "/line",
    "/shadow",
    "/installations",
    "/costs",
    "/jobs",
)
_ACTS = (
    "/jobs/{job}/retry",
    "/jobs/{job}/cancel",
    "/retry-failed",
    "/pause",
    "/resume",
    "/decisions/1/recheck",
    "/decisions/1/leave",
    "/logout",
)
TABLE = {
    "a page is shown to somebody who is not logged in": {
        **{f"GET {path}": _closed(path) for path in _PAGES},
        "a job": _closed("/jobs/{job}"),
        "another method": Visit("/jobs", (302, 404, 405), method="HEAD"),
        "a method in a header": Visit("/jobs", (302,), headers={"X-HTTP-Method-Override": "GET"}),
        "the way round by a slash": Visit("//jobs", (302, 308, 404)),
        "the way round by dots": _closed("/static/../jobs"),
        "the way round by escapes": _closed("/%6Aobs"),
        "who says that he is here": Visit("/jobs", (302,), headers={"X-Forwarded-For": "127.0.0.1"}),
        "a cookie that was made up": Visit("/jobs", (302,), headers=_cookie("eyJzaW5jZSI6OTk5OX0.aaaa.bbbb")),
        "an empty cookie": Visit("/jobs", (302,), headers=_cookie("")),
        "a cookie of SQL": Visit("/jobs", (302,), headers=_cookie("' OR 1=1 --")),
        "a cookie of a megabyte": Visit("/jobs", (302, 400, 431), headers=_cookie("x" * 60_000)),
        "a cookie brought along to the log-in": Visit("/jobs", (302,), headers=_cookie("fixed-by-a-stranger")),
        "the password in the address": Visit("/jobs?password=correct+horse+battery", (302,)),
        "the password as a bearer": (
            Visit("/jobs", (302,), headers={"Authorization": "Bearer correct horse battery"})
        ),
    },
    "a form of another site does something": {
        **{f"no token: {path}": Visit(path, (403,), {}, True) for path in _ACTS},
        **{f"a token made up: {path}": Visit(path, (403,), {"token": "x"}, True) for path in _ACTS},
        **{f"by an address: {path}": Visit(path, (404, 405), None, True) for path in _ACTS},
        "a log-in without a token": Visit("/login", (403,), {"password": "correct horse battery"}),
        "a token that is no ASCII": Visit("/logout", (403,), {"token": "é"}, True),
    },
    "another name is answered": {
        "a name that points here": Visit("/login", (400,), headers={"Host": "evil.example"}),
        "a name that begins like ours": Visit("/login", (400,), headers={"Host": "localhost.evil.example"}),
        "a name behind ours": Visit("/login", (400,), headers={"Host": "evil.example#localhost"}),
        "a proxy that is not there": Visit("/login", (200,), headers={"X-Forwarded-Host": "evil.example"}),
    },
    "what strangers wrote is markup": {
        **{path: Visit(path, (200,), None, True) for path in ("/", "/decisions", "/costs", "/jobs", "/line")},
        "the page of a job": Visit("/jobs/{job}", (200,), None, True),
        "each decision": Visit("/decisions/{decision}", (200,), None, True),
        "a filter": (
            Visit(f"/decisions?repository={HOSTILE}&kind={HOSTILE}".replace(" ", "%20"), (200,), None, True)
        ),
        "a way back": Visit(f"/login?next=/{HOSTILE}".replace(" ", "%20"), (200, 302)),
        "an address that is none": Visit(f"/{HOSTILE}".replace(" ", "%20"), (404,), None, True),
    },
    "a strange address is a door or a crash": {
        **{
            path: Visit(path, (404,), None, True)
            for path in (
                "/decisions/999999", "/decisions/99999999999999999999999", "/decisions/-1",
                "/jobs/../../etc/passwd", "/jobs/%2e%2e%2fsecret", "/static/../pages.py", "/static/%2e%2e/app.py",
                "/static/..%2f..%2fapp.py", "/jobs/%00", "/decisions/1%20OR%201=1",
            )
        },
        **{
            path: Visit(path, (200,), None, True)
            for path in (
                "/decisions?before=x&kind=nope&came=nope", "/decisions?before=99999999999999999999999999",
                "/jobs?state=nope", "/jobs?state=%27%20OR%201=1%20--", "/decisions?before=%ff%fe",
            )
        },
    },
}  # fmt: skip

#: Where a log-in is told to lead.
BACK = {
    "the way back leads to another site": {
        "an address": "https://evil.example/",
        "an address without a scheme": "//evil.example",
        "a turned slash": "/\\evil.example",
        "two turned slashes": "\\\\evil",
        "a script": "javascript:alert(1)",
        "a line break": "/a\r\nX: y",
        "a tab between slashes": "/\t/evil.example",
        "three slashes": "///evil.example",
        "spaces before it": " https://evil.example",
        "a name and a password": "https://127.0.0.1@evil.example/",
        "nothing": "",
    }
}

TABLES = (TABLE, BACK)
