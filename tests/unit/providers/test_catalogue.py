"""Who claims which request."""

import pytest

from rewind.model.http import Headers, RequestHead
from rewind.model.step import StepKind
from rewind.providers.catalogue import BUILT_IN, FALLBACK, identify, looks_like_llm
from support.wire_examples import EXAMPLES


def head(
    path: str, *, method: str = "POST", scheme: str = "https", host: str = "gateway.example", headers: Headers = ()
) -> RequestHead:
    return RequestHead(method=method, scheme=scheme, host=host, port=443, target=path, headers=headers)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/messages", "anthropic"),
        ("/v1/messages?beta=true", "anthropic"),
        ("/anthropic/v1/messages", "anthropic"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict", "anthropic"),
        ("/v1/chat/completions", "openai-chat"),
        ("/api/v1/chat/completions", "openai-chat"),
        ("/openai/v1/chat/completions", "openai-chat"),
        ("/chat/completions", "openai-chat"),
        ("/openai/deployments/gpt-5/chat/completions?api-version=2026-01-01", "openai-chat"),
        ("/v1/completions", "openai-chat"),
        ("/v1/chat/completions/", "openai-chat"),
        ("/v1/responses", "openai-responses"),
        ("/responses", "openai-responses"),
        ("/v1beta/models/gemini-3:generateContent", "gemini"),
        ("/v1beta/models/gemini-3:streamGenerateContent?alt=sse", "gemini"),
        ("/v1/projects/p/locations/l/publishers/google/models/gemini-3:generateContent", "gemini"),
        ("/v1beta/models/gemini-3%3AgenerateContent", "gemini"),
        ("/v1internal:streamGenerateContent?alt=sse", "gemini"),
        ("/api/chat", "ollama"),
        ("/api/generate", "ollama"),
        ("/model/anthropic.claude-x-v1%3A0/converse-stream", "bedrock"),
        ("/model/m/invoke", "bedrock"),
        ("/v1/embeddings", "openai-embeddings"),
        ("/v2/embed", "openai-embeddings"),
        ("/api/embed", "openai-embeddings"),
        ("/v1beta/models/e:batchEmbedContents", "gemini"),
    ],
)
def test_an_api_is_recognised_by_its_path_on_any_host(path: str, name: str) -> None:
    provider = identify(head(path))
    assert (provider.name, provider.kind) == (name, StepKind.LLM_CALL)
    assert looks_like_llm(head(path))


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1beta/models/g:countTokens"])
def test_counting_tokens_is_no_call_to_a_model_but_belongs_to_its_api(path: str) -> None:
    assert identify(head(path)).kind is StepKind.HTTP_CALL
    assert identify(head(path)) is not FALLBACK
    assert looks_like_llm(head(path))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/messages"),
        ("GET", "/v1/responses/resp_1"),
        ("POST", "/v1/threads/t/messages"),
        ("POST", "/mcp"),
        ("GET", "/"),
        ("OPTIONS", "*"),
        ("POST", "/v1/messages-of-the-day"),
    ],
)
def test_everything_else_is_plain_http(method: str, path: str) -> None:
    assert identify(head(path, method=method)) is FALLBACK


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/llama", "/api/tags", "/v1/responses/resp_1"])
def test_what_clients_ask_besides_answers_belongs_to_an_llm_server_too(path: str) -> None:
    assert looks_like_llm(head(path, method="GET"))


def test_cohere_is_recognised_where_it_shows_itself() -> None:
    cohere = identify(head("/v2/chat", host="api.cohere.com"))
    assert (cohere.name, cohere.kind) == ("cohere", StepKind.LLM_CALL)
    assert identify(head("/cohere/v1/chat")) is cohere
    assert identify(head("/v2/chat")) is FALLBACK


def test_tool_servers_are_told_by_their_headers_and_are_no_models() -> None:
    asked = head("/any/path", headers=(("MCP-Protocol-Version", "2025-06-18"),))
    first = head("/mcp", headers=(("Accept", "application/json, text/event-stream"),))
    for request in (asked, first):
        assert (identify(request).name, identify(request).kind) == ("mcp", StepKind.HTTP_CALL)
        assert not looks_like_llm(request)


def test_a_tool_of_the_agents_own_is_told_by_its_scheme() -> None:
    call = head("weather", method="CALL", scheme="tool", host="")
    assert (identify(call).name, identify(call).kind) == ("tools", StepKind.TOOL_CALL)
    assert not looks_like_llm(call)


def test_no_two_providers_claim_one_request() -> None:
    heads = [example.request.head for example in EXAMPLES]
    heads += [stream.request.head for example in EXAMPLES for stream in example.streams]
    for request in heads:
        assert sum(provider.reader.claims(request) for provider in BUILT_IN) == 1, request.target


def test_another_list_of_providers_can_be_asked() -> None:
    assert identify(head("/v1/messages"), ()) is FALLBACK
    assert identify(head("/v1/chat/completions"), BUILT_IN[1:]) is FALLBACK


def test_every_volatile_row_has_a_reason() -> None:
    rows = [row for provider in (*BUILT_IN, FALLBACK) for row in provider.volatile]
    assert rows
    assert all(row.reason.endswith(".") for row in rows)
