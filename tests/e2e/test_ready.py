"""``triage.brief``: a clear, accepted and reproduced issue gets a label and a brief in its one comment."""

from __future__ import annotations

import pytest

from bot.features.triage.record import TriageRecord
from bot.pipeline.store.overview import Filter, Overview
from tests.e2e.site import VAGUE, Repository, Site
from tests.e2e.test_reproduce_life import BUGGY, CONFIG, REPORT, TESTS

TRIAGE = "triage: {brief: true, investigate: true, authors: all}\n"
FIRST = "This issue is ready for work: clear"


def files(config: str) -> dict[str, str]:
    return {"shapes.py": BUGGY, "tests/test_shapes.py": TESTS, ".github/bouncer.yml": config}


@pytest.mark.debian("bubblewrap")
def test_a_clear_accepted_and_reproduced_issue_gets_a_brief(shop: Site, repository: Repository) -> None:
    config = CONFIG.replace("MODE", "comment").replace("SAMPLES", "1")
    home = repository(**files(TRIAGE + config))
    number = shop.slowly.open_issue(home, "split drops the rest", "`split` drops the rest.")
    assert shop.comments_on(home, number)[0].startswith("Thanks for the report.")
    shop.slowly.edit(home, number, body=REPORT)
    shop.slowly.comment(home, number, "/bouncer accept", "carol")
    shop.slowly.comment(home, number, "/bouncer accept", "mia")
    assert (shop.decided(home, number, "ready"), shop.github.labels(home, number)) == ((), [])

    shop.slowly.comment(home, number, "/bouncer reproduce", "mia")
    (body,) = [body for body in shop.comments_on(home, number) if "bouncer:triage" in body]
    assert body.startswith(f"{FIRST}, accepted by mia and reproduced by a test.")
    head = shop.github.world.repositories[home].branches["main"]
    assert "**What is asked:** Keep the rest of the list." in body
    assert f"- [`shapes.py`](https://github.example/{home}/blob/{head}/shapes.py)" in body.replace(
        shop.github.web_url, "https://github.example"
    )
    assert f"**Done when** `tests/test_shapes.py::test_issue_{number}` passes." in body
    assert "assert split([1, 2, 3], 2) == [[1, 2], [3]]" in body
    assert set(shop.github.labels(home, number)) == {"reproduced", "ready"}

    # A maintainer who asks for details takes it back.
    shop.slowly.label(home, number, "needs-info", by="mia")
    (body,) = [body for body in shop.comments_on(home, number) if "bouncer:triage" in body]
    assert body.startswith("Thanks for the report. mia asked for more details.")
    assert set(shop.github.labels(home, number)) == {"reproduced", "needs-info"}


def test_without_reproduction_accepting_a_clear_issue_is_enough(shop: Site, repository: Repository) -> None:
    home = repository(**files(TRIAGE.replace("brief", "ready_label: go, brief")))
    clear = shop.github.open_issue(home, "split drops the rest", REPORT)
    vague = shop.slowly.open_issue(home, *VAGUE)
    for number in (clear, vague):
        shop.github.comment(home, number, "/bouncer accept", "mia")
        shop.github.comment(home, number, "/bouncer accept", "mia")
    shop.quiet()
    (body,) = shop.comments_on(home, clear)
    assert body.startswith(f"{FIRST} and accepted by mia.")
    assert "Done when" not in body
    assert (shop.github.labels(home, clear), shop.github.labels(home, vague)) == (["go"], [])
    assert [decision.verdict for decision in shop.decided(home, clear, "ready")] == ["ready"]


def test_in_shadow_mode_and_by_default_nothing_is_posted(shop: Site, repository: Repository) -> None:
    homes = [repository(**files(config)) for config in (TRIAGE.replace("brief", "mode: shadow, brief"), "")]
    for home, expected in zip(homes, ([True], []), strict=True):
        number = shop.slowly.open_issue(home, "split drops the rest", REPORT)
        shop.slowly.comment(home, number, "/bouncer accept", "mia")
        assert [body for body in shop.comments_on(home, number) if FIRST in body] == []
        assert shop.github.labels(home, number) == []
        assert [bool(item.withheld) for item in shop.decided(home, number, "ready")] == expected


def test_what_an_issue_names_and_the_code_lacks_is_told_to_the_model(shop: Site, repository: Repository) -> None:
    home = repository(**files(TRIAGE))
    shop.github.tag(home, "v4.1")
    body = "With version 4.2 `splitEvenly([1], 2)` of `shapes.py` fails; `split` with --keep-rest does not."
    number = shop.slowly.open_issue(home, "split fails", body)
    sentences = [
        "No file of the repository contains the name splitEvenly.",
        "No file of the repository contains the option --keep-rest.",
        "No tag of the repository is named after version 4.2.",
    ]
    (question,) = shop.model.about("splitEvenly", "BriefReply")
    assert "\n".join(sentences) in question.text
    (decision,) = shop.decided(home, number, "triage")
    assert isinstance(decision.record, TriageRecord)
    assert [claim.sentence for claim in decision.record.absent] == sentences
    (line,) = Overview(shop.database).decisions(Filter(repository=home, kind="triage"))
    page = shop.browser().get(f"/decisions/{line.id}")
    assert all(sentence in page for sentence in sentences)
