"""Use cases that run an agent: record, replay, fork, probe."""
