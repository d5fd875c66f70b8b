"""Prices as shipped: one JSON value a line, in four sections whose lengths the first line tells.

The sections are the header; units (what can be counted); sellers (whose API answers at which address); and models,
seller by seller in the order of the source, because the first that matches is meant. Only the lines that a question
needs are parsed. The lines are made by :mod:`rewind.pricing.build`; ``docs/prices.md`` has the rules.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import date
from functools import cached_property
from typing import Any

from rewind.dataclass import dataclass

FORMAT = 1


class DamagedSnapshot(ValueError):
    """These bytes are not a snapshot that this Rewind can read."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One kind of thing that is counted and paid for."""

    name: str
    """As counts call it: ``cache_read_tokens``."""
    price: str
    """As price lists call it: ``cache_read_mtok``."""
    per: int
    """How many of them the price is for."""
    dimensions: frozenset[tuple[str, str]]
    """A unit that has all of another's is a part of it: cached input is input."""


@dataclass(frozen=True, slots=True)
class Seller:
    """Whose API it is: the maker of the models, a cloud, a reseller."""

    id: str
    address: str
    """A regular expression for the beginning of its URLs."""
    fallback: tuple[str, ...]
    """Whose models it sells as well, at their prices."""
    first: int
    """The line of its first model."""
    models: int


@dataclass(frozen=True, slots=True)
class Model:
    """A model as one seller has it."""

    seller: str
    id: str
    context: int | None
    prices: Mapping[str, Any] | list[Mapping[str, Any]]
    """Price key → price; or several of these, each with the condition under which it holds, the last one first."""
    variants: tuple[Mapping[str, Any], ...]
    """What changes for a service tier or a batch."""


class Snapshot:
    """All prices of one day."""

    def __init__(self, data: bytes) -> None:
        self._lines = data.split(b"\n")
        header = _header(self._lines[0])
        self.source: str = header["source"]
        self.date: str = header["date"]
        self.digest: str = header["sha256"]
        self._units: int = header["units"]
        self._sellers: int = header["sellers"]
        # The last line ends as well, so an empty one follows it.
        if len(self._lines) != 1 + self._units + self._sellers + header["models"] + 1:
            raise DamagedSnapshot("its length is not what its first line says")
        self._models: dict[str, list[dict[str, Any]]] = {}

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """Everything that some seller has a price for."""
        return tuple(
            Unit(name, price, per, frozenset(dimensions.items()))
            for name, price, per, dimensions in self._parsed(1, self._units)
        )

    @cached_property
    def sellers(self) -> Mapping[str, Seller]:
        """By id, in the order in which addresses are compared."""
        first = 1 + self._units + self._sellers
        sellers = {}
        for row in self._parsed(1 + self._units, self._sellers):
            fallback = tuple(row.get("fallback", ()))
            sellers[row["id"]] = Seller(row["id"], row["api"], fallback, first, row["models"])
            first += row["models"]
        return sellers

    def seller_at(self, host: str, target: str = "/") -> Seller | None:
        """Who answers there. Few hosts have several sellers, told apart by the path."""
        url = f"https://{host}{target}"
        return next((seller for seller in self.sellers.values() if re.match(seller.address, url)), None)

    def model(self, seller: Seller, name: str) -> Model | None:
        """The seller's model of that name, or one that it sells for another."""
        name = name.lower()
        found = self._model(seller, name)
        if found is None and (dashed := _DENSE_DATE.sub(_with_dashes, name)) != name:
            found = self._model(seller, dashed)
        return found

    def _model(self, seller: Seller, name: str) -> Model | None:
        for each in (seller, *(self.sellers[other] for other in seller.fallback if other in self.sellers)):
            for row in self._models_of(each):
                if matches(row["match"], name) if "match" in row else row["id"].lower() == name:
                    variants = tuple(row.get("variants", ()))
                    return Model(each.id, row["id"], row.get("context"), row["prices"], variants)
        return None

    def _models_of(self, seller: Seller) -> list[dict[str, Any]]:
        if (rows := self._models.get(seller.id)) is None:
            rows = self._models[seller.id] = self._parsed(seller.first, seller.models)
        return rows

    def _parsed(self, first: int, count: int) -> list[Any]:
        rows: list[Any] = json.loads(b"[" + b",".join(self._lines[first : first + count]) + b"]")
        return rows


def checked_snapshot(data: bytes) -> Snapshot:
    """Prices from elsewhere. Every byte is checked, so that nothing surprises later. Raises DamagedSnapshot."""
    snapshot = Snapshot(data)
    if hashlib.sha256(data.partition(b"\n")[2]).hexdigest() != snapshot.digest:
        raise DamagedSnapshot("its bytes do not fit its checksum")
    return snapshot


_HEADER: Mapping[str, type] = {
    "source": str, "date": str, "sha256": str, "units": int, "sellers": int, "models": int
}  # fmt: skip


def _header(line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise DamagedSnapshot("it does not begin like a price list") from problem
    if not isinstance(header, dict) or "format" not in header:
        raise DamagedSnapshot("it does not begin like a price list")
    if header["format"] != FORMAT:
        raise DamagedSnapshot(f"its format is {header['format']!r}; this Rewind reads {FORMAT}")
    if not all(isinstance(header.get(name), kind) for name, kind in _HEADER.items()):
        raise DamagedSnapshot("its first line is not complete")
    return header


def matches(clause: Mapping[str, Any], name: str) -> bool:
    """Whether a model's name, in lower case, fits a clause of the source."""
    ((kind, value),) = clause.items()
    match kind:
        case "equals":
            return bool(name == value)
        case "or":
            return any(matches(each, name) for each in value)
        case "starts_with":
            return name.startswith(value)
        case "contains":
            return value in name
        case "regex":
            return re.search(value, name) is not None
        case "ends_with":
            return name.endswith(value)
        case _:
            return all(matches(each, name) for each in value)


_DENSE_DATE = re.compile(r"(-)(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")


def _with_dashes(found: re.Match[str]) -> str:
    """``-20251211``, as gateways write it, in the form that price lists have: ``-2025-12-11``."""
    dash, year, month, day = found.groups()
    try:
        return dash + date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return found[0]
