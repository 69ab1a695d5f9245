"""Posted model text is harmless: no mention, reference, command, link, image or secret gets through."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.core.markdown import BREAK, clean, clean_line, fence, host_of
from bot.core.redaction import redact
from bot.core.text import INVISIBLE, cap

HOST = "github.com"


@pytest.mark.parametrize(
    ("text", "posted"),
    [
        ("Ask @octocat.", f"Ask @{BREAK}octocat."),
        ("＠octocat @\u200boctocat @\u2060octocat", " ".join([f"@{BREAK}octocat"] * 3)),
        ("\\@octocat &#64;octocat &commat;octocat", " ".join([f"@{BREAK}octocat"] * 3)),
        ("as in #12, o/r#12, GH-12", f"as in #{BREAK}12, o/r#{BREAK}12, GH-{BREAK}12"),
        ("Fixes #12", f"Fixes #{BREAK}12"),
        ("closes: https://github.com/o/r/issues/1", "closes: `https://github.com/o/r/issues/1`"),
        ("/close\n> /lgtm\n1. /assign", f"/{BREAK}close\n\n> /{BREAK}lgtm\n\n1. /{BREAK}assign"),
        ("see /usr/lib for it", "see /usr/lib for it"),
        (
            "<!-- bouncer:triage:v1 --><img src=x onerror=y>",
            f"<{BREAK}!-- bouncer:{BREAK}triage:v1 --><{BREAK}img src=x onerror=y>",
        ),
        ("![pixel](https://evil.example/p.png) after", "after"),
        ("[docs](https://evil.example/x)", "docs"),
        ("[line](https://github.com/o/r/blob/main/x.py#L3)", "[line](https://github.com/o/r/blob/main/x.py#L3)"),
        ("[issue](https://github.com/o/r/issues/3)", "issue"),
        ("https://github.com/o/r/blob/main/x.py.", "<https://github.com/o/r/blob/main/x.py>."),
        ("https://github.com@evil.example/", "`https://github.com@evil.example/`"),
        ("www.evil.example, mailto:me@evil.example", "`www.evil.example`, `mailto:me@evil.example`"),
        ("[a]: https://evil.example", "\\[a\\]: `https://evil.example`"),
        ("\\[a](https://evil.example)", "\\[a\\](`https://evil.example`)"),
        ("@[octocat](https://evil.example)", f"@{BREAK}octocat"),
        ("http:[//evil.example](https://evil.example)", "`http://evil.example`"),
        ("htt~~~p://evil.example", f"htt\\~\\~\\~p:{BREAK}//evil.example"),
        ("\\https://evil.example", "\\\\`https://evil.example`"),
        ("``@octocat`@octocat``http://e.x", "``@octocat`@octocat`` `http://e.x`"),
        ("`@pytest.fixture` and ``a`b``", "`@pytest.fixture` and ``a`b``"),
        ("an `open span @octocat", f"an \\`open span @{BREAK}octocat"),
        ("\\`@octocat`", f"\\`@{BREAK}octocat\\`"),
        ("| a | b |\n|:-|-:|\n| `x | @octocat` |", "| a | b |\n| `x | @octocat` |"),
        ("```py\n@decorator\n```", "```py\n@decorator\n```"),
        ("~~~\nnever closed @octocat", "```\nnever closed @octocat\n```"),
        ("```\n/close\n/usr/bin/x\n```", f"```\n/{BREAK}close\n/usr/bin/x\n```"),
        ("```suggestion\nrm -rf\n```", "```\nrm -rf\n```"),
        ('```mermaid\nclick A "https://evil.example"\n```', '```\nclick A "https://evil.example"\n```'),
        ("- ```\n@octocat", f"- ```\n\n  ```\n\n@{BREAK}octocat"),
        ("a\u202eb\u200bc\x00d\U000e0041e\u3164f", "abcdef"),
        ("half a pair \ud800 here", "half a pair ? here"),
    ],
)
def test_model_text_is_made_safe(text, posted):
    assert clean(text, host=HOST, limit=1000) == posted


@pytest.mark.parametrize(
    ("text", "posted"),
    [
        ("two\nlines\tand  more", "two lines and more"),
        ("# heading", "\\# heading"),
        ("> quote", "\\> quote"),
        ("- item", "\\- item"),
        ("1. first", "1\\. first"),
        ("---", "…"),
        ("*emphasis* stays", "*emphasis* stays"),
        ("```py\nx = 1\n```", "py x = 1"),
        ("/close", f"/{BREAK}close"),
    ],
)
def test_a_line_opens_no_block(text, posted):
    assert clean_line(text, host=HOST) == posted


def test_a_fence_is_longer_than_any_inside_it():
    assert fence("a\n````\nb", "Python!") == "`````python\na\n````\nb\n`````"


@pytest.mark.parametrize("limit", [1, 5, 40, 400])
def test_text_is_cut_before_it_is_made_safe_so_that_no_escape_is_torn(limit):
    posted = clean("@octocat <b> #1 " * 100, limit=limit)
    assert len(posted) <= limit
    assert re.search(r"@(?!\u200b)|&(?!lt;)|#\d", posted.rstrip("…")) is None


def test_a_text_is_cut_between_words():
    assert cap("one two three", 10) == "one two…"
    assert len(cap("x" * 500, 200)) == 200


ORDINARY = """The loop in `read_all` never ends when a < b: snake_case, #define X, C:\\path\\to, dict[str, int].

1. one
   ```py
   @decorated
   ```
2. two, *soon* and **now**; \\_\\_init\\_\\_, 2 * 3, ~5 files

