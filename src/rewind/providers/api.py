"""What an API is to Rewind: a name, a reader of its bodies, and parts that only some APIs have.

Every API has a reader; it is all that recording, replaying and showing need. A fork also changes requests (patcher) and
makes up answers (speaker); ``rewind messages`` writes conversations (writer). Those parts are imported when they are
first asked for, by :class:`Lazy` alone, so that a recording does not pay for them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

from rewind.dataclass import dataclass
from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Media, Message, Other, Part, Thinking, ToolResult, ToolUse
from rewind.model.step import StepKind
from rewind.providers.shared.parameters import ParameterTable

T = TypeVar("T")

Document = dict[str, Any]
"""A JSON object: the body of a request or an answer, or a message in it."""
FieldPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Volatile:
    """A field whose value changes from run to run while the request means the same.

    ``path`` follows the grammar of :mod:`rewind.match.paths`. A plain row is removed. A ``linked`` row holds an
    id that other fields refer to: it is renamed by order of first appearance, so that what belongs together still
    does.
    """

    path: str
    reason: str
    linked: bool = False


class Reader(Protocol):
    """Reads one API's bodies. Nothing here raises on any bytes: recorded traffic may be damaged or cut."""

    def claims(self, head: RequestHead) -> bool:
        """Whether this request speaks this API. Looks at method, host, path and headers only."""
        ...

    def asked(self, request: HttpRequest) -> Asked:
        """What the model is given."""
        ...

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        """What came back, as far as it came."""
        ...

    def refusal(self, message: str) -> dict[str, Any]:
        """An error in this API's own shape, so that its SDK shows the message."""
        ...


# ── changing a request ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResult:
    """What a tool is said to have given back."""

    text: str
    failed: bool = False
    raw: Any = None
    """The same as this very API writes it; ``None`` where only the text is known."""


class Patcher(Protocol):
    """Knows where the requests of one API keep things, and puts others there.

    Documents and turns are values: every function gives back a new one, and what it does not change is the same
    object in the same order. Raises CannotEdit where the API has no such thing.
    """

    @property
    def name(self) -> str:
        """Pieces can be moved as they are between requests of the same name."""
        ...

    @property
    def model_in_body(self) -> bool:
        """Whether a model that the request does not name yet is named in its body."""
        ...

    def system(self, document: Document) -> Any:
        """The system prompt as it is written; ``None`` where there is none."""
        ...

    def with_system(self, document: Document, raw: Any) -> Document:
        """Another one, written as this API writes it."""
        ...

    def with_system_text(self, document: Document, text: str) -> Document:
        """Another one; an empty text leaves none."""
        ...

    def with_more_system(self, document: Document, text: str) -> Document:
        """The same one with a text at its end."""
        ...

    def turns(self, document: Document) -> list[Any]:
        """The messages as they are written."""
        ...

    def with_turns(self, document: Document, turns: list[Any]) -> Document: ...

    def message(self, turn: Any) -> Message:
        """One of them, read."""
        ...

    def with_words(self, turn: Any, text: str) -> Any:
        """The same message with another text."""
        ...

    def results(self, turn: Any) -> list[Any]:
        """What tools gave back in that message as it is written, one for each result that ``message`` reads."""
        ...

    def with_results(self, turn: Any, results: Sequence[NewResult | None]) -> Any:
        """The message with other results, in the order of ``results``; ``None`` leaves one as it is."""
        ...

    def written(self, message: Message) -> list[Any]:
        """A message of another API in this one's words; it may take several."""
        ...

    def parameter(self, document: Document, path: FieldPath) -> FieldPath:
        """Where a parameter stands, or belongs."""
        ...


PatcherFor = Callable[[RequestHead, Document], Patcher | None]
"""The patcher for a request; ``None`` where only its fields can be set."""


class UnissuedAnswers(Protocol):
    """The made-up answers of one run, for an API whose provider keeps the history and does not know these."""

    def add(self, request: HttpRequest, response: HttpResponse) -> None:
        """An answer that was made up for this request."""
        ...

    def apply(self, request: HttpRequest) -> HttpRequest:
        """A later request as the provider can follow it; the very same one where nothing is to be done."""
        ...


# ── making up an answer ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerContent:
    """What a made-up answer says, in no API's words: a text, tools to call, or both."""

    text: str = ""
    tools: tuple[ToolUse, ...] = ()
    seed: str = ""
    """From which its ids are made: another call gets others, the same call the same."""

    def named(self, prefix: str) -> str:
        """An id for the answer itself."""
        return f"{prefix}rewind{self.seed[:18]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Answers one request in the way it was asked."""

    form: str
    """Recorded answers of the same form can be given as they are."""
    is_model: bool = True
    """Whether a model answers here, which says something or calls tools."""
    document: Callable[[AnswerContent], Document]
    """The answer as one document. Raises CannotEdit where the API cannot say that."""
    response: Callable[[Document], HttpResponse]
    """The document on the wire: whole, or streamed where a stream was asked for."""


SpeakerFor = Callable[[HttpRequest, Asked], Speaker]


