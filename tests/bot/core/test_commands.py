"""Commands in comments, and the permissions they need."""

import pytest

from bot.core.commands import Command
from bot.router import SLASH_COMMANDS

may, near_miss, read = SLASH_COMMANDS.may, SLASH_COMMANDS.near_miss, SLASH_COMMANDS.read


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("/bouncer recheck", ["recheck"]),
        ("thanks!\r\n/bouncer accept\r\n", ["accept"]),
        ("/bouncer accept\n/bouncer accept", ["accept"]),
        ("/bouncer pause\n/bouncer help", ["pause", "help"]),
        ("/bouncer pause\n/bouncer resume\n/bouncer pause", ["resume", "pause"]),
        (" /bouncer accept", ["accept"]),
        ("- /x\n\n  /bouncer accept", []),
        ("/Bouncer Accept", ["accept"]),
        ("/bouncer accept, this is known", ["accept"]),
        ("/bouncer accept: see above", ["accept"]),
        ("/bouncer accept this is known", ["accept"]),
        ("/bouncer why?", ["why"]),
        ("/bouncer why?!", ["why"]),
        ("/bouncer accept\uff1a", ["accept"]),
        ("/bouncer accept\uff1athis is known", ["accept"]),
        ("@bouncer-acme why\uff1f", ["why"]),
        ("/bouncer verify: --run abc1234", ["verify"]),
        ("/bouncer accept/all", []),
        ("/bouncer accept `load(None)` is **not** supported, see [this](/docs)", ["accept"]),
        ("hi\n/bouncer accept R&amp;D \\_known\\_\nbye", ["accept"]),
        ("- /bouncer accept `x`", []),
        ("> /bouncer accept `x`", []),
        ("`/bouncer accept` helps", []),
        ("```\n/bouncer verify --run abc1234\n```\n- /bouncer verify `x`", []),
        ("<!--\n/bouncer accept `x`\n-->", []),
        ("@bouncer-acme recheck", ["recheck"]),
        ("cc @bouncer-acme recheck", []),
        ("@bouncer-acme thanks for this", []),
        ("~~~\n/bouncer accept\n~~~\n/bouncer help", ["help"]),
        ("```\nunclosed\n/bouncer accept", []),
        ("/bouncer ACCEPT", ["accept"]),
        ("/bouncer rm -rf /", []),
        ("/bouncer verify --run", ["verify"]),
        ("/bouncer verify --run abc1234", ["verify"]),
        ("/bouncer verify --run abc123", ["verify"]),
        ("/bouncer verify --run " + "a" * 65, []),
        ("/bouncer recheck --run", []),
        ("<!-- never closed\n\n/bouncer accept", []),
        ("See <pre>\n/bouncer accept\n</pre>", []),
        ("<details>\n\nlog\n\n</details>\n\n/bouncer accept", ["accept"]),
        ("a `<pre>` b\n/bouncer accept", ["accept"]),
        ("\t/bouncer accept", []),
        ("> said\n\n/bouncer accept", ["accept"]),
        ("- done\n/bouncer accept", ["accept"]),
        ("- /bouncer accept", []),
        ("\\/bouncer accept", []),
        ("[a]: /b\n/bouncer accept", ["accept"]),
        ("\x00\ud800\n/bouncer accept", ["accept"]),
        ("/bouncer", ["help"]),
        ("  /bouncer  ", ["help"]),
        ("/bouncer  recheck  ", ["recheck"]),
        ("/bouncer\u00a0recheck", ["recheck"]),
        ("/bouncer\u2003recheck\u202f\u00a0it\u00a0changed\u00a0\nmore", ["recheck"]),
        ("/bouncer\u00a0\nmore", ["help"]),
        ("/bouncer\u3000verify\u00a0--run\u00a0abc1234", ["verify"]),
        ("/bouncer\u2028recheck", []),
        ("/bouncer\x0brecheck", []),
        ("\u00a0/bouncer recheck", []),
        ("/bouncers accept", []),
        ("/bouncer accept\n---", []),
        ("hi\n/bouncer accept\n===\n/bouncer help", ["help"]),
        ("/bouncer accept\n\n---", ["accept"]),
        ("Title\n---\n/bouncer accept", ["accept"]),
        ("/bouncer accept\r\n-- \r\nMia, from my phone", ["accept"]),
        ("> quoted\n-- \n/bouncer accept", []),
        ("", []),
    ],
)
def test_a_command_is_the_first_thing_on_a_line_outside_code_and_quotes(body: str, words: list[str]) -> None:
    assert [command.word for command in read(body)] == words


def test_formatting_in_a_reason_is_kept_as_it_was_written() -> None:
    (command,) = read("/bouncer accept `load(None)` is **not** supported")
    assert command.reason == "`load(None)` is **not** supported"
    assert near_miss("/bouncer acept `x`") == "accept"


def test_only_listed_flags_are_understood() -> None:
    assert read("/bouncer verify --run") == (Command(word="verify", run=""),)
    assert read("/bouncer verify --run abc1234") == (Command(word="verify", run="abc1234"),)
    assert read("/bouncer verify: --run abc1234") == (Command(word="verify", run="abc1234"),)
    assert read("/bouncer verify --run=$(id)") == ()


def test_a_flood_of_commands_is_cut() -> None:
    body = "\n".join(
        f"/bouncer {word}" for word in ("help", "recheck", "accept", "pause", "resume", "review", "verify")
    )
    assert len(read(body)) == 5


def test_permission_decides_which_commands_a_person_may_use() -> None:
    assert may("accept", "triage", is_author=False)
    assert may("accept", "admin", is_author=False)
    assert not may("accept", "read", is_author=True)
    assert not may("pause", "none", is_author=False)
    assert may("recheck", "none", is_author=True)
    assert not may("recheck", "read", is_author=False)
    assert may("help", "none", is_author=False)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("/bouncer acept", "accept"),
        ("/bouncer acept it please", "accept"),
        ("/bouncers recheck", "recheck"),
        ("/bouncer\u00a0acept", "accept"),
        ("/bouncer rm -rf /", "help"),
        ("/bouncer accept", None),
        ("> /bouncer acept", None),
        ("/bouncer acept\n---", None),
        ("```\n/bouncer acept\n```", None),
        ("please /bouncer", None),
    ],
)
def test_a_near_miss_gets_one_helpful_word(body: str, word: str | None) -> None:
    assert near_miss(body) == word


def test_a_mention_counts_only_for_our_own_account() -> None:
    own = SLASH_COMMANDS.addressed_to(lambda: "Bouncer-Acme[bot]")
    assert own.read("@bouncer-acme accept this is known") == (
        Command(word="accept", reason="this is known", mention="bouncer-acme"),
    )
    assert own.read("@bob accept") == ()


def test_text_after_the_word_is_the_reason() -> None:
    assert read("/bouncer accept this is known") == (Command(word="accept", reason="this is known"),)
    assert read("/bouncer accept -- no") == ()
    for mark in (",", ", ", "...", "?! ", "\u2026 ", "\uff0c", "\uff1a ", " (", "\uff08"):
        assert read(f"/bouncer accept{mark}this is known") == (Command(word="accept", reason="this is known"),)
    assert read("/bouncer accept\uff08known\uff09") == (Command(word="accept", reason="known"),)
