"""Cohere Chat."""

from rewind.model.step import StepKind
from rewind.providers.api import Api, Lazy
from rewind.providers.cohere.read import VOLATILE, CohereReader

API = Api(
    name="cohere",
    kind=StepKind.LLM_CALL,
    reader=CohereReader(),
    volatile=VOLATILE,
    patcher=Lazy("rewind.providers.cohere.fork:patcher_for"),
    parameters=Lazy("rewind.providers.cohere.fork:PARAMETERS"),
    speaker=Lazy("rewind.providers.cohere.fork:speaker_for"),
)
