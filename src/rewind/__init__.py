"""Rewind: record an agent's run at the HTTP layer, replay it offline, find the step that broke."""

from rewind.errors import RewindError
from rewind.version import __version__

__all__ = ["RewindError", "__version__"]
