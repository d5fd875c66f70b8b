"""Google Gemini, at AI Studio, on Vertex AI and behind Code Assist; its embeddings and its token counting."""

from rewind.model.step import StepKind
from rewind.providers.api import Api, Lazy
from rewind.providers.gemini.read import VOLATILE, GeminiCountingReader, GeminiEmbeddingsReader, GeminiReader

API = Api(
    name="gemini",
    kind=StepKind.LLM_CALL,
    reader=GeminiReader(),
    volatile=VOLATILE,
    joins_turns=True,
    patcher=Lazy("rewind.providers.gemini.patch:patcher_for"),
    parameters=Lazy("rewind.providers.gemini.patch:PARAMETERS"),
    speaker=Lazy("rewind.providers.gemini.speak:speaker_for"),
    writer=Lazy("rewind.providers.gemini.write:WRITER"),
    shape="gemini",
)
EMBEDDINGS = Api(
    name=API.name, kind=StepKind.LLM_CALL, reader=GeminiEmbeddingsReader(), volatile=VOLATILE, joins_turns=True
)
COUNTING = Api(
    name=API.name,
    kind=StepKind.HTTP_CALL,
    reader=GeminiCountingReader(),
    volatile=VOLATILE,
    joins_turns=True,
    patcher=API.patcher,
    speaker=Lazy("rewind.providers.shared.speak:token_count_speaker"),
)
