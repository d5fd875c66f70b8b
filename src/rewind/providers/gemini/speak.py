"""Answers of Google Gemini."""

from typing import Any

from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Asked
from rewind.providers.api import AnswerContent, Document, LossLog, Speaker
from rewind.providers.gemini.write import function_call
from rewind.providers.shared.answer_stream import request_json
from rewind.providers.shared.framing import events, growing_list, whole
from rewind.providers.shared.json_fields import at, items_at, without
from rewind.providers.shared.speak import pieces

_NO_USAGE: Document = {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}


def _in_pieces(answer: Document) -> list[Document]:
    """The first candidate part by part, its texts in pieces; what ends an answer comes with the last."""
    first = at(answer, "candidates", 0)
    parts = items_at(first, "content", "parts")
    if not parts or len(items_at(answer, "candidates")) > 1:
        return [answer]
    small = [piece for part in parts for piece in _part_pieces(part)]
    about = without(answer, "candidates", "usageMetadata")
    begun = without(first, "finishReason")
    *before, last = [{**begun, "content": {**first["content"], "parts": [part]}} for part in small]
    return [*({**about, "candidates": [one]} for one in before), {**answer, "candidates": [{**first, **last}]}]


def _part_pieces(part: Any) -> list[Any]:
    match part:
        case {"text": str(text), **more} if len(text) > 1 and set(more) <= {"thought"}:
            return [{**more, "text": one} for one in pieces(text)]
        case _:
            return [part]


def speaker_for(request: HttpRequest, asked: Asked) -> Speaker:
    """One answer, or several of the same shape: in events, or in a list where no events were asked for."""
    as_events = ("alt", "sse") in request.head.query_pairs
    wrapped = isinstance(at(request_json(request)[0], "request"), dict)  # Code Assist stands between

    def document(content: AnswerContent) -> Document:
        text = [{"text": content.text}] if content.text or not content.tools else []
        parts = [*text, *(function_call(use, LossLog()) for use in content.tools)]
        candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}
        answer = {
            "candidates": [candidate],
            "usageMetadata": _NO_USAGE,
            "modelVersion": asked.model or "",
            "responseId": content.named(""),
        }
        return {"response": answer} if wrapped else answer

    def response(document: Document) -> HttpResponse:
        inner = document.get("response")
        answer = inner if wrapped and isinstance(inner, dict) else document
        if not asked.streamed:
            return whole(document, media="application/json; charset=UTF-8")
        sent = [{"response": piece} if answer is inner else piece for piece in _in_pieces(answer)]
        return events(sent, newline=b"\r\n") if as_events else growing_list(sent)

    how = ("events" if as_events else "list") if asked.streamed else "whole"
    return Speaker(form=f"gemini {how}{' wrapped' * wrapped}", document=document, response=response)
