"""``docs/providers.md``, worked out from what our codecs read of the examples.

Write the file anew with ``PYTHONPATH=tests python -m support.provider_table > docs/providers.md``.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from rewind.model.message import Answered, Asked, Media, Role, Text, Thinking, ToolUse, Vectors, results_in, text_of
from rewind.model.step import StepKind
from rewind.providers.api import Api
from rewind.providers.catalogue import identify
from support.outside import PARROT
from support.wire_examples import EXAMPLES, Example, said

YES, UNTOLD, UNREAD = "✓", "–", "not read"

INTRODUCTION = f"""\
# What is read of each provider

Rewind generates this file from what its codecs do. One invented conversation is written in the form of every API below
(`tests/support/wire_examples`) and read by our codecs. {YES} means that the codec read exactly what the example says.
{UNTOLD} means that our example of the API does not say it, most often because the API has no field for it. "{UNREAD}"
means that the example says it and the codec does not read it. `tests/unit/test_provider_docs.py` fails if the codecs do
something else than this file says. To write the file again:

    PYTHONPATH=tests .venv/bin/python -m support.provider_table > docs/providers.md

An API is recognised by its path; `{{…}}` stands for any name. If the path alone would match too much, the host or the
headers must match, too. A request that no API claims is recorded and replayed as plain HTTP: its method and
address are shown, and the message of an error.

