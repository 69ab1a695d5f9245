"""Pages without log-in: what the bot is, the schema of bouncer.yml, and the page after an installation."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from flask import Blueprint, Response, render_template
from markupsafe import Markup

from bot.pipeline.body import as_html
from bot.web import session

_PACKAGE = Path(__file__).parents[1]
#: The page for people who got a comment: packaged, or in a checkout.
_ABOUT = (_PACKAGE / "got-a-comment.md", _PACKAGE.parent / "docs" / "got-a-comment.md")
_PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n+", re.MULTILINE)


def blueprint(next_step: str = "") -> Blueprint:
    """The routes. ``next_step``: how to open the dashboard, shown at ``/`` if there is none."""
    routes = Blueprint("public", __name__, template_folder="templates")

    @routes.after_request
    def secure(response: Response) -> Response:
        return session.secured(response)

    @routes.get("/about")
    def about() -> str:
        return render_template("about.html", text=_about())

    @routes.get("/bouncer.schema.json")
    def schema() -> Response:
        text = (_PACKAGE / "bouncer.schema.json").read_text("utf-8")
        return Response(text, mimetype="application/schema+json")

    @routes.get("/setup/installed")
    def installed() -> str:
        return render_template("setup/installed.html")

    if next_step:

        @routes.get("/")
        def root() -> str:
            return render_template("running.html", next_step=next_step)

    return routes


@cache
def _about() -> Markup:
    """Return the page's text without its title and pictures."""
    text = next(place for place in _ABOUT if place.is_file()).read_text("utf-8")
    # The lines of a file are wrapped; only comments on GitHub show each line break.
    paragraphs = re.sub(r"(?<=[^\n|])\n(?=[^\n#|])", " ", _PICTURE.sub("", text.partition("\n")[2]))
    return as_html(paragraphs)
