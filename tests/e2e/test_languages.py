"""The model's questions are in the issue's language or the maintainers'; fixed sentences are English."""

from __future__ import annotations

import json

from tests.e2e.provider import completion
from tests.e2e.site import Repository, Site

GERMAN = {
    "explanation": "Es ist nicht klar, was passiert.",
    "open_points": ["Welche Version ist das?"],
    "missing": ["version"],
    "p_bounce": 90,
    "label": "VAGUE",
    "language": "de",
}


def test_auto_asks_in_the_language_of_the_issue(shop: Site, repository: Repository) -> None:
    home = repository(**{".github/bouncer.yml": "triage:\n  language: auto\n"})
    shop.model.misbehave("Kaputte Datei", completion(json.dumps(GERMAN)))
    number = shop.github.open_issue(home, "Kaputte Datei", "Es geht nicht mehr.")
    shop.quiet()
    (body,) = shop.said(home, number)
    assert body.startswith(
        "Thanks for the report. To work on this, a maintainer will probably need:\n- Welche Version ist das?\n\n"
    )
    assert "Es ist nicht klar, was passiert." in body
    (question,) = shop.model.about("Kaputte Datei", "TranslatedReply")
    assert question.purpose == "TranslatedReply"
    shop.github.comment(home, number, "/bouncer accept, ist bekannt", "mia")
    shop.quiet()
    assert shop.said(home, number)[0].startswith("Accepted as is by mia: ist bekannt.\n")
