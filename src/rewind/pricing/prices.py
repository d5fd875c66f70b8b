"""What a call cost, and how much its model can read. Unknown is ``None``, never nought.

Whose prices hold is found in this order:

1. The user's own prices, by the name of the model, whoever answers: ``"my-model" = { input = 0.5, output = 1.5 }``,
   in US dollars per million tokens.
2. The seller whose address it is: ``api.openai.com`` is OpenAI, and a model that OpenAI's list lacks is unknown there.
3. Nobody, on this machine and through Ollama's API: what answers is a model of the user's, a fake or a gateway, and
   nothing tells which.
4. At any other address, which is a gateway or a stranger: the maker of the model, at its list price, if the
   model is one that only its maker can run (Claude, GPT, Gemini, Grok). What passes it on pays that price.
   Models with open weights run anywhere, at any price: unknown.

The moment of the call picks among prices of different dates, so an old run keeps its old cost.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from rewind.dataclass import dataclass
from rewind.model.usage import Usage
from rewind.pricing.rates import Rates, Tariff, UnitTable, counts_of
from rewind.pricing.snapshot import Model, Seller, Snapshot

if TYPE_CHECKING:
    from rewind.providers.api import Api

# ── the user's own prices ────────────────────────────────────────────────────────────────────────────────────────

PRICE_KEYS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "reasoning": "output_reasoning_mtok",
}
"""As the user writes it → as price lists call it. What is not named costs what contains it: cached input is input."""
_CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class OwnPrice:
    """What the user says of a model, or of all whose names fit a pattern."""

    name: str
    prices: Mapping[str, float]
    """Empty where only the context window is named."""
    context: int | None


def own_price(name: str, entry: Any) -> OwnPrice:
    """One entry, read. Raises ValueError with what is wrong with it."""
    if not name.strip():
        raise ValueError("needs the name of a model")
    if not isinstance(entry, Mapping) or not entry:
        raise ValueError(f"must be a table such as {{ input = 0.5, output = 1.5 }}, not {entry!r}")
    for key, value in entry.items():
        if isinstance(value, Mapping):
            raise ValueError(f'has a table inside; a name with a dot needs quotes: "{name}.{key}"')
        if key not in PRICE_KEYS and key != _CONTEXT:
            raise ValueError(f"has no key {key!r}; the keys are {', '.join((*PRICE_KEYS, _CONTEXT))}")
        if key == _CONTEXT:
            if type(value) is not int or value <= 0:
                raise ValueError(f"{key!r} must be a number of tokens, not {value!r}")
        elif type(value) not in (int, float) or not 0 <= value < math.inf:
            raise ValueError(f"{key!r} must be US dollars per million tokens, not {value!r}")
    prices = {PRICE_KEYS[key]: value for key, value in entry.items() if key != _CONTEXT}
    if missing := [key for key in ("input", "output") if prices and key not in entry]:
        raise ValueError(f"needs {missing[0]!r} as well; 0 where nothing is charged")
    return OwnPrice(name, prices, entry.get(_CONTEXT))


class OwnPrices:
    """The user's prices. A full name goes before patterns, and among these the first."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self.entries = {name: own_price(name, entry) for name, entry in entries.items()}
        self._exact = {name.lower(): entry for name, entry in self.entries.items()}
        self._patterns = [
            (re.compile(".*".join(map(re.escape, name.lower().split("*"))), re.DOTALL), entry)
            for name, entry in self.entries.items()
            if "*" in name
        ]

    def of(self, model: str) -> OwnPrice | None:
        name = model.lower()
        if (entry := self._exact.get(name)) is not None:
            return entry
        return next((entry for pattern, entry in self._patterns if pattern.fullmatch(name)), None)


# ── all prices ───────────────────────────────────────────────────────────────────────────────────────────────────

_MAKERS: tuple[tuple[str, str], ...] = (
    ("claude-", "anthropic"),
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("text-embedding-3-", "openai"),
    ("text-embedding-ada-", "openai"),
    ("gemini-", "google"),
    ("grok-", "x-ai"),
)
"""How the names of models begin that only their maker can run → the maker."""
_OPEN = ("gpt-oss",)
"""Names that begin like these, and whose weights everybody has."""
DEMO_PATH = "/rewind-demo/"
"""The scripted provider of ``rewind demo`` is known by it: its calls have the price of the model that it plays."""
_LOCAL_NAMES = ("localhost", "::1", "host.docker.internal")
_LONGEST_NAME = 300
"""Of a model. What is longer was written by no provider, and patterns take their time with it."""
_PLANS = 4096


