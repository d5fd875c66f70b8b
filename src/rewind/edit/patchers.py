"""Who speaks which dialect."""

from rewind.model.http import RequestHead
from rewind.providers.anthropic.patch import Anthropic
from rewind.providers.catalogue import identify
from rewind.providers.gemini.patch import Gemini
from rewind.providers.ollama import write as ollama
from rewind.providers.openai_chat.patch import Chat
from rewind.providers.openai_responses.patch import Responses
from rewind.providers.shared.patch import Dialect, Document
from rewind.providers.shared.plain import Plain
from rewind.providers.shared.settings import Settings

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
