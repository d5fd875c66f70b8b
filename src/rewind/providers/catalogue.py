"""The APIs we ship, in the order they are asked, and who reads a request."""

import re
from collections.abc import Iterable

from rewind.model.http import RequestHead
from rewind.providers import (
    anthropic,
    bedrock,
    cohere,
    embeddings,
    gemini,
    generation,
    http,
    mcp,
    notes,
    ollama,
    openai_assistants,
    openai_chat,
    openai_responses,
    tools,
)
from rewind.providers.api import Api
from rewind.providers.outside import RESERVED, outside_apis

BUILT_IN: tuple[Api, ...] = (
    openai_chat.API,
    openai_responses.API,
    anthropic.API,
    gemini.API,
    ollama.API,
    cohere.API,
    bedrock.API,
    embeddings.API,
    gemini.EMBEDDINGS,
    anthropic.COUNTING,
    gemini.COUNTING,
    openai_assistants.API,
    *generation.APIS,
    tools.API,
    notes.API,
    notes.FAILURES,
    mcp.API,
)
FALLBACK = http.API

BY_SHAPE: dict[str, Api] = {api.shape: api for api in BUILT_IN if api.shape}
"""The APIs that a conversation can be written for, by the name that ``rewind messages --as`` has."""
SHAPES = tuple(BY_SHAPE)

_NEIGHBOURS = re.compile(
    r"/v1(beta)?/models(/[^/]+)*$"
    r"|/v1/(responses|conversations|files|batches|messages/batches|vector_stores)(/[^/]+)*$"
    r"|/api/(tags|show|version|ps)$"
    r"|/v1/(rerank|moderations|audio/[a-z]+|images/[a-z]+)$"
)
"""What clients ask of an LLM server besides answers. A replay without these would stop at the agent's first request."""


_BY_NAME = {api.name: api for api in (*reversed(BUILT_IN), FALLBACK)}
RESERVED.update(_BY_NAME)


def named(name: str) -> Api | None:
    """The API that journals call by this name; the first where several share it."""
    return _BY_NAME.get(name) or next((api for api in outside_apis() if api.name == name), None)


def identify(head: RequestHead, apis: Iterable[Api] = BUILT_IN) -> Api:
    """The API of this request: one of ours, else one that was brought along; plain HTTP where nobody claims it."""
    for api in apis:
        if api.reader.claims(head):
            return api
    return next((api for api in outside_apis() if api.reader.claims(head)), FALLBACK)


def looks_like_llm(head: RequestHead) -> bool:
    """Whether the request belongs to an LLM API, whatever its host: Ollama, vLLM and gateways live anywhere."""
    return identify(head).is_llm or _NEIGHBOURS.search(head.path.rstrip("/")) is not None
