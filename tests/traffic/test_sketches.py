"""The digests that runs are compared by, on real conversations."""

from collections import defaultdict
from pathlib import Path

import pytest

from rewind.conversation.sketch import answer_digest, history_after, sketch_of
from rewind.model.http import HttpRequest
from rewind.model.step import StepKind
from rewind.providers.catalogue import identify
from support.traffic import Exchange, exchanges_in

pytestmark = pytest.mark.traffic


def calls_by_cassette(traffic: Path) -> dict[str, list[Exchange]]:
    found: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in exchanges_in(traffic):
        provider = identify(exchange.request.head)
        if provider.kind is StepKind.LLM_CALL and not provider.reader.asked(exchange.request).embeds:
            found[exchange.cassette].append(exchange)
    return found


def test_an_answer_of_a_conversation_is_read_without_its_question(traffic: Path) -> None:
    checked = 0
    for exchanges in calls_by_cassette(traffic).values():
        for exchange in exchanges:
            provider = identify(exchange.request.head)
            alone = HttpRequest(head=exchange.request.head, body=b"")
            assert provider.reader.answered(alone, exchange.response) == provider.reader.answered(
                exchange.request, exchange.response
            ), exchange.name
            checked += 1
    assert checked > 500


def test_most_calls_that_go_on_are_known_by_their_history_alone(traffic: Path) -> None:
    """Without a body: the history of the later call is the fold of the earlier one, its turn and its answer."""
    going_on = linked = 0
    for exchanges in calls_by_cassette(traffic).values():
        known: set[str] = set()
        for exchange in exchanges:
            provider = identify(exchange.request.head)
            asked = provider.reader.asked(exchange.request)
            sketch = sketch_of(asked, provider)
            if sketch.history != "-" and known:
                going_on += 1
                linked += sketch.history in known
            answered = provider.reader.answered(exchange.request, exchange.response)
            known.add(history_after(sketch, answer_digest(answered.parts)))
    print(f"\n{linked} of {going_on} calls with a history are linked by digests alone")
    assert linked > 0.7 * going_on
