"""When do two messages say the same? Decided by digests, so that long histories are compared quickly.

Thinking does not count, since agents send it back or leave it out as they like. Neither do the ids of tool calls,
which frameworks draw anew.
"""

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from rewind.model.message import Media, Message, Other, Part, Refusal, Text, Thinking, ToolResult, ToolUse, Vectors

Digest = bytes
_KEPT_TEXT = 8192
"""Characters of a text whose digest is kept in mind."""


def part_digest(part: Part) -> Digest | None:
    """``None`` for what does not count."""
    match part:
        case Text(text) | Refusal(text):
            # Agents trim what a model said before they send it back.
            words = text.strip()
            return _text_digest(words) if words else None
        case ToolUse(_, name, arguments):
            return _digest("use", name, json_text(arguments))
        case ToolResult():
            inner = b"".join(digest for one in part.parts if (digest := part_digest(one)) is not None)
            return _digest("result", inner.hex())
        case Media():
            return _digest("media", part.kind, part.reference, part.digest)
        case Other(kind, value):
            return _digest("other", kind, json_text(value))
        case Thinking() | Vectors():
            return None


def _text_digest(words: str) -> Digest:
    # Asked for more than once: a history is looked at by several, and comes back in the next call.
    return _kept_text_digest(words) if len(words) <= _KEPT_TEXT else _digest("text", words)


@lru_cache(maxsize=1024)
def _kept_text_digest(words: str) -> Digest:
    return _digest("text", words)


def digests(parts: Iterable[Part]) -> tuple[Digest, ...]:
    return tuple(digest for part in parts if (digest := part_digest(part)) is not None)


def message_digest(message: Message) -> Digest:
    return _digest(message.role.value, b"".join(digests(message.parts)).hex())


def json_text(value: Any) -> str:
    """A JSON value in one spelling; arguments that are not JSON are kept as text."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        return repr(type(value))


def _digest(*words: str) -> Digest:
    digest = hashlib.blake2b(digest_size=16)
    for word in words:
        # Lengths keep ("a", "bc") and ("ab", "c") apart; half a surrogate pair must not stop us.
        digest.update(b"%d:" % len(word))
        digest.update(word.encode("utf-8", "surrogatepass"))
    return digest.digest()
