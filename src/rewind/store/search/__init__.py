"""The words of all sessions, for ``rewind search``."""