A stream and a whole answer with the same content are read as the same value; "streams" names the formats for which a
test has shown this.
"""


@dataclass(frozen=True, slots=True)
class Read:
    """An example and what our codec makes of it."""

    example: Example
    provider: Api
    asked: Asked
    answered: Answered

    def asked_parts(self, kind: type[Any]) -> Iterator[Any]:
        return (part for turn in self.asked.messages for part in turn.parts if isinstance(part, kind))


def read(example: Example) -> Read:
    provider = identify(example.request.head)
    asked = provider.reader.asked(example.request)
    return Read(example, provider, asked, provider.reader.answered(example.request, example.whole))


Check = Callable[[Read], bool]


@dataclass(frozen=True, slots=True)
class Column:
    """One thing to be told: how to see that it was read, and how to see that the bytes say it."""

    name: str
    is_read: Check
    is_told: Check

    def cell(self, row: Read) -> str:
        if self.is_read(row):
            return YES
        return UNREAD if self.is_told(row) else UNTOLD


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    else:
        yield value


def _says(body: bytes, planted: str | int) -> bool:
    leaves = _leaves(json.loads(body))
    if isinstance(planted, int):
        return any(leaf == planted and leaf is not True for leaf in leaves)
    return any(planted in leaf for leaf in leaves if isinstance(leaf, str))


def _asks(planted: str) -> Check:
    return lambda row: _says(row.example.request.body, planted)


def _answers(planted: str | int) -> Check:
    return lambda row: _says(row.example.whole.body, planted)


def _never(row: Read) -> bool:
    return False


# ── what can be told ─────────────────────────────────────────────────────────────────────────────────────────


def _system(row: Read) -> bool:
    spoken = [turn.parts for turn in row.asked.messages if turn.role is Role.SYSTEM]
    return said.SYSTEM in (text_of(row.asked.system), *map(text_of, spoken))


def _turns(row: Read) -> bool:
    return any(said.QUESTION in turn.text and turn.role is Role.USER for turn in row.asked.messages)


def _tools(row: Read) -> bool:
    return any(
        tool.name == said.TOOL and tool.description == said.TOOL_SAYS and tool.schema and not tool.hosted
        for tool in row.asked.tools
    )


def _earlier_call(row: Read) -> bool:
    _, *called = said.EARLIER_CALL
    return any([use.name, use.arguments] == called for use in row.asked_parts(ToolUse))


def _result(row: Read) -> bool:
    return any(said.RESULT in str(result.parts) for result in results_in(row.asked.messages))


def _media(kind: str, data: str) -> Check:
    size = len(data) * 3 // 4 - data.count("=")
    return lambda row: any(media.kind == kind and media.size == size for media in row.asked_parts(Media))


def _thought(row: Read) -> bool:
    return any(isinstance(part, Thinking) and part.text == said.THOUGHT for part in row.answered.parts)


def _calls(row: Read) -> bool:
    return [[use.name, use.arguments] for use in row.answered.tool_uses] == [
        [name, given] for _, name, given in said.CALLS
    ]


def _call_ids(row: Read) -> bool:
    return [use.id for use in row.answered.tool_uses] == [call for call, _, _ in said.CALLS]


def _hosted(row: Read) -> bool:
    return any(isinstance(part, ToolUse) and part.hosted for part in row.answered.parts)


def _vectors(row: Read) -> Vectors:
    return next((part for part in row.answered.parts if isinstance(part, Vectors)), Vectors(0))


def _refused(row: Read) -> bool:
    return row.provider.reader.answered(row.example.request, row.example.refused).error == said.REFUSED


def _broke_off(row: Read) -> bool:
    if (broken := row.example.broken) is None:
        return False
    answered = row.provider.reader.answered(broken.request, broken.response)
    # What had been said before must not be lost over the error.
    return answered.error == said.BROKE_OFF and answered.text == row.answered.text


MODEL = Column("model", lambda row: row.asked.model == said.MODEL, _asks(said.MODEL))
TURNS = Column("turns", _turns, _asks(said.QUESTION))
EARLIER_CALLS = Column("earlier calls", _earlier_call, _asks(said.EARLIER_CALL[2]["city"]))
ID = Column("id", lambda row: row.answered.id == said.ANSWER_ID, _answers(said.ANSWER_ID))
ANSWERED_BY = Column("model", lambda row: row.answered.model == said.ANSWERED_BY, _answers(said.ANSWERED_BY))
ERROR = Column("error", _refused, lambda row: True)
BROKE_OFF = Column("error inside a stream", _broke_off, lambda row: row.example.broken is not None)
INPUT = Column("input", lambda row: row.answered.usage.input == said.READ, _answers(said.READ))

ASKED = (
    MODEL,
    Column("system", _system, _asks(said.SYSTEM)),
    TURNS,
    Column("tools", _tools, _asks(said.TOOL_SAYS)),
    EARLIER_CALLS,
    Column("results", _result, _asks(said.RESULT)),
    Column("images", _media("image", said.PNG), _asks(said.PNG)),
    Column("documents", _media("document", said.PDF), _asks(said.PDF)),
    Column("settings", lambda row: "'temperature': 0.5" in str(row.asked.parameters), lambda row: True),
    Column("continues", lambda row: row.asked.continues == said.EARLIER_ID, _asks(said.EARLIER_ID)),
)
ANSWERED = (
    Column("text", lambda row: row.answered.text == said.TEXT, _answers(said.TEXT)),
    Column("thinking", _thought, _answers(said.THOUGHT)),
    Column("tool calls", _calls, _answers(said.CALLS[1][2]["unit"])),
    Column("their ids", _call_ids, _answers(said.CALLS[0][0])),
    Column("hosted tools", _hosted, _never),
    Column(
        "other choices", lambda row: row.answered.alternatives == ((Text(said.OTHER_TEXT),),), _answers(said.OTHER_TEXT)
    ),
    ID,
    ANSWERED_BY,
    Column("stop reason", lambda row: bool(row.answered.stop), lambda row: bool(row.answered.text)),
    ERROR,
    BROKE_OFF,
)
TOKENS = (
    INPUT,
    Column("output", lambda row: row.answered.usage.output == said.WRITTEN, _answers(said.WRITTEN)),
    Column(
        "cache read", lambda row: row.answered.usage.cache_read == said.READ_FROM_CACHE, _answers(said.READ_FROM_CACHE)
    ),
    Column(
        "cache write",
        lambda row: row.answered.usage.cache_write == said.WRITTEN_TO_CACHE,
        _answers(said.WRITTEN_TO_CACHE),
    ),
    Column("reasoning", lambda row: row.answered.usage.reasoning == said.THOUGHT_ABOUT, _answers(said.THOUGHT_ABOUT)),
)
EMBEDDED = (
    Column("known as such", lambda row: row.asked.embeds, lambda row: True),
    replace(MODEL, name="model asked"),
    replace(TURNS, name="texts"),
    Column("vectors", lambda row: _vectors(row).count == len(said.VECTORS), lambda row: True),
    Column("dimensions", lambda row: _vectors(row).dimensions == len(said.VECTORS[0]), lambda row: True),
    replace(INPUT, name="input tokens"),
    ID,
    replace(ANSWERED_BY, name="model answered"),
    ERROR,
)
OTHERS = (
    Column("counted tokens", lambda row: row.answered.text == f"{said.READ:,} tokens", _answers(said.READ)),
    EARLIER_CALLS,
    Column(
        "its result", lambda row: any(said.RESULT in str(part) for part in row.answered.parts), _answers(said.RESULT)
    ),
    ERROR,
    BROKE_OFF,
)


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────


def claimed(row: Read) -> Iterator[str]:
    """Those of the example's paths that its provider recognises."""
    head = row.example.request.head
    for path in row.example.paths:
        target = path.removeprefix(f"{head.scheme}:").replace("{…}", "x")
        if identify(replace(head, target=target)) is row.provider:
            yield path