# ── writing a conversation ───────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class LossLog:
    """What one conversation lost on its way to another API, and the bytes that its files consist of."""

    data: Mapping[str, str] = field(default_factory=dict)
    """Digest → base64, of what the conversation holds inline."""
    counts: Counter[str] = field(default_factory=Counter)
    """What was left out or written otherwise, and how often."""

    def data_of(self, media: Media) -> str:
        """The base64 of inline data; empty where it is only referred to, or the bytes are not at hand."""
        return self.data.get(media.digest, "") if media.digest else ""

    def instead_of(self, media: Media) -> str:
        """The words that stand for a picture or file that this API cannot be given."""
        self.counts[f"{media.kind}: only its place is marked"] += 1
        told = ", ".join(filter(None, (media.media_type, media.reference)))
        return f"[{media.kind} left out{': ' * bool(told)}{told}]"

    def leave_out(self, part: Part) -> None:
        match part:
            case Thinking():
                self.counts["thinking left out: only the API that wrote it can read it"] += 1
            case ToolUse():
                self.counts["call of a hosted tool left out: the provider ran it itself"] += 1
            case ToolResult(hosted=True):
                pass  # goes with its call
            case Other(kind, _):
                self.counts[f"{kind or 'part'} left out: no other API has it"] += 1
            case _:
                self.counts["part left out"] += 1

    def written_as_users(self) -> None:
        self.counts["system message inside the conversation written as the user's"] += 1

    def remarks(self) -> list[str]:
        """Each loss in words, with how often it happened."""
        return [f"{what} ({count}×)" if count > 1 else what for what, count in self.counts.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes conversations as this API takes them. Each gives what stands beside the list, and the list."""

    conversation: Callable[[tuple[Part, ...], Sequence[Message], LossLog], tuple[Any, list[Document]]]
    """A conversation of any API: its system prompt, and its messages, whose ids are matched already."""
    own_system: Callable[[Document], tuple[Any, list[Document]]]
    """The system prompt of a request of this API, less what is among its messages anyway."""
    own_answer: Callable[[Answered, Sequence[Any], LossLog], list[Document] | None]
    """An answer of this API as it takes it back: with signatures, sealed thinking and hosted tools.

    Our neutral shape has none of these, and an API that finds its own thinking changed or unsigned refuses it.
    ``None`` where the answer cannot be put back as it came.
    """


# ── the API ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Lazy(Generic[T]):
    """A part of an API that is imported when it is first asked for: ``package.module:name``."""

    place: str

    def load(self) -> T:
        module, _, name = self.place.partition(":")
        part: T = getattr(import_module(module), name)
        return part


_PLAIN_PATCHER: Lazy[Callable[[str, RequestHead], Patcher]] = Lazy("rewind.providers.shared.patch:plain_patcher")
_PLAIN_SPEAKER: Lazy[SpeakerFor] = Lazy("rewind.providers.shared.speak:plain_speaker")
_UNWRITTEN_SPEAKER: Lazy[SpeakerFor] = Lazy("rewind.providers.shared.speak:unwritten_speaker")
_NUMBER_SPEAKER: Lazy[SpeakerFor] = Lazy("rewind.providers.shared.speak:vector_speaker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One API, and what Rewind can do with its calls."""

    name: str
    """As written in journals: ``anthropic``, ``openai-chat``, ``http`` …"""
    kind: StepKind
    """What a step of this API is."""
    reader: Reader
    volatile: tuple[Volatile, ...] = ()
    """Fields that do not count when two requests are compared."""
    is_llm: bool = True
    """Whether its calls are recorded from any host; others only from hosts that were asked for."""
    hosts: tuple[str, ...] = ()
    """Hosts that are recorded because this API is answered there, as patterns of :mod:`rewind.providers.hosts`."""
    signed: bool = False
    """Whether the agent signs the body, so that a changed one would be refused."""
    joins_turns: bool = False
    """Whether turns of the model that follow one another are read as one."""
    label: str = ""
    """What lists of steps call its calls; where empty, they are called by their kind."""
    seller: str = ""
    """Who alone sells it, as price lists have it, whatever the name of the host (a private link, a region)."""
    is_free: bool = False
    """Whether nobody is paid for it: the model runs on a machine of the user's own."""
    patcher: Lazy[PatcherFor] | None = None
    parameters: Lazy[ParameterTable] | None = None
    """Which parameters it has; without it nobody can say that a name is wrong."""
    speaker: Lazy[SpeakerFor] | None = None
    writer: Lazy[Writer] | None = None
    shape: str = ""
    """The name of what the writer writes, as ``rewind messages --as`` has it."""
    nearest_shape: Callable[[Any], str] | None = None
    """By the document of a request: the shape of another API that comes nearest, where this one has no writer."""
    unissued: Lazy[Callable[[], UnissuedAnswers]] | None = None
    """Given where the provider keeps the history of a conversation."""

    def patcher_for(self, head: RequestHead, document: Document) -> Patcher:
        """What changes that request; where the API has no patcher, only fields can be set."""
        own = self.patcher.load()(head, document) if self.patcher else None
        return own or _PLAIN_PATCHER.load()(self.name, head)

    def speaker_for(self, request: HttpRequest) -> Speaker:
        """What answers that request, in the form that was asked for."""
        asked = self.reader.asked(request)
        unwritten = _UNWRITTEN_SPEAKER if self.kind is StepKind.LLM_CALL else _PLAIN_SPEAKER
        part = _NUMBER_SPEAKER if asked.embeds else self.speaker or unwritten
        return part.load()(request, asked)
