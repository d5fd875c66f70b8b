"""Ollama's own API."""

from rewind.model.step import StepKind
from rewind.providers.api import Api, Lazy
from rewind.providers.ollama.read import OllamaReader
from rewind.providers.openai_chat.read import TOOL_CALL_IDS

API = Api(
    name="ollama",
    kind=StepKind.LLM_CALL,
    reader=OllamaReader(),
    volatile=TOOL_CALL_IDS,
    is_free=True,
    patcher=Lazy("rewind.providers.ollama.fork:patcher_for"),
    parameters=Lazy("rewind.providers.ollama.fork:PARAMETERS"),
    speaker=Lazy("rewind.providers.ollama.fork:speaker_for"),
)
