"""Tests that stand on cassettes: the pytest plugin."""
