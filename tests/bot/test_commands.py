"""What counts as a command in a comment, and from whom."""

import pytest

from bot.core.commands import Command, may, read


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("/bouncer recheck", ["recheck"]),
        ("thanks!\r\n/bouncer accept\r\n", ["accept"]),
        ("/bouncer accept\n/bouncer accept", ["accept"]),
        ("/bouncer pause\n/bouncer help", ["pause", "help"]),
        ("please /bouncer accept", []),
        (" /bouncer accept", []),
        ("> /bouncer accept", []),
        ("    /bouncer accept", []),
        ("```\n/bouncer accept\n```", []),
        ("~~~\n/bouncer accept\n~~~\n/bouncer help", ["help"]),
        ("````\n```\n/bouncer accept\n```\n````", []),
        ("```\nunclosed\n/bouncer accept", []),
        ("/bouncer ACCEPT", []),
        ("/bouncer rm -rf /", []),
        ("/bouncer accept --force", []),
        ("/bouncer verify --run", ["verify"]),
        ("/bouncer", []),
        ("/bouncer  recheck  ", ["recheck"]),
        ("/bouncers accept", []),
        ("", []),
    ],
)
def test_a_command_is_the_first_thing_on_a_line_outside_code_and_quotes(body: str, words: list[str]) -> None:
    assert [command.word for command in read(body)] == words


def test_only_listed_flags_are_understood() -> None:
    assert read("/bouncer verify --run") == (Command(word="verify", flags=frozenset({"--run"})),)
    assert read("/bouncer verify --run=$(id)") == ()


def test_a_flood_of_commands_is_cut() -> None:
    body = "\n".join(
        f"/bouncer {word}" for word in ("help", "recheck", "accept", "pause", "resume", "review", "verify")
    )
    assert len(read(body)) == 5


def test_who_may_say_what() -> None:
    assert may("accept", "triage", is_author=False)
    assert may("accept", "admin", is_author=False)
    assert not may("accept", "read", is_author=True)
    assert not may("pause", "none", is_author=False)
    assert may("recheck", "none", is_author=True)
    assert not may("recheck", "read", is_author=False)
    assert may("help", "none", is_author=False)
