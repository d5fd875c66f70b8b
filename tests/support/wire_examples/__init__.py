"""Invented exchanges of every API we read: one conversation, each time in another tongue."""

from support.wire_examples import (
    anthropic,
    bedrock,
    cohere,
    embeddings,
    gemini,
    generation,
    ollama,
    openai_chat,
    openai_responses,
    tool_servers,
)
from support.wire_examples.said import Example, Stream

EXAMPLES: tuple[Example, ...] = (
    *anthropic.EXAMPLES,
    *openai_chat.EXAMPLES,
    *openai_responses.EXAMPLES,
    *gemini.EXAMPLES,
    *ollama.EXAMPLES,
    *cohere.EXAMPLES,
    *bedrock.EXAMPLES,
    *generation.EXAMPLES,
    *embeddings.EXAMPLES,
    *tool_servers.EXAMPLES,
)

__all__ = ["EXAMPLES", "Example", "Stream"]
