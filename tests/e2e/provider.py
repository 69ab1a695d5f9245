"""A model provider on loopback: two interfaces, opinions written down here, and bad days on demand."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.bot.pipeline.rig import REPLY as VAGUE

MODEL = "openai:gpt-5-mini"

#: Lines of code that the reviewer of these tests takes for defects, and what it says about each.
DEFECTS = {
    "return data.value": {
        "comment": "Fails for an empty file. `parse` returns None then.",
        "category": "data",
        "symbol": "data",
        "suggestion": "        return data.value if data else None",
    },
    "cache[path] = data": {
        "comment": "Grows without end. Nothing is ever removed.",
        "category": "memory",
        "symbol": "cache",
        "suggestion": None,
    },
    "lock.release()": {
        "comment": "Nobody else gets the lock any more. It was released here.",
        "category": "concurrency",
        "symbol": "lock",
        "suggestion": None,
    },
}
CLEAR = {"explanation": "All is said.", "open_points": [], "missing": [], "p_bounce": 3, "label": "WELL_SPECIFIED"}
SOLVED = {
    "explanation": "It handles the empty file.",
    "covered": ["empty files"],
    "open_points": [],
    "p_bounce": 4,
    "label": "CORRECT_AND_PRECISE",
}
MISSED = {
    "explanation": "The empty file still fails.",
    "covered": [],
    "open_points": ["Empty files still fail."],
    "p_bounce": 88,
    "label": "INCORRECT",
}

#: What a file's header says behind its path.
_FACTS = re.compile(r" \((?:added|deleted|renamed|copied|mode)\b.*\)$")


class Question(NamedTuple):
    """A question to the provider; ``purpose`` is the name of its schema."""

    purpose: str
    text: str
    key: str


def triage(text: str) -> dict[str, Any]:
    """Judge an issue as clear if it names the version."""
    return CLEAR if "version 4.2" in text else VAGUE


def verify(text: str) -> dict[str, Any]:
    """A patch solves its issue where it looks whether there is data."""
    return SOLVED if "if data" in text else MISSED


def described(text: str) -> dict[str, Any]:
    """Take each sentence of a description for a claim, which is met if its first word stands in the patch."""
    words = re.split(r"Its description:|The patch:", text)[1]
    sentences = re.findall(r"^([A-Z]\w+) .*\.$", words, re.MULTILINE)
    claims = [
        {"text": f"{name} is there", "implemented": "yes" if f"+{name}" in text else "no"} for name in sentences
    ]
    return {
        "claims": claims,
        "unsaid": ["`chunk` is gone, see @octocat and #1"] if "-def chunk" in text else [],
        "p_bounce": 90 if any(claim["implemented"] == "no" for claim in claims) else 5,
    }


def review(text: str) -> dict[str, Any]:
    """Reports every line that it knows for a defect, every time again."""
    path, findings = "", []
    for line in text.split("\n"):
        if line.startswith("=== "):
            path = _FACTS.sub("", line.removeprefix("=== "))
        # The same words in a longer line are another line.
        for code, finding in DEFECTS.items():
            if line.endswith((f" {code}", f"\t{code}")):
                shared = {"path": path, "line": None, "impact": "reliability", "severity": "high"}
                findings.append({**shared, "quote": code, "repair": [], **finding})
    return {"reasoning": "It reads a file.", "findings": findings}


def draft(text: str) -> dict[str, Any]:
    """Knows how to test `split`, and nothing else."""
    test = "from shapes import split\n\ndef test_rest():\n    assert split([1, 2, 3], 2) == [[1, 2], [3]]\n"
    return {"plan": "The rest is lost.", "code": test if "`split([1, 2, 3], 2)`" in text else "I do not know."}


def mended(text: str) -> dict[str, Any]:
    """The same draft again: it knows no better."""
    return {**draft(text), "at_fault": "the test"}


def patch(text: str) -> dict[str, Any]:
    """Know how to repair `split`, and nothing else."""
    old, new = "len(items) // size", "-(-len(items) // size)"
    return {"plan": "Count the rest.", "edits": [{"path": "shapes.py", "old": old, "new": new}]}


def why(text: str) -> dict[str, Any]:
    """Quote what record and material hold; about `lock`, quote code that is in neither."""
    if "lock" in text:
        return {"answer": "Because `lock.acquire()` is missing."}
    return {
        "answer": "`data.value` is read without looking whether there is `data`."
        if "data.value" in text
        else "`" + "It does not work" + "` is all that the text says."
    }


def translated(text: str) -> dict[str, Any]:
    """The same, of an issue in English."""
    return {**triage(text), "language": "en"}


def brief(text: str) -> dict[str, Any]:
    """The same, with the task in one sentence."""
    return {**triage(text), "request": "Keep the rest of the list."}


def step(text: str) -> dict[str, Any]:
    """Read `shapes.py`, then write down what it does."""
    if "You chose read" in text:
        return {"thought": "Seen.", "action": "done", "notes": "shapes.py:2 divides without a rest."}
    return {"thought": "What does it do?", "action": "read", "target": "shapes.py"}


def word(text: str) -> dict[str, Any]:
    """Return the answer that ``bouncer doctor`` expects."""
    return {"word": "ok"}


def compare(text: str) -> dict[str, Any]:
    """Issues that name the same code between backticks have the same cause."""
    new, *earlier = re.split(r"^Issue (\d+):$", text.rpartition("The new issue:")[2], flags=re.MULTILINE)
    codes = set(re.findall(r"`.+?`", new))
    return {
        "comparisons": [
            {
                "number": int(number),
                "both": "fail in the same call of @octocat",
                "relation": "same cause" if codes & set(re.findall(r"`.+?`", issue)) else "different",
                "p_same_cause": 95 if codes & set(re.findall(r"`.+?`", issue)) else 2,
            }
            for number, issue in zip(earlier[::2], earlier[1::2], strict=True)
        ]
    }


OPINIONS = {
    "BriefReply": brief,
    "Step": step,
    "ComparisonReply": compare,
    "InputReply": triage,
    "OutputReply": verify,
    "DescriptionReply": described,
    "ReviewReply": review,
    "Draft": draft,
    "Mended": mended,
    "Patch": patch,
    "WhyReply": why,
    "TranslatedReply": translated,
    "Word": word,
}
#: A field that only the answer of that name has.
FIELDS = {
    "ComparisonReply": "comparisons",
    "TranslatedReply": "language",
    "InputReply": "missing",
    "OutputReply": "covered",
    "DescriptionReply": "claims",
    "ReviewReply": "findings",
    "Mended": "at_fault",
    "Patch": "edits",
    "Draft": "code",
    "WhyReply": "answer",
    "Word": "word",
}


def completion(content: str | None, finish: str = "stop", **message: str) -> Response:
    """A successful answer that says ``content``."""
    body = {
        "choices": [{"message": {"content": content, **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 50},
    }
    return Response(json.dumps(body), content_type="application/json")


def failure(status: int, message: str = "no", **headers: str) -> Response:
    """An answer that is an error."""
    return Response(json.dumps({"error": {"message": message}}), status, headers, content_type="application/json")


def half() -> Response:
    """Promises more than it sends."""
    return Response(iter([b'{"choices"']), headers={"Content-Length": "500"}, content_type="application/json")


class Provider:
    """Answers every question with its opinion, unless it was told to misbehave on what a text holds."""

    def __init__(self, server: HTTPServer) -> None:
        self.url = server.url_for("/v1")
        self.asked: list[Question] = []
        self._moods: dict[str, list[Any]] = {}
        self._lock = threading.Lock()
        server.expect_request("/v1/chat/completions").respond_with_handler(self._answer)
        server.expect_request("/v1/messages").respond_with_handler(
            lambda request: as_message(self._answer(request))
        )

    @property
    def environment(self) -> dict[str, str]:
        """The settings that make this the operator's model."""
        return {"BOUNCER_MODEL": MODEL, "OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "sk-e2e-0123456789abcdef"}

    def misbehave(self, word: str, *answers: Any) -> None:
        """Answer questions that hold ``word`` with these, one after the other: a Response, or what makes one.

        What makes None, and whatever comes after the last, is the usual opinion.
        """
        with self._lock:
            self._moods[word] = list(answers)

    def about(self, word: str, purpose: str = "") -> Sequence[Question]:
        """The questions so far that hold ``word``."""
        with self._lock:
            return [
                question for question in self.asked if word in question.text and purpose in ("", question.purpose)
            ]

    def _answer(self, request: Request) -> Response:
        body = json.loads(request.data)
        text = "\n".join(item["content"] for item in body["messages"] if item["role"] != "system")
        purpose = purpose_of(body)
        key = request.headers.get("Authorization") or request.headers.get("X-Api-Key", "")
        with self._lock:
            self.asked.append(Question(purpose, text, key))
            mood = next((moods.pop(0) for word, moods in self._moods.items() if moods and word in text), None)
        answer = mood if mood is None or isinstance(mood, Response) else mood(request)
        return answer or completion(json.dumps(OPINIONS[purpose](text)))


def purpose_of(body: dict[str, Any]) -> str:
    """Return the name of the requested schema, or find it by its fields."""
    if "response_format" in body:
        return str(body["response_format"]["json_schema"]["name"])
    fields = body["output_config"]["format"]["schema"]["properties"]
    return next(name for name, field in FIELDS.items() if field in fields)


def as_message(answer: Response) -> Response:
    """A completion in the shape of Anthropic's interface; errors are alike."""
    body = answer.get_json(silent=True)
    if not isinstance(body, dict) or "choices" not in body:
        return answer
    message = {
        "content": [{"type": "text", "text": body["choices"][0]["message"]["content"]}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 200, "output_tokens": 50},
    }
    return Response(json.dumps(message), content_type="application/json")


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider that listens until the block ends."""
    with HTTPServer(threaded=True) as server:
        yield Provider(server)
