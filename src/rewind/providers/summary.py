"""The short form of an exchange, for tables and journal lines."""

from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Answered, Asked, ToolResult, ToolUse, Vectors
from rewind.model.step import Reading
from rewind.providers.api import Api
from rewind.providers.shared.json_fields import asked_tool, start_of, writable
from rewind.text import plural


def read(provider: Api, request: HttpRequest, response: HttpResponse) -> Reading:
    """What can be told of an exchange in a line. Never raises."""
    return short(provider.reader.asked(request), provider.reader.answered(request, response))


def short(asked: Asked, answered: Answered) -> Reading:
    model = answered.model or asked.model
    return Reading(
        model=writable(model)[:200] if model else None,
        text=start_of(_run_tool(asked, answered) or said(answered) or _told(asked)),
        usage=answered.usage,
        error=start_of(answered.error, 500) if answered.error else None,
        note=answered.note,
    )


def said(answered: Answered) -> str:
    """What an answer comes to: the tools it asks for, or else its text."""
    tools = [asked_tool(use.name, use.arguments) for use in answered.tool_uses]
    vectors = [vectors_shown(part) for part in answered.parts if isinstance(part, Vectors)]
    # A hosted tool is worth a line only where nothing else was said.
    hosted = [
        asked_tool(part.name, part.arguments)
        for part in answered.parts
        if isinstance(part, ToolUse) and part.hosted
    ]
    return " ".join(tools or vectors) or answered.text or " ".join(hosted)


def _run_tool(asked: Asked, answered: Answered) -> str:
    """Where the exchange itself is a tool's run, as over MCP: the call and what it gave."""
    uses = [part for message in asked.messages[-1:] for part in message.parts if isinstance(part, ToolUse)]
    results = [part.text for part in answered.parts if isinstance(part, ToolResult) and not part.hosted]
    if asked.model or not uses or not (results or answered.error):
        return ""
    return f"{asked_tool(uses[0].name, uses[0].arguments)} ← {' '.join(results)}".rstrip(" ←")


def _told(asked: Asked) -> str:
    """What was said to somebody who need not answer: a notification."""
    return "" if asked.model or len(asked.messages) != 1 else asked.messages[0].text


def vectors_shown(vectors: Vectors) -> str:
    """``3 vectors of 1,536``."""
    size = f" of {vectors.dimensions:,}" if vectors.dimensions else ""
    return f"{plural(vectors.count, 'vector')}{size}"
