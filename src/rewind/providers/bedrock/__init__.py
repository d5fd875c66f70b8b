"""Amazon Bedrock: Converse and InvokeModel. Requests are signed, so only answers can be made up."""

from typing import Any

from rewind.model.step import StepKind
from rewind.providers import anthropic, openai_chat
from rewind.providers.api import Api, Lazy
from rewind.providers.bedrock.read import VOLATILE, BedrockReader
from rewind.providers.shared.json_fields import at


def _nearest_shape(document: Any) -> str:
    return anthropic.API.shape if at(document, "anthropic_version") is not None else openai_chat.API.shape


API = Api(
    name="bedrock",
    kind=StepKind.LLM_CALL,
    reader=BedrockReader(),
    volatile=VOLATILE,
    signed=True,
    seller="aws",
    speaker=Lazy("rewind.providers.bedrock.speak:speaker_for"),
    nearest_shape=_nearest_shape,
)
