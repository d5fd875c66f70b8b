"""The providers we ship, in the order they are asked."""

import re
from collections.abc import Iterable

from rewind.model.http import RequestHead
from rewind.providers.anthropic.read import Anthropic, AnthropicCounting
from rewind.providers.api import Provider
from rewind.providers.bedrock.read import Bedrock
from rewind.providers.cohere.read import Cohere
from rewind.providers.embeddings import Embeddings
from rewind.providers.gemini.read import Gemini, GeminiCounting, GeminiEmbeddings
from rewind.providers.http import Http
from rewind.providers.mcp import Mcp
from rewind.providers.notes import Failures, Notes
from rewind.providers.ollama.read import Ollama
from rewind.providers.openai_chat.read import OpenAIChat
from rewind.providers.openai_responses.read import OpenAIResponses
from rewind.providers.tools import Tools

BUILT_IN: tuple[Provider, ...] = (
    Anthropic(),
    OpenAIChat(),
    OpenAIResponses(),
    Gemini(),
    Ollama(),
    Cohere(),
    Bedrock(),
    Embeddings(),
    GeminiEmbeddings(),
    AnthropicCounting(),
    GeminiCounting(),
    Tools(),
    Notes(),
    Failures(),
    Mcp(),
)
FALLBACK: Provider = Http()

_NOT_OF_MODELS = ("failures", "http", "mcp", "notes", "tools")
"""Providers whose requests are recorded only from hosts that were asked for."""

_NEIGHBOURS = re.compile(
    r"/v1(beta)?/models(/[^/]+)*$"
    r"|/v1/(responses|conversations|files|batches|messages/batches|vector_stores)(/[^/]+)*$"
    r"|/api/(tags|show|version|ps)$"
    r"|/v1/(rerank|moderations|audio/[a-z]+|images/[a-z]+)$"
)
"""What clients ask of an LLM server besides answers. A replay without these would stop at the agent's first breath."""


def identify(head: RequestHead, providers: Iterable[Provider] = BUILT_IN) -> Provider:
    """Who can read this request; the generic provider where nobody claims it."""
    return next((provider for provider in providers if provider.claims(head)), FALLBACK)


def looks_like_llm(head: RequestHead) -> bool:
    """Whether the request belongs to an LLM API, whatever its host: Ollama, vLLM and gateways live anywhere."""
    return identify(head).name not in _NOT_OF_MODELS or _NEIGHBOURS.search(head.path.rstrip("/")) is not None
