"""Who speaks which dialect."""

from rewind.edit.dialects.anthropic import Anthropic
from rewind.edit.dialects.base import Dialect, Document
from rewind.edit.dialects.chat import Chat
from rewind.edit.dialects.gemini import Gemini
from rewind.edit.dialects.plain import Plain
from rewind.edit.dialects.responses import Responses
from rewind.edit.dialects.settings import Settings
from rewind.edit.shapes import ollama
from rewind.model.http import RequestHead
from rewind.providers.catalogue import identify

_OLLAMA = Settings(
    inside="options",
    beside=frozenset(
        {
            *("model", "messages", "tools", "format", "options", "stream", "keep_alive", "think", "prompt"),
            *("suffix", "images", "system", "template", "raw", "context", "logprobs", "top_logprobs"),
        }
    ),
)
_CHAT = Chat("openai-chat")
_COHERE = Chat("cohere")
_OLLAMA_CHAT = Chat("ollama", write=ollama.written, settings=_OLLAMA)
_ANTHROPIC, _RESPONSES, _GEMINI = Anthropic(), Responses(), Gemini()
_COMPLETIONS = Plain("completions", api="The completions API", prompt="prompt")
_GENERATE = Plain(
    "ollama-generate", api="Ollama's /api/generate", system="system", prompt="prompt", settings=_OLLAMA
)
_OLDER_COHERE = Plain("cohere-v1", api="Cohere's /v1/chat", system="preamble")


def dialect_of(head: RequestHead, document: Document) -> Dialect:
    """The dialect of a request; for what is no call of a model, one that knows parameters only."""
    path = head.path.rstrip("/")
    match identify(head).name:
        case "anthropic":
            return _ANTHROPIC
        case "openai-chat":
            return _COMPLETIONS if "prompt" in document and "messages" not in document else _CHAT
        case "openai-responses":
            return _RESPONSES
        case "gemini" if "mbedContent" not in path and not path.endswith(":predict"):
            return _GEMINI
        case "ollama":
            return _GENERATE if path.endswith("/api/generate") else _OLLAMA_CHAT
        case "cohere":
            return _COHERE if "messages" in document else _OLDER_COHERE
        case name:
            return Plain(name, api=f"This call to {head.host}")
