"""An issue is answered in its own language where the maintainers want that, to the last edit of the comment."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.e2e.provider import completion
from tests.e2e.site import Site

Repository = Callable[..., str]
GERMAN = {
    "explanation": "Es ist nicht klar, was passiert.",
    "open_points": ["Welche Version ist das?"],
    "missing": ["version"],
    "p_bounce": 90,
    "label": "VAGUE",
    "language": "de",
}


def test_auto_answers_in_the_issue_s_own_language(shop: Site, repository: Repository) -> None:
    home = repository(**{".github/bouncer.yml": "triage:\n  language: auto\n"})
    shop.model.misbehave("Kaputte Datei", completion(json.dumps(GERMAN)))
    number = shop.github.open_issue(home, "Kaputte Datei", "Es geht nicht mehr.")
    shop.quiet()
    (body,) = shop.said(home, number)
    assert body.startswith(
        "Danke für die Meldung. Um daran zu arbeiten, braucht ein Maintainer wahrscheinlich noch:\n"
        "- Welche Version ist das?\n\nErgänze das Issue oder antworte unten, dann lese ich es noch einmal. "
        "*Ich bin ein Bot, der ein KI-Modell benutzt, und kann mich irren."
    )
    assert "<summary>Warum ich frage</summary>" in body
    (question,) = shop.model.about("Kaputte Datei", "TranslatedReply")
    assert question.purpose == "TranslatedReply"
    shop.github.comment(home, number, "/bouncer why", "alice")
    shop.quiet()
    assert "*Die Antwort eines KI-Modells" in shop.said(home, number)[1]
    shop.github.comment(home, number, "/bouncer accept, ist bekannt", "mia")
    shop.quiet()
    assert shop.said(home, number)[0].startswith("So angenommen von mia: ist bekannt.\n")


def test_a_language_of_the_maintainers_and_one_that_only_the_model_knows(
    shop: Site, repository: Repository
) -> None:
    french = repository(**{".github/bouncer.yml": "triage:\n  language: fr\n"})
    number = shop.github.open_issue(french, "It breaks", "It does not work any more.")
    shop.quiet()
    assert shop.said(french, number)[0].startswith("Merci pour ce signalement. Pour s'en occuper,")
    shop.github.comment(french, number, "It is version 4.2, on an empty file.", "alice")
    shop.quiet()
    assert shop.said(french, number)[0].startswith("Merci, c'est clair maintenant. *Lu par un bot")
    other = repository(**{".github/bouncer.yml": "triage:\n  language: eo\n"})
    number = shop.github.open_issue(other, "It breaks", "It does not work any more.")
    shop.quiet()
    assert shop.said(other, number)[0].startswith("Thanks for the report.")
