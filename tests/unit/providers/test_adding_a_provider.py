"""Adding an API is one module and one line in the catalogue. This is the module, for an API that does not exist."""

import re
from pathlib import Path
from typing import Any

import rewind
from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked, Message, Role, Text, ToolUse
from rewind.model.step import Reading, StepKind
from rewind.model.usage import Usage
from rewind.providers.api import Api, Volatile
from rewind.providers.catalogue import BUILT_IN, FALLBACK, identify
from rewind.providers.shared.answer_draft import AnswerDraft, UsageTable, parameters_of
from rewind.providers.shared.answer_stream import read_answer, request_json
from rewind.providers.shared.json_fields import at, items_at, text_at, words_at
from rewind.providers.summary import read
from support.exchanges import answer_with, request_of, stream_of

# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────

USAGE = UsageTable(input=(("heard",),), output=(("spoken",),))


class ParrotReader:
    """``/aviary/v3/squawk``: answers are one ``squawk``, or its syllables in a stream."""

    def claims(self, head: RequestHead) -> bool:
        return head.method == "POST" and head.path.endswith("/aviary/v3/squawk")

    def asked(self, request: HttpRequest) -> Asked:
        document, note = request_json(request)
        return Asked(
            model=words_at(document, "bird") or None,
            messages=tuple(
                Message(Role.USER, (Text(words_at(line, "words")),)) for line in items_at(document, "lines")
            ),
            parameters=parameters_of(document, ("bird", "lines", "perch")),
            note=note,
        )

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        answer = read_answer(response)
        draft = AnswerDraft()
        for document in answer.documents:
            draft.named(document, id_at="squawk", model_at="bird")
            draft.say("beak", text_at(document, "words"))
            if isinstance(trick := at(document, "trick"), dict):
                tool = draft.tool("wing")
                tool.id, tool.name, tool.arguments = (text_at(trick, "id"), text_at(trick, "name"), at(trick, "how"))
            draft.stopped(text_at(document, "silent_because"))
            draft.count(at(document, "seeds"))
        return draft.answered(response, answer, USAGE)

    def refusal(self, message: str) -> dict[str, Any]:
        return {"error": {"message": message}}


API = Api(
    name="parrot",
    kind=StepKind.LLM_CALL,
    reader=ParrotReader(),
    volatile=(Volatile("perch", "Drawn at random for each visit."),),
)


# ── the line ─────────────────────────────────────────────────────────────────────────────────────────────────

CATALOGUE: tuple[Api, ...] = (*BUILT_IN, API)

VENDORS_BY_NAME = {
    "compare/versions.py": "names of packages",
    "gateway/targets.py": "vendors, in the paths by which a client without proxy settings comes to the gateway",
    "pricing/prices.py": "makers and sellers of models",
    "pytest_plugin/cassette_update.py": "vendors, in the names of variables that hold keys",
}
"""Where such a name is not that of an API."""

# ── and this is what it gives ────────────────────────────────────────────────────────────────────────────────

REQUEST = request_of(
    {"bird": "grey", "perch": "x7", "volume": 3, "lines": [{"words": "Who is pretty?"}]},
    host="birds.example",
    target="/aviary/v3/squawk",
)
WHOLE = answer_with(
    {
        "squawk": "s1",
        "bird": "grey-2",
        "words": "Polly is pretty.",
        "trick": {"id": "t1", "name": "bow", "how": {"deep": True}},
        "silent_because": "cracker",
        "seeds": {"heard": 4, "spoken": 3},
    }
)
STREAM = stream_of(
    {"squawk": "s1", "bird": "grey-2", "words": "Polly is"},
    {"words": " pretty."},
    {"trick": {"id": "t1", "name": "bow", "how": {"deep": True}}},
    {"silent_because": "cracker", "seeds": {"heard": 4, "spoken": 3}},
)


def test_a_request_of_the_new_api_finds_its_provider_and_others_still_find_theirs() -> None:
    assert identify(REQUEST.head) is FALLBACK
    assert identify(REQUEST.head, CATALOGUE).name == "parrot"
    assert identify(request_of().head, CATALOGUE).name == "openai-chat"


def test_what_was_asked_and_answered_is_read_whole_and_streamed() -> None:
    provider = identify(REQUEST.head, CATALOGUE)
    assert provider.reader.asked(REQUEST) == Asked(
        model="grey", messages=(Message(Role.USER, (Text("Who is pretty?"),)),), parameters={"volume": 3}
    )
    expected = Answered(
        id="s1",
        model="grey-2",
        parts=(Text("Polly is pretty."), ToolUse("t1", "bow", {"deep": True})),
        stop="cracker",
        usage=Usage(input=4, output=3),
    )
    assert provider.reader.answered(REQUEST, WHOLE) == provider.reader.answered(REQUEST, STREAM) == expected


def test_lists_and_journals_have_their_line() -> None:
    provider = identify(REQUEST.head, CATALOGUE)
    expected = Reading(model="grey-2", text='→ bow({"deep":true})', usage=Usage(input=4, output=3))
    assert read(provider, REQUEST, WHOLE) == read(provider, REQUEST, STREAM) == expected


def test_errors_and_damage_need_no_line_of_their_own() -> None:
    provider = identify(REQUEST.head, CATALOGUE)
    refused = answer_with(provider.reader.refusal("No such bird."), status=404)
    assert read(provider, REQUEST, refused).error == "No such bird."
    cut = answer_with(WHOLE.body[:-5])
    assert read(provider, REQUEST, cut).note == "damaged or cut JSON"


def test_nothing_outside_the_providers_knows_one_of_the_models_by_name() -> None:
    """Else a new API would need more than its module and the line in the catalogue."""
    packages = {
        ".".join(type(api.reader).__module__.split(".")[:3]) for api in BUILT_IN if api.kind is StepKind.LLM_CALL
    }
    assert "rewind.providers.anthropic" in packages
    names = {f'"{api.name}"' for api in BUILT_IN if api.is_llm}
    package = Path(rewind.__file__).parent
    named = {}
    for file in package.rglob("*.py"):
        place = file.relative_to(package)
        if place.parts[0] == "providers" or place.parts[:2] == ("formats", "trace") or str(place) in VENDORS_BY_NAME:
            continue
        source = file.read_text()
        found = packages & set(re.findall(r"rewind\.providers\.\w+", source)) | {
            name for name in names if name in source
        }
        if found:
            named[str(place)] = sorted(found)
    assert named == {}
