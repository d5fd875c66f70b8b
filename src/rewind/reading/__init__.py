"""Use cases that read or move sessions without running an agent."""
