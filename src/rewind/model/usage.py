"""Tokens by kind. Apart from the other nouns of a call, because a recording needs it before it needs those."""

from collections.abc import Mapping
from dataclasses import field

from rewind.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens by kind, each counted once by the same rule whatever the provider's own; ``None`` where untold."""

    input: int | None = None
    """All the model read: cached or not, written to a cache or not."""
    output: int | None = None
    """All it wrote, thinking included."""
    cache_read: int | None = None
    """Of the input: read from a cache."""
    cache_write: int | None = None
    """Of the input: written to a cache."""
    reasoning: int | None = None
    """Of the output: thinking."""
    more: Mapping[str, int] = field(default_factory=dict)
    """What is priced apart by some providers, under the names of :mod:`rewind.pricing.prices`: ``input_audio_tokens``,
    ``cache_write_1h_tokens``, ``web_searches`` …"""
    tier: str = ""
    """The service tier that answered (``flex``, ``priority``, ``batch`` …), where it is told and not the usual one."""

    @property
    def is_told(self) -> bool:
        return self.input is not None or self.output is not None


NO_USAGE = Usage()
