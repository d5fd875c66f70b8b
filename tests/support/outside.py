"""A distribution that brings an API through the entry point ``rewind.providers``, as an installer leaves it behind."""

from pathlib import Path

PARROT = '''
"""``/aviary/v3/squawk``: an API that does not exist."""

from rewind.model.message import Asked, Message, Role, Text
from rewind.model.step import StepKind
from rewind.providers.api import Api, Volatile
from rewind.providers.shared.answer_draft import AnswerDraft, UsageTable, parameters_of
from rewind.providers.shared.answer_stream import read_answer, request_json
from rewind.providers.shared.json_fields import at, items_at, text_at, words_at

USAGE = UsageTable(input=(("heard",),), output=(("spoken",),))


class ParrotReader:
    def claims(self, head):
        return head.method == "POST" and head.path.endswith("/aviary/v3/squawk")

    def asked(self, request):
        document, note = request_json(request)
        lines = tuple(Message(Role.USER, (Text(words_at(line, "words")),)) for line in items_at(document, "lines"))
        settings = parameters_of(document, ("bird", "lines", "perch"))
        return Asked(model=words_at(document, "bird") or None, messages=lines, parameters=settings, note=note)

    def answered(self, request, response):
        answer = read_answer(response)
        draft = AnswerDraft()
        for document in answer.documents:
            draft.named(document, id_at="squawk", model_at="bird")
            draft.say("beak", text_at(document, "words"))
            draft.count(at(document, "seeds"))
        return draft.answered(response, answer, USAGE)

    def refusal(self, message):
        return {"error": {"message": message}}


API = Api(
    name="parrot",
    kind=StepKind.LLM_CALL,
    reader=ParrotReader(),
    volatile=(Volatile("perch", "Drawn at random for each visit."),),
    hosts=("birds.example",),
)
'''


def installed(folder: Path, name: str, source: str, **entries: str) -> Path:
    """The folder, with that distribution of one module in it; ``entries`` are its providers."""
    module = name.replace("-", "_")
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(source)
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    rows = "".join(f"{entry} = {module}:{value}\n" for entry, value in entries.items())
    (metadata / "entry_points.txt").write_text(f"[console_scripts]\n\n[rewind.providers]\n{rows}")
    return folder
