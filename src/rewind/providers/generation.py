"""APIs that are given a prompt and answer with a text: older ones, and those of clouds that run others' models.

Each is a row of a table: where it is spoken, and where its requests and answers keep things. A conversation written
into the prompt itself is read as the turns it consists of. Whole answers and the pieces of a stream are read by the
same function.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from rewind.dataclass import dataclass
from rewind.model.http import HttpRequest, HttpResponse, RequestHead, without_headers
from rewind.model.message import Answered, Asked, Message, Other, Role, Text, Vectors
from rewind.model.step import StepKind
from rewind.providers.api import Api
from rewind.providers.cohere.read import USAGE as COHERE_USAGE
from rewind.providers.cohere.read import count_usage as count_cohere
from rewind.providers.openai_chat.read import OpenAIChatReader
from rewind.providers.shared.answer_draft import AnswerDraft, UsageTable, parameters_of
from rewind.providers.shared.answer_stream import read_answer, request_json
from rewind.providers.shared.chat_messages import conversation, input_messages, parts_of, split_system
from rewind.providers.shared.json_fields import at, count_at, inline, items_at, text_at, words_at, writable
from rewind.wire.encoding import decode_as_far_as_possible
from rewind.wire.eventstream import begins_with_a_frame, read_frames

_TURN = re.compile(r"\n\n(Human|Assistant):")
_CHAT = OpenAIChatReader()

Place = tuple[str | int, ...]
Take = Callable[[AnswerDraft, Any, HttpRequest], None]
"""Puts what one document of an answer says into the draft."""


def _as_it_came(response: HttpResponse) -> tuple[HttpResponse, str | None]:
    return response, None


def _error(message: str) -> dict[str, Any]:
    return {"error": message}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GenerationReader:
    """Reads the bodies of one such API."""

    path: re.Pattern[str]
    """Its group ``model`` is the model, where the address names it."""
    host: str = ""
    """What the name of the host must hold, because the path alone would claim too much."""
    header: str = ""
    """A header that tells the same, for gateways before it."""
    model: tuple[Place, ...] = (("model",),)
    prompts: tuple[Place, ...] = (("prompt",),)
    system: Place = ()
    settings: Place = ()
    """Where those stand that are not beside the prompt."""
    take: Take
    usage: UsageTable = UsageTable(input=())
    plain: Callable[[HttpResponse], tuple[HttpResponse, str | None]] = _as_it_came
    """Takes an answer out of the frames that it came in, and says what is damaged there."""
    error: Callable[[str], dict[str, Any]] = _error

    def claims(self, head: RequestHead) -> bool:
        found = self.path.search(head.path.rstrip("/"))
        known = self.host in head.host.lower() or bool(self.header and head.header(self.header))
        return head.method == "POST" and found is not None and known

    def asked(self, request: HttpRequest) -> Asked:
        document, note = request_json(request)
        found = self.path.search(request.head.path.rstrip("/"))
        named = (found.groupdict().get("model") or "") if found else ""
        told = (words_at(document, *place) for place in self.model)
        model = next(filter(None, told), "") or writable(unquote(named, errors="replace"))
        if items_at(document, "messages"):
            # Whoever runs others' models also takes OpenAI's shape.
            system, messages = conversation(items_at(document, "messages"))
        else:
            given = [at(document, *place) for place in self.prompts]
            system, messages = split_system(tuple(message for one in given for message in _prompted(one)))
            system = parts_of(at(document, *self.system)) + system if self.system else system
        known = {str(place[0]) for place in (*self.model, *self.prompts, self.system, self.settings) if place}
        return Asked(
            model=model or None,
            system=system,
            messages=messages,
            parameters=self._settings(document) | parameters_of(document, {*known, "stream", "messages"}),
            streamed=at(document, "stream") is True or request.head.path.rstrip("/").endswith("stream"),
            embeds="feature-extraction" in request.head.path or "embed" in model.lower(),
            note=note,
        )

    def _settings(self, document: Any) -> dict[str, Any]:
        inside = (place for place in (*self.prompts, self.system) if place[: len(self.settings)] == self.settings)
        read = {str(place[-1]) for place in inside if place}
        return parameters_of(at(document, *self.settings), read) if self.settings else {}

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        response, damage = self.plain(response)
        answer = read_answer(response)
        documents = answer.documents
        if any(isinstance(at(document, "choices"), list) for document in documents):
            chat = _CHAT.answered(request, response)
            return replace(chat, note=damage or chat.note)
        if documents and all(isinstance(one, int | float) for one in documents):
            documents = (list(documents),)  # one vector
        draft = AnswerDraft(note=damage)
        for document in documents:
            self.take(draft, document, request)
        return draft.answered(response, answer, self.usage)

    def refusal(self, message: str) -> dict[str, Any]:
        return self.error(message)


def _prompted(given: Any) -> Iterable[Message]:
    """A text, texts, or pieces of a prompt; ``\\n\\nHuman: …\\n\\nAssistant: …`` are the turns of a conversation."""
    if isinstance(given, list) and given and all("data" in one for one in given if isinstance(one, dict)):
        given = [at(one, "data") or one for one in given]
    if not isinstance(given, str) or not _TURN.search(given):
        return input_messages(given)
    before, *turns = _TURN.split(given)
    messages = [Message(Role.SYSTEM, (Text(writable(before.strip())),))] if before.strip() else []
    for speaker, text in zip(turns[::2], turns[1::2], strict=True):
        role = Role.USER if speaker == "Human" else Role.ASSISTANT
        messages += [Message(role, (Text(writable(text.strip())),))] if text.strip() else []
    return messages


def _say_all(draft: AnswerDraft, texts: Iterable[str]) -> None:
    for choice, text in enumerate(texts):
        draft.say("text", text, choice=choice)


# ── Anthropic's older completions ─────────────────────────────────────────────────────────────────────────────


def _take_anthropic(draft: AnswerDraft, document: Any, request: HttpRequest) -> None:
    draft.named(document)
    draft.stopped(text_at(document, "stop_reason"))
    if request.head.header("anthropic-version") == "2023-01-01" and draft.has("text"):
        draft.choices[0].pop("text")  # each piece had all that came before it
    draft.say("text", text_at(document, "completion"))


# ── Cohere's older generate ───────────────────────────────────────────────────────────────────────────────────


def _take_cohere(draft: AnswerDraft, document: Any, _request: HttpRequest) -> None:
    """The last line of a stream repeats the whole answer."""
    whole = at(document, "response")
    for choice, one in enumerate(items_at(document, "generations")):
        draft.say("text", text_at(one, "text"), choice=choice)
        if not choice:
            draft.stopped(text_at(one, "finish_reason"))
    choice = count_at(document, "index") or 0
    draft.say("text", text_at(document, "text"), choice=choice)
    draft.named(document)
    draft.named(whole)
    if not choice:
        draft.stopped(text_at(document, "finish_reason"))
    for meta in (at(document, "meta"), at(whole, "meta")):
        count_cohere(draft, meta)


# ── Aleph Alpha ───────────────────────────────────────────────────────────────────────────────────────────────


def _take_aleph_alpha(draft: AnswerDraft, document: Any, _request: HttpRequest) -> None:
    draft.named(document, model_at="model_version")
    draft.say("text", text_at(document, "completion"), choice=count_at(document, "index") or 0)
    draft.stopped(text_at(document, "finish_reason"))
    _say_all(draft, (text_at(one, "completion") for one in items_at(document, "completions")))
    draft.stopped(text_at(document, "completions", 0, "finish_reason"))
    draft.count(document)


# ── watsonx ───────────────────────────────────────────────────────────────────────────────────────────────────


def _take_watsonx(draft: AnswerDraft, document: Any, _request: HttpRequest) -> None:
    draft.named(document, model_at="model_id")
    for one in items_at(document, "results"):
        draft.say("text", text_at(one, "generated_text"))
        stop = text_at(one, "stop_reason")
        draft.stopped("" if stop == "not_finished" else stop)
        # A stream counts what was read once, and what was written so far.
        draft.count({name: count_at(one, name) or None for name in ("input_token_count", "generated_token_count")})


# ── Hugging Face, and SageMaker where its servers run, too ────────────────────────────────────────────────────

_TASK_TEXTS = ("generated_text", "summary_text", "translation_text", "answer", "text", "token_str")


def _take_task(draft: AnswerDraft, document: Any, _request: HttpRequest) -> None:
    """What a task gives: a text, labels with scores, vectors; or the tokens of a stream, whose last has the whole."""
    if isinstance(document, list):
        numbers = [one for one in document if isinstance(one, int | float)]
        if numbers and len(numbers) == len(document):
            _take_vector(draft, len(numbers))
            return
        for one in document:
            _take_task(draft, one, _request)
        return
    details = at(document, "details")
    draft.stopped(text_at(details, "finish_reason"))
    draft.count({"written": count_at(details, "generated_tokens"), "read": len(items_at(details, "prefill")) or None})
    if (token := at(document, "token")) is not None:
        draft.say("text", "" if at(token, "special") is True else text_at(token, "text"))
        return
    text = next((told for name in _TASK_TEXTS if (told := text_at(document, name))), "")
    if text:
        draft.say("text", text, choice=len(draft.choices) if draft.has("text") else 0)
    elif at(document, "label") is not None or at(document, "labels") is not None or at(document, "score") is not None:
        draft.put(("label", draft.free()), Other("label", document))
    if vectors := items_at(document, "embeddings") or items_at(document, "embedding"):
        _take_task(draft, vectors, _request)


def _take_vector(draft: AnswerDraft, size: int) -> None:
    known = [part for part in draft.parts() if isinstance(part, Vectors)]
    draft.put("vectors", Vectors(known[0].count + 1 if known else 1, size))


def _unframed(response: HttpResponse) -> tuple[HttpResponse, str | None]:
    """The pieces of a stream come in AWS's frames; put together they are what the model's server would have sent."""
    body, _ = decode_as_far_as_possible(response.body, response.head.header("content-encoding"))
    if not begins_with_a_frame(body):
        return response, None
    stream = read_frames(body)
    damage = "the stream is cut inside a frame" if stream.cut else None
    if stream.lost or not all(frame.intact for frame in stream.frames):
        damage = "damaged frames"
    head = replace(response.head, headers=without_headers(response.head.headers, ("content-encoding", "content-type")))
    return HttpResponse(head=head, body=b"".join(frame.payload for frame in stream.frames), chunks=()), damage


# ── Replicate ─────────────────────────────────────────────────────────────────────────────────────────────────


def _take_replicate(draft: AnswerDraft, document: Any, _request: HttpRequest) -> None:
    """A prediction; its output is a text, or a text in pieces, or addresses of files."""
    draft.named(document)
    draft.stopped(text_at(document, "status"))
    output = at(document, "output")
    given = output if isinstance(output, list) else [output]
    pieces = [one for one in given if isinstance(one, str)]
    draft.say("text", "".join(pieces))
    if output is not None and not pieces:
        draft.put("output", Other("output", output))
    draft.count(at(document, "metrics"))


# ── Google's predict: Imagen, and PaLM's texts and vectors ────────────────────────────────────────────────────


def _take_prediction(draft: AnswerDraft, document: Any, _request: HttpRequest) -> None:
    for number, one in enumerate(items_at(document, "predictions")):
        if picture := text_at(one, "bytesBase64Encoded"):
            draft.put(("image", number), inline(picture, text_at(one, "mimeType"), "image"))
        if vector := items_at(one, "embeddings", "values"):
            _take_vector(draft, len(vector))
        text = text_at(one, "content") or text_at(one, "candidates", 0, "content")
        draft.say("text", text, choice=number)
        if reason := text_at(one, "raiFilteredReason"):
            draft.stopped(reason)
    spent = at(document, "metadata", "tokenMetadata")
    counts = {"read": count_at(spent, "inputTokenCount", "totalTokens")}
    draft.count(counts | {"written": count_at(spent, "outputTokenCount", "totalTokens")})


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────

_COUNTED = UsageTable(input=(("read",),), output=(("written",),))


def _api(name: str, reader: GenerationReader, **more: Any) -> Api:
    return Api(name=name, kind=StepKind.LLM_CALL, reader=reader, **more)


APIS: tuple[Api, ...] = (
    _api(
        "anthropic-complete",
        GenerationReader(
            path=re.compile(r"/v1/complete$"),
            host="anthropic",
            header="anthropic-version",
            take=_take_anthropic,
            error=lambda message: {"type": "error", "error": {"type": "invalid_request_error", "message": message}},
        ),
    ),
    _api(
        "cohere-generate",
        GenerationReader(
            path=re.compile(r"/generate$"),
            host="cohere",
            take=_take_cohere,
            usage=COHERE_USAGE,
            error=lambda message: {"message": message},
        ),
    ),
    _api(
        "aleph-alpha",
        GenerationReader(
            path=re.compile(r"/complete$"),
            host="aleph-alpha",
            take=_take_aleph_alpha,
            usage=UsageTable(input=(("num_tokens_prompt_total",),), output=(("num_tokens_generated",),)),
        ),
    ),
    _api(
        "watsonx",
        GenerationReader(
            path=re.compile(r"/ml/v1[a-z0-9-]*/(?:deployments/(?P<model>[^/]+)/)?text/generation(?:_stream)?$"),
            model=(("model_id",),),
            prompts=(("input",),),
            settings=("parameters",),
            take=_take_watsonx,
            usage=UsageTable(input=(("input_token_count",),), output=(("generated_token_count",),)),
            error=lambda message: {"errors": [{"code": "rewind_miss", "message": message}]},
        ),
    ),
    _api(
        "huggingface",
        GenerationReader(
            path=re.compile(r"/models/(?P<model>.+?)(?:/pipeline/[a-z-]+)?$|/generate(?:_stream)?$|^$"),
            host="huggingface",
            prompts=(("inputs",),),
            settings=("parameters",),
            take=_take_task,
            usage=_COUNTED,
        ),
    ),
    _api(
        "sagemaker",
        GenerationReader(
            path=re.compile(r"/endpoints/(?P<model>[^/]+)/invocations(?:-response-stream)?$"),
            host="sagemaker",
            prompts=(("inputs",), ("prompt",)),
            settings=("parameters",),
            take=_take_task,
            usage=_COUNTED,
            plain=_unframed,
            error=lambda message: {"Message": message},
        ),
        signed=True,
    ),
    _api(
        "replicate",
        GenerationReader(
            path=re.compile(r"/v1/(?:(?:models|deployments)/(?P<model>[^/]+/[^/]+)/)?predictions$"),
            host="replicate",
            model=(("model",), ("version",)),
            prompts=(("input", "prompt"),),
            system=("input", "system_prompt"),
            settings=("input",),
            take=_take_replicate,
            usage=UsageTable(input=(("input_token_count",),), output=(("output_token_count",),)),
            error=lambda message: {"title": "Rewind", "detail": message, "status": 424},
        ),
    ),
    _api(
        "google-predict",
        GenerationReader(
            path=re.compile(r"/models/(?P<model>[^/:]+):predict$"),
            host="googleapis",
            prompts=(("instances", 0, "prompt"), ("instances", 0, "content")),
            settings=("parameters",),
            take=_take_prediction,
            usage=_COUNTED,
            error=lambda message: {"error": {"code": 424, "message": message, "status": "FAILED_PRECONDITION"}},
        ),
    ),
)
