"""The vendors' own SDKs as readers of recorded answers.

Each is given the recorded bytes by its own HTTP client and parses them by itself; what was asked makes no
difference. What it assembled is then told in the words of our neutral shape, so that the two can be compared.
"""

import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import anthropic
import botocore.session
import httpx2
import openai
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError
from google import genai

from rewind.model.http import HttpResponse
from rewind.model.message import Answered, Part, Refusal, Text, Thinking, ToolUse
from rewind.model.usage import Usage
from support.traffic import Exchange

Tool = tuple[str, str, Any]
"""Id, name and arguments of a tool that the agent is asked to run."""
FRAMING = {"content-length", "transfer-encoding", "connection"}

RAISES = "raises on an error inside the stream; compared with what it had put together until then, less the usage"
LAST_CHUNK = "keeps the usage of the last chunk only; compared with the last usage that a chunk told"
NO_OUTPUT = "takes the items from the last event, which has none; compared with the finished items it saw"
NO_BEGIN = "puts together no stream that begins in the middle; compared with the response in its last event"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """An answer as one of the two reads it. Empty is what it does not tell."""

    id: str = ""
    model: str = ""
    text: str = ""
    thinking: str = ""
    tools: tuple[Tool, ...] = ()
    alternatives: tuple[str, ...] = ()
    """The texts of the other choices."""
    stop: str = ""
    usage: Usage = field(default_factory=Usage)
    error: str = ""
    shortfall: str = field(default="", compare=False)
    """Where the SDK loses something of its own events or stops before the end: what was done about it."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors as an SDK counts them."""

    count: int
    dimensions: int
    tokens: int | None = None


def ours(answered: Answered) -> Assembled:
    """What our codec reads, told alike."""
    usage = answered.usage
    return Assembled(
        id=answered.id,
        model=answered.model or "",
        text=answered.text,
        thinking="".join(part.text for part in answered.parts if isinstance(part, Thinking)),
        tools=tuple((use.id, use.name, use.arguments) for use in answered.tool_uses),
        alternatives=tuple(_said(parts) for parts in answered.alternatives),
        stop=answered.stop,
        usage=Usage(
            input=usage.input,
            output=usage.output,
            cache_read=usage.cache_read,
            cache_write=usage.cache_write,
            reasoning=usage.reasoning,
        ),
        error=answered.error or "",
    )


def _said(parts: Iterable[Part]) -> str:
    tools = [f"{part.name}({json.dumps(part.arguments)})" for part in parts if isinstance(part, ToolUse)]
    return "".join(part.text for part in parts if isinstance(part, Text | Refusal)) + "".join(tools)


class _Wire(httpx2.BaseTransport):
    """Answers every request with one recorded answer."""

    answer: HttpResponse

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        head = self.answer.head
        headers = [(name, value) for name, value in head.headers if name.lower() not in FRAMING]
        stream = httpx2.ByteStream(self.answer.body)
        return httpx2.Response(head.status, headers=headers, stream=stream, request=request)


class _AwsBody(io.BytesIO):
    """A body as botocore wants it from its HTTP library."""

    def stream(self, amount: int = 1024, **_: Any) -> Iterator[bytes]:
        while piece := self.read(amount):
            yield piece


