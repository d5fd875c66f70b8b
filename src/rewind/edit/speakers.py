"""Who answers a request."""

from urllib.parse import unquote

from rewind.model.http import HttpRequest
from rewind.model.step import StepKind
from rewind.providers.anthropic.speak import AnthropicSpeaker
from rewind.providers.bedrock import speak as bedrock
from rewind.providers.catalogue import identify
from rewind.providers.cohere.speak import CohereSpeaker, OlderCohereSpeaker
from rewind.providers.gemini.speak import GeminiSpeaker
from rewind.providers.ollama.speak import OllamaSpeaker
from rewind.providers.openai_chat.speak import ChatSpeaker, CompletionSpeaker
from rewind.providers.openai_responses.speak import ResponsesSpeaker
from rewind.providers.shared.answer_stream import asked_for
from rewind.providers.shared.json_fields import at, items_at
from rewind.providers.shared.speaker import Speaker
from rewind.providers.shared.tool_speakers import HttpSpeaker, McpSpeaker, NumberSpeaker, ToolSpeaker


def speaker_of(request: HttpRequest) -> Speaker:
    """The speaker for the API of a request, in the form that was asked for."""
    provider = identify(request.head)
    asked = provider.asked(request)
    document, _ = asked_for(request)
    model, streamed = asked.model or "", asked.streamed
    path = unquote(request.head.path).rstrip("/")
    if asked.embeds:
        return NumberSpeaker("vectors")
    if provider.kind is StepKind.HTTP_CALL and provider.name in ("anthropic", "gemini"):
        return NumberSpeaker("a count of tokens")
    match provider.name:
        case "anthropic":
            return AnthropicSpeaker(model, streamed=streamed or path.endswith(":streamRawPredict"))
        case "openai-chat" if at(document, "messages") is None and at(document, "prompt") is not None:
            return CompletionSpeaker(model, streamed=streamed)
        case "openai-chat":
            return ChatSpeaker(
                model,
                streamed=streamed,
                with_usage=at(document, "stream_options", "include_usage") is True,
                functions=bool(items_at(document, "functions")),
            )
        case "openai-responses":
            return ResponsesSpeaker(model, streamed=streamed)
        case "gemini":
            return GeminiSpeaker(
                model,
                streamed=streamed,
                as_events=("alt", "sse") in request.head.query_pairs,
                wrapped=isinstance(at(document, "request"), dict),
            )
        case "ollama":
            return OllamaSpeaker(model, streamed=streamed, generates=path.endswith("/api/generate"))
        case "cohere" if at(document, "messages") is None:
            return OlderCohereSpeaker(streamed=streamed)
        case "cohere":
            return CohereSpeaker(streamed=streamed)
        case "bedrock":
            invoked = path.endswith(("/invoke", "/invoke-with-response-stream"))
            return bedrock.speaker_of(document, model, invoked=invoked, streamed=streamed)
        case "tools":
            return ToolSpeaker()
        case "mcp":
            accepted = (request.head.header("accept") or "").lower()
            return McpSpeaker(at(document, "id"), as_events="application/json" not in accepted)
        case _:
            return HttpSpeaker()
