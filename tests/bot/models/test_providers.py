"""Requests to providers, and the errors for each of their failures."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from bot.core.actions import Usage
from bot.core.errors import ModelError, ProviderRefused, TransientError
from bot.models import anthropic, openai
from bot.models.budget import Budget, Budgeted, Limit, MemoryBudget, Price, Spent
from bot.models.conversation import Conversation, cost
from tests.bot.models.conftest import KEY, Provider, failure
from tests.bot.models.replies import CLEAR, PROMPT, Verdict
from tests.bot.pipeline.rig import wait

# --- requests -------------------------------------------------------------------------------------------


def test_a_reply_is_typed_counted_and_priced(provider: Provider) -> None:
    reply = provider.model().complete(PROMPT, Verdict)
    assert reply.value == CLEAR
    assert (reply.usage.calls, reply.usage.input_tokens, reply.usage.output_tokens) == (1, 120, 30)
    assert reply.usage.cost_usd == pytest.approx((120 * 1 + 30 * 10) / 1e6)
    assert reply.usage.seconds > 0


def test_a_reasoning_model_gets_effort_and_no_temperature(provider: Provider) -> None:
    provider.model().complete(PROMPT, Verdict)
    (request,) = provider.requests
    assert "temperature" not in request
    if provider.kind == "openai":
        assert request["reasoning_effort"] == "medium"
        assert request["max_completion_tokens"] == 4000
    else:
        assert request["output_config"]["effort"] == "medium"
        assert request["max_tokens"] == 4000


@pytest.mark.parametrize("openai", ["gpt-4.1-2025-04-14", "gemma3:27b-it-q8_0"])
def test_a_plain_model_gets_temperature_0_and_no_effort(provider: Provider, openai: str) -> None:
    provider.model(openai if provider.kind == "openai" else "claude-haiku-4-5").complete(PROMPT, Verdict)
    (request,) = provider.requests
    assert request["temperature"] == 0.0
    assert request["max_tokens"] == 4000
    assert "effort" not in json.dumps(request)


def test_the_schema_is_sent_closed_and_complete(provider: Provider) -> None:
    provider.model().complete(PROMPT, Verdict)
    (request,) = provider.requests
    if provider.kind == "openai":
        definition = request["response_format"]["json_schema"]
        assert definition["strict"] is True
        schema = definition["schema"]
    else:
        schema = request["output_config"]["format"]["schema"]
    assert schema["required"] == ["explanation", "open_points", "p_bounce", "label"]
    assert schema["additionalProperties"] is False
    assert "maximum" not in json.dumps(schema)


def test_a_model_without_native_schema_gets_a_tool(provider: Provider) -> None:
    value = CLEAR.model_dump(mode="json")
    if provider.kind == "openai":
        call = {"id": "1", "type": "function", "function": {"name": "Verdict", "arguments": json.dumps(value)}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        body: dict[str, object] = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    else:
        block = {"type": "tool_use", "id": "1", "name": "Verdict", "input": value}
        body = {"content": [{"type": "thinking", "thinking": "hm"}, block], "stop_reason": "tool_use"}
    provider.script.append(Response(json.dumps(body), content_type="application/json"))
    name = "gpt-4-turbo" if provider.kind == "openai" else "claude-3-7-sonnet-latest"
    assert provider.model(name).complete(PROMPT, Verdict).value == CLEAR
    (request,) = provider.requests
    assert "response_format" not in request
    assert "output_config" not in request
    assert len(request["tools"]) == 1
    assert "Verdict" in json.dumps(request["tool_choice"])


def test_refused_parameters_are_omitted_from_then_on(provider: Provider) -> None:
    if provider.kind == "openai":
        refusals = ["Unsupported value: 'temperature'", "response_format is not supported", "unknown max_tokens"]
        model = provider.model("some-model")
    else:
        refusals = ["`temperature` is deprecated for this model.", "output_config: Extra inputs are not permitted"]
        model = provider.model("claude-haiku-4-5")
    provider.script.extend(failure(400, refusal) for refusal in refusals)
    assert model.complete(PROMPT, Verdict).value == CLEAR
    model.complete(PROMPT, Verdict)
    assert len(provider.requests) == len(refusals) + 2
    for request in provider.requests[-2:]:
        assert not {"temperature", "response_format", "output_config"} & request.keys()
        assert request["tools"]


def test_refusals_of_every_parameter_end_the_retries(provider: Provider) -> None:
    provider.script.extend(
        failure(400, "temperature effort max_tokens response_format output_config") for _ in range(20)
    )
    with pytest.raises(ModelError):
        provider.model("unknown-model").complete(PROMPT, Verdict)
    assert len(provider.requests) < 8


def test_a_cut_answer_is_retried_at_low_effort(provider: Provider) -> None:
    provider.script.append(provider.cut())
    assert provider.model().complete(PROMPT, Verdict).value == CLEAR
    parameters = [{**request, "messages": None} for request in provider.requests]
    assert ["low" in json.dumps(request) for request in parameters] == [False, True]


def test_a_cut_answer_without_effort_is_not_retried(provider: Provider) -> None:
    provider.script.append(provider.cut())
    with pytest.raises(ModelError) as caught:
        provider.model("gpt-4.1" if provider.kind == "openai" else "claude-haiku-4-5").complete(PROMPT, Verdict)
    assert caught.value.reason == "length"
    assert len(provider.requests) == 1


def test_a_repair_turn_shows_the_model_its_answer_and_the_fault(provider: Provider) -> None:
    provider.script.append(provider.good('{"label": "MAYBE"}'))
    assert provider.model().complete(PROMPT, Verdict).usage.calls == 2
    turns = [turn for turn in provider.requests[1]["messages"] if turn["role"] != "system"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert "label: Input should be" in turns[2]["content"]


# --- failures -------------------------------------------------------------------------------------------

HTML = Response("<html><title>Sign in</title></html>", content_type="text/html")
#: An operator's to repair.
OPERATORS = [
    failure(401, f"Incorrect API key provided: {KEY}"),
    failure(403, f"key {KEY} has no access"),
    failure(404, "model not found"),
    failure(400, "no", code="model_not_found"),
    failure(429, "You exceeded your current quota", code="insufficient_quota"),
    failure(400, "Billing hard limit has been reached", code="billing_hard_limit_reached"),
    failure(400, "Your credit balance is too low to access the Anthropic API."),
    failure(400, "You have reached your specified API usage limits. You will regain access on 2026-12-01."),
    Response("", 307, {"Location": "http://127.0.0.1:9/"}),
]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (failure(400, "messages: too many"), "unavailable"),
        *((answer, "unavailable") for answer in OPERATORS),
        (failure(413, "request too large"), "length"),
        (failure(400, "This model's maximum context length is 8192", code="context_length_exceeded"), "length"),
        (failure(400, "prompt is too long: 250000 tokens > 200000 maximum"), "length"),
        (failure(400, "filtered", code="content_filter"), "refused"),
        (HTML, "malformed"),
        (Response('{"choices": [{"mess', content_type="application/json"), "malformed"),
        (Response("", content_type="application/json"), "malformed"),
        (Response("null", content_type="application/json"), "malformed"),
        (Response("{}", content_type="application/json"), "malformed"),
        (Response('{"choices": [], "content": 7}', content_type="application/json"), "malformed"),
        (Response('{"choices": null, "content": null}', content_type="application/json"), "malformed"),
        (Response('{"choices": [{}], "content": [{}]}', content_type="application/json"), "malformed"),
        (Response(b"\xff\xfe\x00", content_type="application/json"), "malformed"),
    ],
)
def test_a_lasting_failure_is_a_model_error(provider: Provider, answer: Response, reason: str) -> None:
    provider.script.append(answer)
    with pytest.raises(ModelError) as caught:
        provider.model().complete(PROMPT, Verdict)
    assert caught.value.reason == reason
    assert isinstance(caught.value, ProviderRefused) is (answer in OPERATORS)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert provider.kind in str(caught.value)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("status", [200, 401, 403, 404, 500])
def test_a_key_is_checked_without_a_question(provider: Provider, status: int) -> None:
    questions: list[str] = []

    def answer(request: Request) -> Response:
        questions.append(request.environ["RAW_URI"])
        return Response('{"error": {"message": "no"}}', status, content_type="application/json")

    provider.server.expect_request("/v1/models/a/model", method="GET").respond_with_handler(answer)
    module = openai if provider.kind == "openai" else anthropic
    remote = module.connect("a/model", KEY, provider.url)
    if status == 401:
        with pytest.raises(ProviderRefused, match=r"check .*_API_KEY"):
            remote.check()
    else:
        assert remote.check() is (status == 200)
    remote.own_server = False
    if status == 404:
        with pytest.raises(ProviderRefused, match="does not know the model"):
            remote.check()
    assert set(questions) == {"/v1/models/a%2Fmodel"}
    assert provider.requests == []


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_a_passing_failure_is_transient_and_not_retried(provider: Provider, status: int) -> None:
    provider.script.append(failure(status, "busy"))
    with pytest.raises(TransientError, match=str(status)) as caught:
        provider.model().complete(PROMPT, Verdict)
    assert caught.value.wait is None
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "17"}, 17.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "999999"}, 3600.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_a_rate_limit_states_the_wait(provider: Provider, headers: dict[str, str], wait: float | None) -> None:
    provider.script.append(failure(429, "slow down", headers))
    with pytest.raises(TransientError) as caught:
        provider.model().complete(PROMPT, Verdict)
    assert caught.value.wait == wait


def test_an_error_page_is_not_quoted(provider: Provider) -> None:
    provider.script.append(Response("<html><script>alert(1)</script></html>", 502, content_type="text/html"))
    with pytest.raises(TransientError) as caught:
        provider.model().complete(PROMPT, Verdict)
    assert "script" not in str(caught.value)


def spent_on_failure(model: Conversation, message: str) -> Spent:
    """Ask a model that fails for a moment, and return what its budget has spent."""
    store, noon = MemoryBudget(), datetime(2026, 11, 21, 12, tzinfo=UTC)
    budget = Budget(store, (Limit(scope="all", usd=1),), lambda: noon)
    with pytest.raises(TransientError, match=message):
        Budgeted(model, Price(input=1.0, output=10.0), budget).complete(PROMPT, Verdict)
    return store.spent(noon.date(), "all")


def test_a_slow_provider_is_transient(provider: Provider) -> None:
    def slow(request: Request) -> Response:
        time.sleep(0.6)
        return provider.good()

    provider.script.append(slow)
    # It may be billed: 22 bytes of text, and the longest answer.
    assert spent_on_failure(provider.model(timeout=0.3), "ReadTimeout") == Spent(calls=1, micros=11 + 10 * 4000)
    # A busy machine may read the request only now; it must not reach the next test.
    wait(lambda: provider.requests, 30, "the request arrived")


@pytest.mark.parametrize(
    "answer",
    [
        Response(b"[" + b" " * 5_000_000, content_type="application/json"),
        Response(gzip.compress(b" " * 50_000_000), headers={"content-encoding": "gzip"}),
    ],
    ids=["large", "large when unpacked"],
)
def test_a_huge_answer_is_abandoned(provider: Provider, answer: Response) -> None:
    provider.script.append(answer)
    with pytest.raises(TransientError, match="longer than 4000000 bytes"):
        provider.model().complete(PROMPT, Verdict)


def test_a_compressed_answer_is_read(provider: Provider) -> None:
    packed = gzip.compress(provider.good().data)
    provider.script.append(Response(packed, headers={"content-encoding": "gzip"}, content_type="application/json"))
    assert provider.model().complete(PROMPT, Verdict).value == CLEAR


def test_a_refusal_ends_the_exchange(provider: Provider) -> None:
    if provider.kind == "openai":
        message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
        body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        provider.script.append(Response(json.dumps(body), content_type="application/json"))
    else:
        provider.script.append(provider.good("", "refusal"))
    with pytest.raises(ModelError) as caught:
        provider.model().complete(PROMPT, Verdict)
    assert caught.value.reason == "refused"


def test_null_content_gets_one_repair_turn(provider: Provider) -> None:
    provider.script.extend([provider.good(None), provider.good(None)])
    with pytest.raises(ModelError) as caught:
        provider.model().complete(PROMPT, Verdict)
    assert caught.value.reason == "malformed"
    assert len(provider.requests) == 2
    assert all(turn["content"] for turn in provider.requests[1]["messages"])


def test_a_key_never_follows_a_redirect(provider: Provider) -> None:
    with HTTPServer(host="127.0.0.1") as elsewhere:
        elsewhere.expect_request("/").respond_with_json({})
        target = elsewhere.url_for("/")
        provider.script.append(Response("", 307, {"location": target}))
        with pytest.raises(ModelError, match="redirects elsewhere"):
            provider.model().complete(PROMPT, Verdict)
        assert not elsewhere.log
    assert KEY in str(provider.headers[0])


def test_a_gateway_that_reports_a_failure_with_status_200(provider: Provider) -> None:
    provider.script.append(
        Response('{"error": {"code": 429, "message": "upstream busy"}}', content_type="application/json")
    )
    with pytest.raises(TransientError if provider.kind == "openai" else ModelError):
        provider.model().complete(PROMPT, Verdict)


def raw(kind: str, port: int, timeout: float = 2.0) -> Conversation:
    url = f"http://127.0.0.1:{port}"
    if kind == "openai":
        return Conversation("openai:x", openai.connect("gpt-5-mini", KEY, f"{url}/v1", timeout))
    return Conversation("anthropic:x", anthropic.connect("claude-x", KEY, url, timeout))


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, r"acme refused the key \(401\): check ACME_API_KEY"), (404, r"acme does not know the model \(404\)")],
)
def test_a_provider_that_speaks_openais_protocol_is_named(
    httpserver: HTTPServer, status: int, message: str
) -> None:
    httpserver.expect_request("/v1/chat/completions").respond_with_json(
        {"error": {"message": "no"}}, status=status
    )
    remote = openai.connect("m", KEY, httpserver.url_for("/v1"), provider="acme")
    with pytest.raises(ModelError, match=message):
        Conversation("acme:m", remote).complete(PROMPT, Verdict)


@contextlib.contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of a server that answers one request like this."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(65536)
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "response",
    [
        b"",
        b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"choices": [',
        b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"cho\r\n',
        b"not http at all\r\n\r\n",
    ],
)
def test_a_connection_that_breaks_is_transient(kind: str, response: bytes) -> None:
    with (
        answering(lambda connection: connection.sendall(response)) as port,
        pytest.raises(TransientError, match=f"{kind} could not be reached"),
    ):
        raw(kind, port).complete(PROMPT, Verdict)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_provider_over_its_deadline_is_abandoned(kind: str) -> None:
    def slowly(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
        for _ in range(100):
            connection.sendall(b" ")
            time.sleep(0.1)

    with answering(slowly) as port:
        start = time.monotonic()
        with pytest.raises(TransientError, match="took longer than 1 s"):
            raw(kind, port, timeout=1.0).complete(PROMPT, Verdict)
        assert time.monotonic() - start < 4


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_refused_connection_is_transient(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert spent_on_failure(raw(kind, port), "ConnectError") == Spent()


def test_one_model_serves_many_threads(provider: Provider) -> None:
    def echo(request: Request) -> Response:
        question = json.loads(request.data)["messages"][-1]["content"]
        return provider.good(json.dumps({"explanation": question, "label": "CLEAR"}))

    provider.script.extend(echo for _ in range(40))
    model = provider.model()

    def ask(number: int) -> str:
        prompt = PROMPT.model_copy(update={"user": f"question {number}"})
        return model.complete(prompt, Verdict).value.explanation

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(40))) == [f"question {number}" for number in range(40)]


def test_tokens_of_the_prompt_cache_are_counted_and_priced() -> None:
    price = Price(input=2.0, output=10.0, cached=0.5, written=2.5)
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 600}}
    body = {"choices": [{"message": {"content": "{}"}}], "usage": usage}
    answer = openai.answer(json.dumps(body).encode())
    assert (answer.input_tokens, answer.cached_tokens) == (1000, 600)
    assert cost(answer, price) == pytest.approx((400 * 2.0 + 600 * 0.5 + 10 * 10.0) / 1e6)
    claude_usage = {"input_tokens": 100, "cache_read_input_tokens": 600, "cache_creation_input_tokens": 300}
    message = {"content": [{"type": "text", "text": "{}"}], "usage": {**claude_usage, "output_tokens": 10}}
    answer = anthropic.answer(json.dumps(message).encode())
    assert (answer.input_tokens, answer.cached_tokens) == (1000, 600)
    assert cost(answer, price) == pytest.approx((100 * 2.0 + 600 * 0.5 + 300 * 2.5 + 10 * 10.0) / 1e6)
    assert Usage(input_tokens=1000, cached_tokens=600, output_tokens=10).tokens == "1,000 (600 cached) + 10 tokens"