class Sdks:
    """All of them on one wire."""

    def __init__(self) -> None:
        self._wire = _Wire()
        http = httpx2.Client(transport=self._wire)
        self._anthropic = anthropic.Anthropic(api_key="-", http_client=http, max_retries=0)
        self._openai = openai.OpenAI(api_key="-", http_client=http, max_retries=0)
        options = genai.types.HttpOptions(httpx_client=http)
        self._genai = genai.Client(api_key="-", http_options=options)
        aws = botocore.session.Session()
        aws.set_credentials("-", "-")
        config = Config(retries={"max_attempts": 0})
        self._bedrock = aws.create_client("bedrock-runtime", region_name="us-east-1", config=config)
        self._bedrock.meta.events.register("before-send.bedrock-runtime.*", self._recorded_for_aws)

    def _recorded_for_aws(self, request: AWSRequest, **_: Any) -> AWSResponse:
        answer = self._wire.answer
        return AWSResponse(request.url, answer.head.status, dict(answer.head.headers), _AwsBody(answer.body))

    def reader_of(self, exchange: Exchange) -> tuple[str, Callable[[], Assembled]] | None:
        """The name of the SDK that speaks this API, and what reads the exchange with it."""
        path = exchange.request.head.path
        streamed = bool(exchange.stream_format)
        self._wire.answer = _as_events(exchange.response) if _is_list(exchange) else exchange.response
        if path.endswith("/v1/messages"):
            beta = "beta=true" in exchange.request.head.query
            return "anthropic", lambda: self._message(streamed, beta)
        if path.endswith("/chat/completions"):
            return "openai chat", self._streamed_chat if streamed else self._chat
        if path.endswith("/responses"):
            return "openai responses", self._streamed_response if streamed else self._response
        if "/v1/responses/" in path and streamed:
            return "openai responses", self._resumed_response
        if path.endswith((":generateContent", ":streamGenerateContent")):
            return "google-genai", lambda: self._generated(streamed)
        if path.endswith(("/converse", "/converse-stream")):
            return "botocore", self._streamed_converse if streamed else self._converse
        return None

    def embedder_of(self, exchange: Exchange) -> tuple[str, Callable[[], Embedded]] | None:
        """The same for embeddings. Voyage speaks as OpenAI does; for Cohere and Bedrock there is no such SDK here."""
        self._wire.answer = exchange.response
        path = exchange.request.head.path
        if path.endswith("/v1/embeddings"):
            return "openai", self._embedded
        if path.endswith((":embedContent", ":batchEmbedContents")):
            return "google-genai", self._gemini_embedded
        return None

    # ── Anthropic ────────────────────────────────────────────────────────────────────────────────────────────

    def _message(self, streamed: bool, beta: bool) -> Assembled:
        messages: Any = self._anthropic.beta.messages if beta else self._anthropic.messages
        asked = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "?"}]}
        try:
            if not streamed:
                return _anthropic(messages.create(**asked))
            with messages.stream(**asked) as stream:
                return _anthropic(stream.get_final_message())
        except anthropic.APIStatusError as error:
            body: Any = error.body
            return Assembled(error=body["error"]["message"])

    # ── OpenAI ───────────────────────────────────────────────────────────────────────────────────────────────

    def _chat(self) -> Assembled:
        try:
            return _openai_chat(
                self._openai.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
            )
        except openai.APIError as error:
            return Assembled(error=_openai_message(error))

    def _streamed_chat(self) -> Assembled:
        messages: Any = [{"role": "user", "content": "?"}]
        usage = None
        with self._openai.chat.completions.stream(model="m", messages=messages) as stream:
            try:
                for event in stream:
                    usage = (event.chunk.usage if event.type == "chunk" else None) or usage
            except openai.APIError as error:
                so_far = _openai_chat(stream.current_completion_snapshot)
                return replace(so_far, error=_openai_message(error), shortfall=RAISES)
            completion: Any = stream.get_final_completion()
        shortfall = "" if completion.usage or not usage else LAST_CHUNK
        completion.usage = completion.usage or usage
        return replace(_openai_chat(completion), shortfall=shortfall)

    def _response(self) -> Assembled:
        try:
            return _openai_response(self._openai.responses.create(model="m", input="?"))
        except openai.APIError as error:
            return Assembled(error=_openai_message(error))

    def _streamed_response(self) -> Assembled:
        finished: dict[int, Any] = {}
        with self._openai.responses.stream(model="m", input="?") as stream:
            for event in stream:
                if event.type == "response.output_item.done":
                    finished[event.output_index] = event.item
            response: Any = stream.get_final_response()
        shortfall = "" if response.output or not finished else NO_OUTPUT
        response.output = response.output or [item for _, item in sorted(finished.items())]
        return replace(_openai_response(response), shortfall=shortfall)

    def _resumed_response(self) -> Assembled:
        events = list(self._openai.responses.retrieve("resp", stream=True))
        last: Any = events[-1]
        return replace(_openai_response(last.response), shortfall=NO_BEGIN)

    def _embedded(self) -> Embedded:
        answer = self._openai.embeddings.create(model="m", input="?")
        # Voyage tells the total alone, and all of it was read.
        tokens = getattr(answer.usage, "prompt_tokens", None) or answer.usage.total_tokens
        return Embedded(len(answer.data), len(answer.data[0].embedding), tokens)

    # ── Google ───────────────────────────────────────────────────────────────────────────────────────────────

    def _generated(self, streamed: bool) -> Assembled:
        try:
            if streamed:
                return _gemini(list(self._genai.models.generate_content_stream(model="m", contents="?")))
            return _gemini([self._genai.models.generate_content(model="m", contents="?")])
        except genai.errors.APIError as error:
            return Assembled(error=error.message or "")

    def _gemini_embedded(self) -> Embedded:
        vectors = self._genai.models.embed_content(model="m", contents="?").embeddings or []
        return Embedded(len(vectors), len(vectors[0].values or []))

    # ── AWS ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _converse(self) -> Assembled:
        try:
            answer = self._bedrock.converse(modelId="m", messages=[])
        except ClientError as error:
            return Assembled(error=error.response["Error"]["Message"])
        return _converse(answer["output"]["message"]["content"], answer["stopReason"], answer["usage"])

    def _streamed_converse(self) -> Assembled:
        blocks: dict[int, dict[str, Any]] = {}
        stop, usage = "", {}
        for event in self._bedrock.converse_stream(modelId="m", messages=[])["stream"]:
            match event:
                case {"contentBlockStart": {"contentBlockIndex": place, "start": start}}:
                    blocks[place] = {kind: dict(value) for kind, value in start.items()}
                case {"contentBlockDelta": {"contentBlockIndex": place, "delta": delta}}:
                    _join(blocks.setdefault(place, {}), delta)
                case {"messageStop": {"stopReason": reason}}:
                    stop = reason
                case {"metadata": {"usage": told}}:
                    usage = told
        for block in blocks.values():
            if "toolUse" in block:
                block["toolUse"]["input"] = json.loads(block["toolUse"].get("input") or "{}")
        return _converse([block for _, block in sorted(blocks.items())], stop, usage)