def is_claimed_anywhere(row: Read) -> bool:
    """Whether the path alone is enough."""
    head = replace(row.example.request.head, host="elsewhere.example", headers=())
    return identify(head) is row.provider


def equal_streams(row: Read) -> Iterator[str]:
    """The formats in which a stream is read to the same value as the whole answer, and is known to be asked for."""
    for stream in row.example.streams:
        answered = row.provider.reader.answered(stream.request, stream.response)
        is_model = row.provider.kind is StepKind.LLM_CALL
        if answered == row.answered and row.provider.reader.asked(stream.request).streamed == is_model:
            yield stream.format


def sections(examples: Iterable[Example] = EXAMPLES) -> dict[str, tuple[list[Read], tuple[Column, ...]]]:
    """The rows and columns of each table."""
    rows = [read(example) for example in examples]
    embeddings = [row for row in rows if "embeddings" in row.example.api]
    models = [row for row in rows if row.provider.kind is StepKind.LLM_CALL and row not in embeddings]
    return {
        "Models: what was asked": (models, ASKED),
        "Models: what came back": (models, ANSWERED),
        "Models: tokens": (models, TOKENS),
        "Embeddings": (embeddings, EMBEDDED),
        "Calls that no model answers": ([row for row in rows if row not in (*embeddings, *models)], OTHERS),
    }


def _table(rows: Iterable[Read], columns: tuple[Column, ...]) -> Iterator[str]:
    yield "| API | " + " | ".join(column.name for column in columns) + " |"
    yield "|---|" + ":-:|" * len(columns)
    for row in rows:
        yield f"| {row.example.api} | " + " | ".join(column.cell(row) for column in columns) + " |"


def _claims(rows: Iterable[Read]) -> Iterator[str]:
    yield "| API | provider | recognised by | on any host | streams |"
    yield "|---|---|---|:-:|---|"
    for row in rows:
        paths = "<br>".join(f"`{path}`" for path in claimed(row)) or UNREAD
        anywhere = YES if is_claimed_anywhere(row) else UNTOLD
        streams = ", ".join(equal_streams(row)) or UNTOLD
        yield f"| {row.example.api} | `{row.provider.name}` | {paths} | {anywhere} | {streams} |"


OWN_PROVIDER = f"""\
## Bring your own provider

A package that is installed beside Rewind can add its own API, as an entry point of the group `rewind.providers`. The
entry point is an `Api` value:

    [project.entry-points."rewind.providers"]
    parrot = "parrot_llm:API"

This is the whole `parrot_llm.py`, for an API that does not exist. `tests/e2e/test_outside_provider.py` installs it, and
records, shows, compares and replays an agent that uses it.

```python
{PARROT.strip()}
```

- `reader` is required. `claims` looks at method, host, path and headers; our own APIs are asked first. `asked` and
  `answered` make the values of `rewind.model.message` from bytes that may be damaged or cut. `refusal` is an error in
  the API's own form, for requests that a replay cannot answer.
- `volatile` names fields that change from run to run while the request means the same.
- `hosts` are recorded like those that Rewind knows. They are written into the session, so that a replay knows them.
- `patcher` and `speaker` (`Lazy("parrot_llm.patch:patcher_for")`) let `rewind fork` change messages and make up
  answers; `rewind/providers/api.py` describes them. Without them a fork can only set fields, and a made-up answer must
  be given as a whole.
- A failure costs only the meaning. An API that cannot be loaded is left out. If a reader raises an error, it has read
  nothing. The last lines of the run say so. The bytes are still recorded and replayed.

`rewind.providers.api` and `rewind.providers.shared` are not yet a stable interface: pin the version of Rewind.
"""


def document(examples: Iterable[Example] = EXAMPLES) -> str:
    """The whole file."""
    examples = tuple(examples)
    tables = {"Who is recognised": _claims(map(read, examples))}
    tables |= {title: _table(*table) for title, table in sections(examples).items()}
    shown = ["\n".join((f"## {title}", "", *lines, "")) for title, lines in tables.items()]
    return "\n".join((INTRODUCTION, *shown, OWN_PROVIDER))


if __name__ == "__main__":
    sys.stdout.write(document())
