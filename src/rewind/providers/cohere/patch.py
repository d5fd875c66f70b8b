"""Requests of Cohere: ``/v2/chat`` is written like OpenAI's, the older ``/v1/chat`` has a prompt and settings."""

from rewind.model.http import RequestHead
from rewind.providers.api import Document, Patcher
from rewind.providers.openai_chat.patch import ChatPatcher
from rewind.providers.shared.patch import FieldPatcher

_CHAT = ChatPatcher("cohere")
_OLDER_CHAT = FieldPatcher("cohere-v1", api="Cohere's /v1/chat", system="preamble")


def patcher_for(_head: RequestHead, document: Document) -> Patcher:
    return _CHAT if "messages" in document else _OLDER_CHAT