> quoted

- a
  - b: std::vector"""


def test_ordinary_text_reads_as_it_was_written():
    assert clean(ORDINARY, host=HOST, limit=2000) == ORDINARY
    assert clean("Ask user@host.", limit=99).replace(BREAK, "") == "Ask user@host."
    assert clean("Title\n===\n\n# Other", limit=99) == "**Title**\n\n**Other**"


@pytest.mark.parametrize(
    "piece", ["\\", "[", "![a](", "*a_", "`a``", "> ", "  - a\n", "|-|\n", "http://", "$a", "/a\n"]
)
def test_work_grows_with_the_text_and_no_faster(piece):
    """Counted in lines of Python that run: seconds would depend on the machine (the benchmark shows those)."""
    small, large = (_lines_run(piece * (size // len(piece))) for size in (1_000, 4_000))
    assert large <= 6 * small + 2_000


def _lines_run(text: str) -> int:
    count = 0

    def trace(frame, event, _):
        nonlocal count
        count += 1
        return trace

    clean("warm", limit=99)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        clean(text, host=HOST, limit=len(text))
    finally:
        sys.settrace(before)
    return count


def test_every_invisible_character_is_in_the_table():
    odd = {
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs")
    }
    assert {char for char in odd if not INVISIBLE.match(char)} == {"\t", "\n"}


def test_a_host_keeps_its_port():
    assert host_of("http://127.0.0.1:8000/o/r") == "127.0.0.1:8000"
    local = "http://127.0.0.1:8000/o/r/blob/x"
    assert clean(local, host="127.0.0.1:8000", limit=99) == f"<{local}>"
    assert clean(local, host="127.0.0.1", limit=99) == f"`{local}`"


WORDS = """
@octocat ＠octocat #12 GH-7 o/r#3 /close ` `` ``` ```` ~~~ \\ < > <!-- bouncer:triage:v1 --> <img_src=x> ![a](http://e.x)
[a](http://e.x) [a]: [ ] ( ) http://e.x/p www.e.x https://github.com/o/r &#64; &lt; | _ ** <details> </details>
x@y.z javascript:alert(1) $ ! a @ # gh- 12 octocat [@](http://e.x) [octocat](http://e.x) [12](http://e.x)
htt p:// http: //e.x
"""
SPACED = """
fixes |closes: |/bouncer accept|- |1. |> |    |* | """
MARKS = ["\n", "\n\n", "|-|\n", ":-\n", "\t", "\u200b", "\u202e", "\r", "\r\n", "---\n", "===\n", "\x00"]
PIECES = st.sampled_from([*WORDS.split(), *SPACED.strip("\n").split("|"), *MARKS])


@given(st.lists(PIECES, max_size=20).map("".join))
def test_a_line_stays_a_line_of_its_bullet(text):
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(f"- {clean_line(text, host=HOST)}\n- next\n")
    assert [token.type for token in tokens].count("list_item_open") == 2
    assert {token.type for token in tokens} <= {
        "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close",
        "paragraph_open", "paragraph_close", "inline",
    }  # fmt: skip


def test_a_key_without_its_end_takes_nothing_else_with_it():
    begin = "-----BEGIN RSA PRIVATE KEY-----"
    assert redact(f"{begin}\nMIIE{'a' * 60}\n{'b' * 64}\n\nI may be wrong.") == "REDACTED\n\nI may be wrong."
    assert clean(f"{begin}\n```\nx = 1\n```\n-----END RSA PRIVATE KEY-----", limit=999).count("```") == 2


SECRETS = [
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2" * 9,
    "ghp\\_" + "a1B2" * 9,
    "github\\_pat\\_" + "a1B2\\_" * 9,
    "hf\\_" + "aB3" * 11,
    "ghs_123456_eyJhbGciOi.JIUzI1NiJ9-abc_def",
    "v1." + "0a" * 20,
    "sk-proj-abcdefghij0123456789",
    "sk-ant-api03-abcdefghij0123456789",
    "AKIAABCDEFGHIJKLMNOP",
    "AIza" + "a1_-b" * 7,
    "xoxb-123456789012-abcdefghij",
    "hf_" + "aB3" * 11,
    "sha256=" + "0f" * 32,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def_123",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_text_like_a_secret_is_redacted(secret):
    assert redact(f"it is {secret} there") == "it is REDACTED there"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("postgresql://me:hush@db/x", "postgresql://me:REDACTED@db/x"),
        ("postgresql://me:hu@sh@db/x", "postgresql://me:REDACTED@db/x"),
        ("postgresql:/\\/me:hush@db/x", "postgresql:/\\/me:REDACTED@db/x"),
        ("API_KEY = 'abcd1234abcd1234abcd1234'", "API_KEY = 'REDACTED'"),
        ("Authorization: Bearer abcd1234abcd1234abcd1234", "Authorization: Bearer REDACTED"),
        ("token = tokenizer.next_token()", "token = tokenizer.next_token()"),
        ("password: string", "password: string"),
        ("fixed in d6fde92930d4715a2b49857d24b940956b26d2d3", "fixed in d6fde92930d4715a2b49857d24b940956b26d2d3"),
        ("my own hunter2-x word", "my own REDACTED word"),
        ("my own hunter\\2\u200b-x word, hunter2-\u200bx", "my own hunter\\2\u200b-x word, REDACTED"),
    ],
)
def test_named_secrets_are_redacted_and_code_is_not(text, redacted):
    assert redact(text, ["hunter2-x", "own"]) == redacted
