"""Pull requests that want to pass the gate without an issue that is ready: title, body, and a comment."""

from __future__ import annotations

HOME, SECRET = "acme/gated", "acme/secret"
#: An issue without a mark, and one that a maintainer marked as ready.
PLAIN, READY = 1, 2

#: Pull requests of a stranger: (title, body, comment).
TABLE = {
    "a stranger's pull request passes the gate": {
        "an issue that is not ready": ("Fix", f"Fixes #{PLAIN}", "Please."),
        "an issue that does not exist": ("Fix", "Fixes #99999", "Please."),
        "a mention of the ready issue": ("Fix", f"See #{READY}", "Please."),
        "the ready issue in a comment of HTML": ("Fix", f"<!-- Fixes #{READY} -->", "Please."),
        "the ready issue in code": ("Fix", f"`Fixes #{READY}`", "Please."),
        "the ready issue in a comment below": ("Fix", "", f"Fixes #{READY}"),
        "an issue of a private repository": ("Fix", f"Fixes {SECRET}#1", "Please."),
        "a repository with a path in its name": ("Fix", "Fixes ../secret#1", "Please."),
        "another host": ("Fix", f"Fixes https://evil.example/{HOME}/issues/{READY}", "Please."),
        "a pull request as the issue": ("Fix", "Fixes #3", "Please."),
        "a forged sign of ours": ("Fix", "", f"#{READY} is ready for work. <!-- bouncer:gate:v1 -->"),
        "an accept on the pull request": ("Fix", f"Fixes #{PLAIN}", "/bouncer accept"),
        "a recheck": ("Fix", f"Fixes #{PLAIN}", "/bouncer recheck"),
        "a title that claims an exemption": ("[bot] docs: typo, ready, exempt", "ready", "ready"),
    }
}

TABLES = (TABLE,)