class Prices:
    """The snapshot and the user's own prices. Read from files by :mod:`rewind.reading.prices`."""

    def __init__(self, snapshot: Snapshot, own: OwnPrices, *, warning: str | None = None) -> None:
        self._snapshot = snapshot
        self._own = own
        self._table: UnitTable | None = None
        self._plans: dict[tuple[str, str, str, str | None, str], Rates | Tariff | None] = {}
        self.date = snapshot.date
        """Of the snapshot: ``2026-11-15``."""
        self.source = snapshot.source
        """Where it comes from: ``genai-prices 0.2.1``."""
        self.warning = warning
        """Why newer prices that are there could not be used."""
        self.fingerprint = _fingerprint(snapshot, own)
        """Another one whenever a price may be another one."""

    def cost(
        self, *, host: str, target: str = "/", provider: str, model: str | None, usage: Usage, ts: float
    ) -> float | None:
        """What a call came to in US dollars; ``None`` where that is unknown.

        ``host`` is where the request went (and ``target`` its path, for hosts where several sell), ``provider`` the
        codec that read it, ``ts`` when it was made, in seconds since 1970. Usage without any count, or whose counts
        contradict each other, has no cost. Never raises.
        """
        counts = counts_of(usage)
        if not counts:
            return None
        asked = (host, target, provider, model, usage.tier)
        try:
            plan = self._plans[asked]
        except KeyError:
            plan = self._planned(*asked)
        if isinstance(plan, Tariff):
            plan = plan.at(ts)
        return plan.cost(counts) if plan is not None else None

    def context_window(self, *, host: str, target: str = "/", provider: str, model: str | None) -> int | None:
        """How many tokens the model can read, where that is known."""
        if not _is_a_name(model):
            return None
        own = self._own.of(model)
        if own is not None and own.context is not None:
            return own.context
        found = self._listed(host, target, provider, model)
        return found[1].context if found is not None else None

    def priced_as(self, *, host: str, target: str = "/", provider: str, model: str | None) -> str | None:
        """Whose price that model has: ``anthropic/claude-sonnet-4-5``, or the user's own entry."""
        if not _is_a_name(model):
            return None
        own = self._own.of(model)
        if own is not None and own.prices:
            return f"own price {own.name!r}"
        found = self._listed(host, target, provider, model)
        return f"{found[1].seller}/{found[1].id}" if found is not None else None

    def _planned(self, host: str, target: str, provider: str, model: str | None, tier: str) -> Rates | Tariff | None:
        if len(self._plans) >= _PLANS:
            self._plans.clear()
        plan = self._plan(host, target, provider, model, tier) if _is_a_name(model) else None
        self._plans[host, target, provider, model, tier] = plan
        return plan

    def _plan(self, host: str, target: str, provider: str, model: str, tier: str) -> Rates | Tariff | None:
        table = self._table = self._table or UnitTable(self._snapshot.units)
        own = self._own.of(model)
        if own is not None and own.prices:
            return Rates(own.prices, table)
        if (found := self._listed(host, target, provider, model)) is None:
            return None
        seller, listed = found
        # Who sells another's model at its prices does not sell that maker's tiers.
        context = _context(tier) if listed.seller == seller.id else {}
        tariff = Tariff(listed, context, table)
        return tariff if tariff.turns else tariff.at(0)

    def _listed(self, host: str, target: str, provider: str, model: str) -> tuple[Seller, Model] | None:
        """The model in the list of whoever is paid for it."""
        host = _plain(host)
        if (seller := self._snapshot.seller_at(host, target)) is not None:
            name = model
        elif _is_local(host) and target.startswith(DEMO_PATH):
            seller, name = self._snapshot.sellers.get("anthropic"), model
        elif _is_local(host) or ((api := _api(provider)) is not None and api.is_free):
            return None
        elif api is not None and api.seller:
            seller, name = self._snapshot.sellers.get(api.seller), model
        else:
            # Gateways say whose it is before the name: ``anthropic/claude-sonnet-4-5``, ``vertex_ai/gemini-2.5-pro``.
            name = model.lower().rpartition("/")[2]
            seller = self._snapshot.sellers.get(_maker(name))
        listed = self._snapshot.model(seller, name) if seller is not None else None
        return (seller, listed) if seller is not None and listed is not None else None


def _fingerprint(snapshot: Snapshot, own: OwnPrices) -> str:
    said = [(entry.name, dict(entry.prices), entry.context) for entry in own.entries.values()]
    line = json.dumps([snapshot.date, snapshot.digest, said])
    return hashlib.sha256(line.encode()).hexdigest()[:16]


def _plain(host: str) -> str:
    return host.lower().removeprefix("[").removesuffix("]").removesuffix(".")


def _is_a_name(model: str | None) -> TypeGuard[str]:
    return model is not None and 0 < len(model) <= _LONGEST_NAME


def _is_local(host: str) -> bool:
    if host in _LOCAL_NAMES or host.endswith(".localhost"):
        return True
    return host.startswith(("127.", "0.")) and host.replace(".", "").isdigit()


def _maker(name: str) -> str:
    """The seller who alone has that model; empty where nobody has it alone."""
    if name.startswith(_OPEN):
        return ""
    return next((seller for beginning, seller in _MAKERS if name.startswith(beginning)), "")


def _context(tier: str) -> Mapping[str, str]:
    """What price lists ask for when they have several prices for a model."""
    tier = tier.lower().removeprefix("on_demand_")  # Vertex AI: ``ON_DEMAND_FLEX``
    if tier == "batch":
        return {"processing": "batch"}
    return {"service_tier": tier} if tier else {}


def _api(name: str) -> "Api | None":
    from rewind.providers.catalogue import named  # lazily: it loads every codec, and known sellers need none

    return named(name)
