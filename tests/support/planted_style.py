"""What two runs of one program never agree in: ids, times, how a body is laid out and cut, and in what order parallel
calls arrive. None of it is a reason for a run to go another way."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Any
from uuid import UUID

from rewind.model.http import Headers

_STARTED = datetime(2026, 3, 2, 9, 14, 7, tzinfo=UTC)
_SLOT = re.compile(r"<<([a-z_]+)>>")
_TIMES = ("now", "today", "clock", "fetched", "checked")


class Noise(StrEnum):
    """A difference that must not count."""

    IDS = "ids"
    VALUES = "times and uuids in texts"
    TIMING = "timing"
    LAYOUT = "key order and spacing"
    HEADERS = "headers"
    PIECES = "pieces of streams"
    STREAMING = "streamed or whole"
    ORDER = "order of parallel calls"
    RETRY = "a retry that succeeds"
    EXTRA = "an extra call"


@dataclass(slots=True, kw_only=True)
class Style:
    """The hand of one run. Runs of equal seed and without noise write the same bytes as long as they say the same."""

    seed: str
    noise: frozenset[Noise]
    started: datetime
    _random: dict[Noise, Random]
    _tag: str

    @classmethod
    def of(cls, seed: str, noise: frozenset[Noise] = frozenset()) -> "Style":
        """``noise``: in what it differs from the plain hand of that seed."""
        random = {one: Random(f"{seed}:{one}" + ":other" * (one in noise)) for one in Noise}
        later = timedelta(seconds=random[Noise.TIMING].randint(60, 9_000_000)) if Noise.TIMING in noise else None
        return cls(
            seed=seed,
            noise=noise,
            started=_STARTED + (later or timedelta()),
            _random=random,
            _tag="other" if Noise.VALUES in noise else "",
        )

    def drawing(self, noise: Noise) -> Random:
        return self._random[noise]

    def name(self, prefix: str, size: int = 24) -> str:
        """A new id."""
        return prefix + "".join(self._random[Noise.IDS].choices("0123456789abcdefghijkmnpqrstuvwxyz", k=size))

    def own(self, prefix: str) -> str:
        """An id that this run keeps from its first call to its last."""
        return f"{prefix}{Random(f'{self.seed}:{Noise.IDS in self.noise}').getrandbits(128):032x}"

    def seconds(self, least: float, most: float) -> float:
        return round(self._random[Noise.TIMING].uniform(least, most), 3)

    def filled(self, text: str, seconds: float) -> str:
        """The text with this run's own ids and times; ``seconds`` is how long it has been going."""
        return _SLOT.sub(lambda slot: self._value(slot[1], seconds), text)

    def _value(self, slot: str, seconds: float) -> str:
        random = Random(f"{self.seed}:{slot}:{self._tag}")
        if slot not in _TIMES:
            return str(UUID(int=random.getrandbits(128), version=4))
        when = _STARTED + timedelta(days=random.randint(0, 300), seconds=random.randint(0, 86_399))
        match slot:
            case "clock":
                return (when + timedelta(seconds=int(seconds))).isoformat().replace("+00:00", "Z")
            case "today":
                return (when + timedelta(microseconds=random.randint(1, 999_999))).isoformat(" ")
            case _:
                return when.isoformat().replace("+00:00", "Z")

    # ── how it is written ────────────────────────────────────────────────────────────────────────────────────

    def written(self, document: Any) -> bytes:
        """A request's JSON."""
        if Noise.LAYOUT not in self.noise:
            return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
        random = self._random[Noise.LAYOUT]
        spacing = random.choice([(",", ":"), (", ", ": ")])
        indent = random.choice([None, None, 2])
        plain = random.random() < 0.5
        return json.dumps(self._shuffled(document), separators=spacing, indent=indent, ensure_ascii=plain).encode()

    def arguments(self, arguments: Any) -> str:
        """The arguments of a tool call where an API has them as a string in the request: a client that parsed them
        writes them its own way, and every time the same."""
        if Noise.LAYOUT not in self.noise:
            return json.dumps(arguments, separators=(",", ":"))
        return json.dumps(arguments, sort_keys=True)

    def _shuffled(self, value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            self._random[Noise.LAYOUT].shuffle(keys)
            return {key: self._shuffled(value[key]) for key in keys}
        return [self._shuffled(one) for one in value] if isinstance(value, list) else value

    def pieces(self, text: str) -> list[str]:
        """A text as a stream brings it."""
        random = self._random[Noise.PIECES]
        found = []
        while text:
            size = random.randint(2, 24)
            found.append(text[:size])
            text = text[size:]
        return found

    def streamed(self, usually: bool) -> bool:
        return usually != (Noise.STREAMING in self.noise)

    # ── what stands around it ────────────────────────────────────────────────────────────────────────────────

    def client_headers(self) -> Headers:
        random = self._random[Noise.HEADERS]
        return (
            ("content-type", "application/json"),
            (
                "user-agent",
                f"client/1.{random.randint(0, 9)}.{random.randint(0, 30)} python/3.{random.randint(11, 13)}",
            ),
            ("x-stainless-retry-count", str(random.randint(0, 1))),
            ("idempotency-key", f"stainless-{random.getrandbits(64):016x}"),
        )

    def server_headers(self, media: str, seconds: float) -> Headers:
        random = self._random[Noise.HEADERS]
        date = (self.started + timedelta(seconds=seconds)).strftime("%a, %d %b %Y %H:%M:%S GMT")
        return (
            ("content-type", media),
            ("date", date),
            ("request-id", f"req_{random.getrandbits(96):024x}"),
            ("x-ratelimit-remaining-requests", str(random.randint(1, 9999))),
        )
