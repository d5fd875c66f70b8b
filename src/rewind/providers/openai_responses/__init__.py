"""OpenAI Responses, whose provider may keep the history of a conversation."""

from rewind.model.step import StepKind
from rewind.providers.api import Api, Lazy, Volatile
from rewind.providers.openai_chat.read import NOISE
from rewind.providers.openai_responses.read import OpenAIResponsesReader

_STATE = "Names what an earlier answer left on the server; every run is given another name."
_VOLATILE = (
    Volatile("previous_response_id", _STATE, linked=True),
    Volatile("conversation", _STATE, linked=True),
    Volatile("conversation.id", _STATE, linked=True),
    Volatile("input[*].id", "Names an item of an earlier answer, or one that the framework made.", linked=True),
    Volatile("input[*].call_id", "Ties a tool's result to its call.", linked=True),
    Volatile("input[*].approval_request_id", "Ties an approval to its request.", linked=True),
    Volatile("client_metadata", "Codex's own ids of session, turn and installation; the model never sees them."),
    Volatile("input[*].internal_chat_message_metadata_passthrough", "Codex's ids of a turn, and when it was made."),
    *NOISE,
)

API = Api(
    name="openai-responses",
    kind=StepKind.LLM_CALL,
    reader=OpenAIResponsesReader(),
    volatile=_VOLATILE,
    patcher=Lazy("rewind.providers.openai_responses.patch:patcher_for"),
    parameters=Lazy("rewind.providers.openai_responses.patch:PARAMETERS"),
    speaker=Lazy("rewind.providers.openai_responses.speak:speaker_for"),
    writer=Lazy("rewind.providers.openai_responses.write:WRITER"),
    shape="responses",
    unissued=Lazy("rewind.providers.openai_responses.patch:UnissuedResponses"),
)
