"""Anthropic Messages, also on Vertex AI, and its token counting."""

from rewind.model.step import StepKind
from rewind.providers.anthropic.read import VOLATILE, AnthropicCountingReader, AnthropicReader
from rewind.providers.api import Api, Lazy

API = Api(
    name="anthropic",
    kind=StepKind.LLM_CALL,
    reader=AnthropicReader(),
    volatile=VOLATILE,
    patcher=Lazy("rewind.providers.anthropic.patch:patcher_for"),
    parameters=Lazy("rewind.providers.anthropic.patch:PARAMETERS"),
    speaker=Lazy("rewind.providers.anthropic.speak:speaker_for"),
    writer=Lazy("rewind.providers.anthropic.write:WRITER"),
    shape="anthropic",
)
COUNTING = Api(
    name=API.name,
    kind=StepKind.HTTP_CALL,
    reader=AnthropicCountingReader(),
    volatile=VOLATILE,
    patcher=API.patcher,
    speaker=Lazy("rewind.providers.shared.speak:token_count_speaker"),
)
