"""Plain, async and parametrised tests, and what `rewind_run` knows of a run."""

import pytest
from support_agent import classify, run_customer_support_agent, support


@pytest.mark.rewind(cassette="tests/cassettes/customer_support.rw")
async def test_agent_handles_refund_request():
    result = await run_customer_support_agent("I want a refund for order 8821")
    assert "refund" in result.lower()


@pytest.mark.rewind
def test_a_refund_looks_the_account_up_first(rewind_run):
    support("I want a refund for order 8821")
    assert rewind_run.tools == ["lookup_account", "refund"]
    assert rewind_run.tool_calls[1].arguments == {"order": "8821", "amount": 1240}
    assert rewind_run.cost < 0.05
    assert "8821" in rewind_run.final_text


@pytest.mark.rewind
@pytest.mark.parametrize(
    ("message", "expected"),
    [("I want my money back", "refund"), ("the app crashes", "bug"), ("you are great", "praise")],
)
def test_messages_are_classified(message, expected, rewind_run):
    assert classify(message) == expected
    # What was sent just now, not what the cassette remembers.
    assert message in rewind_run.sent[0].json["messages"][0]["content"]
