"""OpenAI Responses, whose provider may keep the history of a conversation."""

from rewind.model.step import StepKind
from rewind.providers.api import Api, Lazy
from rewind.providers.openai_responses.read import VOLATILE, OpenAIResponsesReader

API = Api(
    name="openai-responses",
    kind=StepKind.LLM_CALL,
    reader=OpenAIResponsesReader(),
    volatile=VOLATILE,
    patcher=Lazy("rewind.providers.openai_responses.patch:patcher_for"),
    speaker=Lazy("rewind.providers.openai_responses.speak:speaker_for"),
    writer=Lazy("rewind.providers.openai_responses.write:WRITER"),
    shape="responses",
    unissued=Lazy("rewind.providers.openai_responses.patch:UnissuedResponses"),
)