def _is_list(exchange: Exchange) -> bool:
    return exchange.stream_format == "json-array"


def _as_events(answer: HttpResponse) -> HttpResponse:
    """A streamed JSON list as the events that Google's SDK asks for: the same documents, one an event."""
    events = [b"data: " + json.dumps(document).encode() + b"\r\n\r\n" for document in json.loads(answer.body)]
    return HttpResponse(head=answer.head, body=b"".join(events), chunks=())


def _anthropic(message: Any) -> Assembled:
    usage = message.usage
    cached = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    details = usage.output_tokens_details
    return Assembled(
        id=message.id,
        model=message.model,
        text="".join(block.text for block in message.content if block.type == "text"),
        thinking="".join(block.thinking for block in message.content if block.type == "thinking"),
        tools=tuple((one.id, one.name, one.input) for one in message.content if one.type == "tool_use"),
        stop=message.stop_reason or "",
        usage=Usage(
            input=usage.input_tokens + sum(count or 0 for count in cached),
            output=usage.output_tokens,
            cache_read=cached[0],
            cache_write=cached[1],
            reasoning=details.thinking_tokens if details else None,
        ),
    )


def _openai_chat(completion: Any) -> Assembled:
    first, *others = completion.choices
    usage = completion.usage
    read, written = (usage.prompt_tokens_details, usage.completion_tokens_details) if usage else (None, None)
    return Assembled(
        id=completion.id,
        model=completion.model,
        text=_chat_text(first.message),
        # No field of OpenAI's own: hosts that speak its language add one of these, and the SDK passes them on.
        thinking=getattr(first.message, "reasoning_content", None) or getattr(first.message, "reasoning", None) or "",
        tools=tuple(_chat_tools(first.message)),
        alternatives=tuple(
            _chat_text(choice.message)
            + "".join(f"{name}({json.dumps(arguments)})" for _, name, arguments in _chat_tools(choice.message))
            for choice in others
        ),
        stop=first.finish_reason or "",
        usage=Usage(
            input=usage.prompt_tokens if usage else None,
            output=usage.completion_tokens if usage else None,
            cache_read=read.cached_tokens if read else None,
            cache_write=getattr(read, "cache_write_tokens", None),
            reasoning=written.reasoning_tokens if written else None,
        ),
    )


