"""Real bodies, damaged at random: nothing raises, and what is read can be shown.

The number of a body is its seed. ``REWIND_FUZZ_BODIES`` changes how many are tried.
"""

import json
import random
import traceback
from collections import Counter
from collections.abc import Callable

import pytest

from rewind.match.call import understand
from rewind.model.http import HttpRequest, HttpResponse
from rewind.providers.summary import read
from support.damage import damaged_request, damaged_response
from support.effort import effort
from support.traffic import Exchange

pytestmark = [pytest.mark.traffic, pytest.mark.torture]

BODIES = effort(20_000, 100_000, "REWIND_FUZZ_BODIES")
LOTS = 10
"""So that several workers can share them."""

Reader = Callable[[HttpRequest, HttpResponse], None]


def damaged_exchange(exchanges: list[Exchange], seed: int) -> tuple[HttpRequest, HttpResponse]:
    """A real exchange of which the request or the answer is damaged."""
    dice = random.Random(seed)
    exchange, other = dice.choice(exchanges), dice.choice(exchanges)
    if dice.random() < 0.5:
        return damaged_request(dice, exchange.request, other.request.body), exchange.response
    return exchange.request, damaged_response(dice, exchange.response, other.response.body)


def read_everything(request: HttpRequest, response: HttpResponse) -> None:
    provider = understand(request).provider
    asked = provider.reader.asked(request)
    answered = provider.reader.answered(request, response)
    reading = read(provider, request, response)
    for told in (reading.text, reading.model, reading.error, reading.note, answered.text, asked.note):
        (told or "").encode()
    assert len(reading.text) <= 200
    assert reading.error or response.head.status < 400


def troubles(exchanges: list[Exchange], seeds: range, reads: Reader) -> list[str]:
    """What was raised, and for which seed."""
    found = []
    for seed in seeds:
        request, response = damaged_exchange(exchanges, seed)
        try:
            reads(request, response)
        except Exception as problem:  # noqa: BLE001 - whatever it is, it should not have been raised
            where = traceback.extract_tb(problem.__traceback__)[-1]
            found.append(f"{type(problem).__name__} in {where.name}, line {where.lineno}; seed {seed}")
    return found


@pytest.mark.timeout(120 + BODIES // LOTS // 100)
@pytest.mark.parametrize("lot", range(LOTS))
def test_no_damaged_body_makes_anything_raise(exchanges: list[Exchange], lot: int) -> None:
    seeds = range(lot * BODIES // LOTS, (lot + 1) * BODIES // LOTS)
    found = troubles(exchanges, seeds, read_everything)
    kinds = Counter(trouble.partition("; seed")[0] for trouble in found)
    assert found == [], f"{len(found)} of {len(seeds)}: {kinds.most_common(5)}"


def test_a_reader_that_trusts_its_bodies_is_caught(exchanges: list[Exchange]) -> None:
    def trusting(request: HttpRequest, response: HttpResponse) -> None:
        document = json.loads(response.body)
        if "choices" in document:
            document["choices"][0]["message"]["content"].encode()

    seeds = range(400)
    kinds = {trouble.partition(" in ")[0] for trouble in troubles(exchanges, seeds, trusting)}
    assert kinds >= {"JSONDecodeError", "AttributeError", "KeyError"}


def test_the_damage_is_real_and_leaves_something_to_read(exchanges: list[Exchange]) -> None:
    noted = silent = 0
    for seed in range(400):
        request, response = damaged_exchange(exchanges, seed)
        provider = understand(request).provider
        if provider.reader.asked(request).note or provider.reader.answered(request, response).note:
            noted += 1
        else:
            silent += 1
    assert noted > 100
    assert silent > 100
