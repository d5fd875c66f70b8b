"""A trace: one JSON line per step, written by the agent itself. Standard library only."""
