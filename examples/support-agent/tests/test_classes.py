"""Classes, modules and unittest: the closest mark wins."""

import unittest

import pytest
from support_agent import classify, run_customer_support_agent, support

pytestmark = pytest.mark.rewind


class TestSupport:
    def test_unknown_orders_are_not_refunded(self, rewind_run):
        support("I want a refund for order 1")
        assert rewind_run.tools == ["lookup_account"]

    @pytest.mark.rewind(cassette="tests/cassettes/customer_support.rw")
    async def test_the_team_shares_a_cassette(self):
        assert await run_customer_support_agent("I want a refund for order 8821")


class Legacy(unittest.TestCase):
    def test_classify(self):
        self.assertEqual(classify("I want my money back"), "refund")  # noqa: PT009  that is how unittest looks


class LegacyAsync(unittest.IsolatedAsyncioTestCase):
    async def test_support(self):
        answer = await run_customer_support_agent("I want a refund for order 8821")
        self.assertIn("refund", answer.lower())  # noqa: PT009
