"""OpenAI Chat Completions, and the many servers that speak it."""

from rewind.model.step import StepKind
from rewind.providers.api import Api, Lazy
from rewind.providers.openai_chat.read import VOLATILE, OpenAIChatReader

API = Api(
    name="openai-chat",
    kind=StepKind.LLM_CALL,
    reader=OpenAIChatReader(),
    volatile=VOLATILE,
    patcher=Lazy("rewind.providers.openai_chat.patch:patcher_for"),
    parameters=Lazy("rewind.providers.openai_chat.patch:PARAMETERS"),
    speaker=Lazy("rewind.providers.openai_chat.speak:speaker_for"),
    writer=Lazy("rewind.providers.openai_chat.write:WRITER"),
    shape="openai",
)
