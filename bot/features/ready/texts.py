"""The comment on an issue that is ready for work. Pure."""

from __future__ import annotations

from urllib.parse import quote

from bot.core.markdown import clean_line, code_span, details, fence
from bot.core.subjects import Repository
from bot.features.ready.record import ReadyRecord
from bot.features.reproduce.record import StoredTest

#: Characters of the request, and of the test.
MAX_REQUEST, MAX_CODE = 1_000, 8_000

DISCLOSURE = "*I'm a bot; an AI model wrote the brief and may be wrong.*"


def ready(record: ReadyRecord, test: StoredTest | None, title: str, repository: Repository) -> str:
    """Return the comment with a folded brief: what is asked, where in the code, and the test that has to pass."""
    steps = ["clear", f"accepted by {record.accepted_by}", *(["reproduced by a test"] if test else [])]
    first = f"This issue is ready for work: {', '.join(steps[:-1])} and {steps[-1]}. {DISCLOSURE}"
    # On one line: it stands behind words of ours, where no block may begin.
    request = clean_line(record.request or title, host=repository.host, limit=MAX_REQUEST)
    parts = [f"**What is asked:** {request}"]
    if record.files:
        parts.append(f"**Where to look**, as of `{record.sha[:7]}`:")
        parts.append("\n".join(f"- {_link(path, record.sha, repository)}" for path in record.files))
    if test:
        parts += _acceptance(test)
    brief = details("Brief", "\n\n".join(parts))
    return f"{first}\n\n{brief}"


def _link(path: str, sha: str, repository: Repository) -> str:
    name = code_span(path)
    if not repository.html_url:
        return name
    return f"[{name}]({repository.html_url}/blob/{sha}/{quote(path, errors='replace')})"


def _acceptance(test: StoredTest) -> list[str]:
    name = code_span(f"{test.path}::{test.name}")
    where = "a new file" if test.new_file else f"an addition to {code_span(test.path)}"
    return [
        f"**Done when** {name} passes. It fails on {code_span(test.branch)} at `{test.sha[:7]}`. It is {where}, "
        f"run with {code_span(' '.join(test.command))}:",
        fence(test.code[:MAX_CODE].rstrip("\n"), "java" if test.path.endswith(".java") else "python"),
    ]