def _chat_text(message: Any) -> str:
    return (message.content or "") + (message.refusal or "")


def _chat_tools(message: Any) -> Iterator[Tool]:
    for call in message.tool_calls or ():
        yield call.id, call.function.name, _json_or_text(call.function.arguments)


def _openai_response(response: Any) -> Assembled:
    texts: list[str] = []
    thoughts: list[str] = []
    tools: list[Tool] = []
    for item in response.output:
        match item.type:
            case "message":
                texts += [str(part.text if part.type == "output_text" else part.refusal) for part in item.content]
            case "reasoning":
                thoughts.append("\n\n".join(part.text for part in item.content or item.summary))
            case "function_call":
                tools.append((item.call_id, item.name, _json_or_text(item.arguments)))
            case "custom_tool_call":
                tools.append((item.call_id, item.name, item.input))
            case "tool_search_call" if item.execution == "client":
                tools.append((item.call_id, "tool_search", item.arguments))
    usage = response.usage
    return Assembled(
        id=response.id,
        model=response.model,
        text="".join(texts),
        thinking="".join(thoughts),
        tools=tuple(tools),
        stop=f"{response.status}: {cut.reason}" if (cut := response.incomplete_details) else response.status,
        usage=Usage(
            input=usage.input_tokens,
            output=usage.output_tokens,
            cache_read=usage.input_tokens_details.cached_tokens,
            cache_write=getattr(usage.input_tokens_details, "cache_write_tokens", None),
            reasoning=usage.output_tokens_details.reasoning_tokens,
        )
        if usage
        else Usage(),
        error=response.error.message if response.error else "",
    )


def _openai_message(error: openai.APIError) -> str:
    body = error.body
    told = body.get("message") if isinstance(body, dict) else None
    return str(told or error.message)


def _gemini(chunks: list[Any]) -> Assembled:
    candidates = [chunk.candidates[0] for chunk in chunks if chunk.candidates]
    parts = [part for one in candidates for part in (one.content.parts if one.content else None) or ()]
    reasons = [candidate.finish_reason.value for candidate in candidates if candidate.finish_reason]
    usage = chunks[-1].usage_metadata
    return Assembled(
        id=chunks[-1].response_id or "",
        model=chunks[-1].model_version or "",
        text="".join(part.text for part in parts if part.text and not part.thought),
        thinking="".join(part.text for part in parts if part.text and part.thought),
        tools=tuple((call.id or "", call.name, call.args or {}) for part in parts if (call := part.function_call)),
        stop=reasons[-1] if reasons else "",
        usage=Usage(
            input=_sum(usage.prompt_token_count, usage.tool_use_prompt_token_count),
            output=_sum(usage.candidates_token_count, usage.thoughts_token_count),
            cache_read=usage.cached_content_token_count,
            reasoning=usage.thoughts_token_count,
        )
        if usage
        else Usage(),
    )


def _converse(blocks: list[dict[str, Any]], stop: str, usage: dict[str, Any]) -> Assembled:
    thoughts = [block["reasoningContent"] for block in blocks if "reasoningContent" in block]
    # The others are run by AWS within the answer.
    uses = [use for block in blocks if (use := block.get("toolUse")) and use.get("type") != "server_tool_use"]
    return Assembled(
        text="".join(block["text"] for block in blocks if "text" in block),
        thinking="".join(one.get("reasoningText", one).get("text", "") for one in thoughts),
        tools=tuple((use["toolUseId"], use["name"], use["input"]) for use in uses),
        stop=stop,
        usage=Usage(
            input=_sum(usage.get("inputTokens"), usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens")),
            output=usage.get("outputTokens"),
            cache_read=usage.get("cacheReadInputTokens"),
            cache_write=usage.get("cacheWriteInputTokens"),
        ),
    )


def _join(block: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a delta of a Converse stream to its block: texts are appended, objects joined."""
    for name, value in delta.items():
        if isinstance(value, dict):
            _join(block.setdefault(name, {}), value)
        elif isinstance(value, str):
            block[name] = block.get(name, "") + value
        else:
            block[name] = value


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _json_or_text(written: str) -> Any:
    try:
        return json.loads(written)
    except ValueError:
        return written
