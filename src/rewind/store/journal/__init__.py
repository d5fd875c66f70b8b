"""The journal: one append-only file of small JSON lines per session."""
