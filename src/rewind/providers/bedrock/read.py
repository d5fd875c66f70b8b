"""Amazon Bedrock: Converse and InvokeModel, also as streams in AWS's binary event frames."""

import base64
import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked
from rewind.model.step import StepKind
from rewind.providers.anthropic.read import TOOL_IDS
from rewind.providers.api import Volatile
from rewind.providers.bedrock import converse as bedrock_converse
from rewind.providers.bedrock import invoke as bedrock_invoke
from rewind.providers.openai_chat.read import TOOL_CALL_IDS
from rewind.providers.shared.answer_stream import Answer, answer_of, asked_for
from rewind.providers.shared.json_fields import text_at, writable
from rewind.text import plural
from rewind.wire.encoding import decode_as_far_as_possible
from rewind.wire.eventstream import Frame, begins_with_a_frame, read_frames

_PATH = re.compile(r"/model/(.+)/(converse|converse-stream|invoke|invoke-with-response-stream)$")
_FRAMES = "application/vnd.amazon.eventstream"
_REFERS = "Ties a tool's result to its call; drawn at random."


class Bedrock:
    """Converse has one shape for all models; InvokeModel carries what the model's own maker thought of."""

    name = "bedrock"
    kind = StepKind.LLM_CALL
    volatile = (
        Volatile("messages[*].content[*].toolUse.toolUseId", _REFERS, linked=True),
        Volatile("messages[*].content[*].toolResult.toolUseId", _REFERS, linked=True),
        *TOOL_IDS,
        *TOOL_CALL_IDS,
    )

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and _PATH.search(head.path) is not None

    def asked(self, request: HttpRequest) -> Asked:
        model, operation = _called(request)
        document, note = asked_for(request)
        if _invokes(operation):
            asked = bedrock_invoke.asked_in(document, request)
        else:
            asked = bedrock_converse.asked_in(document)
        return replace(
            asked,
            model=model or asked.model,
            streamed=operation.endswith("-stream"),
            # A request without settings is a text like any other; then only the name tells.
            embeds=asked.embeds or (_invokes(operation) and "embed" in (model or "").lower()),
            note=note or asked.note,
        )

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        _, operation = _called(request)
        answer = _answer_of(response)
        if _invokes(operation):
            return bedrock_invoke.answered_in(response, answer)
        draft = bedrock_converse.draft_of(answer.documents)
        return draft.answered(response, answer, bedrock_converse.USAGE)

    def refusal(self, message: str) -> dict[str, Any]:
        return {"message": message}


def _called(request: HttpRequest) -> tuple[str, str]:
    """The model, and what is asked of it."""
    found = _PATH.search(request.head.path)
    return (writable(unquote(found[1], errors="replace")), found[2]) if found else ("", "")


def _invokes(operation: str) -> bool:
    return operation.startswith("invoke")


def _answer_of(response: HttpResponse) -> Answer:
    body, trouble = decode_as_far_as_possible(response.body, response.head.header("content-encoding"))
    framed = _FRAMES in (response.head.header("content-type") or "").lower()
    if begins_with_a_frame(body) or (framed and not body.lstrip().startswith(b"{")):
        return _framed(body, trouble)
    return answer_of(response)


def _framed(body: bytes, trouble: str | None) -> Answer:
    stream = read_frames(body)
    documents, damaged, doubtful = [], stream.lost, 0
    for frame in stream.frames:
        document = _document(frame)
        if document is None:
            damaged += 1
        else:
            documents.append(document)
            doubtful += not frame.intact
    notes = (
        trouble,
        damaged and plural(damaged, "damaged frame"),
        # Redaction changes a frame and leaves its checksum: what it says is still worth showing.
        doubtful and f"{plural(doubtful, 'frame')} with a wrong checksum",
        stream.cut and "the stream is cut inside a frame",
    )
    return Answer(documents=tuple(documents), note="; ".join(note for note in notes if note) or None)


def _document(frame: Frame) -> Any:
    """An event under its name, or what a model itself said; ``None`` for one that cannot be read."""
    message_type = frame.header(":message-type")
    if message_type == "error":
        return {"error": {"message": frame.header(":error-message"), "type": frame.header(":error-code")}}
    try:
        document = json.loads(frame.payload or b"{}")
        if wrapped := text_at(document, "bytes"):
            return json.loads(base64.b64decode(wrapped, validate=True))
    except (ValueError, RecursionError):  # what is no base64 is a ValueError too
        return None
    if message_type == "exception":
        told = document if isinstance(document, dict) else {}
        return {"error": {"type": frame.header(":exception-type"), **told}}
    name = frame.header(":event-type")
    return {name: document} if name else None
