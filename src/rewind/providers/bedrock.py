"""Amazon Bedrock: Converse and InvokeModel, also as streams in AWS's binary event frames."""

import base64
import binascii
import json
import re
import struct
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.step import Reading, StepKind
from rewind.providers.answer import Answer, answer_of
from rewind.providers.anthropic import TOOL_IDS, tally_of
from rewind.providers.base import Volatile
from rewind.providers.fields import at, count_at, items_at, text_at, total
from rewind.providers.tally import Tally

_PATH = re.compile(r"/model/(.+)/(converse|converse-stream|invoke|invoke-with-response-stream)$")
_FRAMES = "application/vnd.amazon.eventstream"
_INPUT = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
_REFERS = "Ties a tool's result to its call; drawn at random."


class Bedrock:
    """Converse has one shape for all models; what InvokeModel carries is read where it is Anthropic's."""

    name = "bedrock"
    kind = StepKind.LLM_CALL
    volatile = (
        Volatile("messages[*].content[*].toolUse.toolUseId", _REFERS, linked=True),
        Volatile("messages[*].content[*].toolResult.toolUseId", _REFERS, linked=True),
        *TOOL_IDS,
    )

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and _PATH.search(head.path) is not None

    def model_of(self, request: HttpRequest) -> str | None:
        found = _PATH.search(request.head.path)
        return unquote(found[1], errors="replace") if found else None

    def read(self, request: HttpRequest, response: HttpResponse) -> Reading:
        framed = _FRAMES in (response.head.header("content-type") or "").lower()
        answer = _framed(response.body) if framed else answer_of(response)
        found = _PATH.search(request.head.path)
        if found and found[2].startswith("invoke"):
            tally = tally_of(answer.documents)
            tally.tokens_in = _or(tally.tokens_in, _counted(response, "x-amzn-bedrock-input-token-count"))
            tally.tokens_out = _or(tally.tokens_out, _counted(response, "x-amzn-bedrock-output-token-count"))
        else:
            tally = Tally()
            for document in answer.documents:
                _take(tally, document)
        return tally.reading(response, answer, lambda: self.model_of(request))

    def refusal(self, message: str) -> dict[str, Any]:
        return {"message": message}


def _or(known: int | None, told: int | None) -> int | None:
    return told if known is None else known


def _counted(response: HttpResponse, name: str) -> int | None:
    value = response.head.header(name) or ""
    return int(value) if re.fullmatch(r"[0-9]{1,15}", value) else None


def _take(tally: Tally, document: Any) -> None:
    for number, block in enumerate(items_at(document, "output", "message", "content")):
        tally.text(text_at(block, "text"))
        if isinstance(use := at(block, "toolUse"), dict):
            tool = tally.tool(number)
            tool.name, tool.arguments = text_at(use, "name"), at(use, "input")
    number_told = count_at(document, "contentBlockIndex")
    if isinstance(begun := at(document, "start", "toolUse"), dict):
        tally.tool(number_told).name = text_at(begun, "name")
    tally.text(text_at(document, "delta", "text"))
    if (piece := text_at(document, "delta", "toolUse", "input")) and number_told in tally.tools:
        tally.tool(number_told).pieces.append(piece)
    usage = at(document, "usage")
    if isinstance(usage, dict):
        tally.tokens_in = total(*(count_at(usage, name) for name in _INPUT))
        tally.tokens_out = count_at(usage, "outputTokens")


def _framed(body: bytes) -> Answer:
    documents = []
    damaged = 0
    for payload in _payloads(body):
        try:
            document = json.loads(payload)
            wrapped = text_at(document, "bytes")
            document = json.loads(base64.b64decode(wrapped)) if wrapped else document
        except (ValueError, RecursionError, binascii.Error):
            damaged += 1
            continue
        # A frame with only a message is an exception told inside the stream.
        told = (
            isinstance(document, dict)
            and set(document) <= {"message", "Message", "originalMessage"}
            and document
        )
        documents.append({"error": document} if told else document)
    return Answer(documents=tuple(documents), note=f"{damaged} damaged frames" if damaged else None)


def _payloads(body: bytes) -> Iterator[bytes]:
    """The payload of each whole frame: total length, header length, checksum, headers, payload, checksum."""
    position = 0
    while position + 16 <= len(body):
        size, headers = struct.unpack_from(">II", body, position)
        if size < 16 + headers or position + size > len(body):
            return
        yield body[position + 12 + headers : position + size - 4]
        position += size
