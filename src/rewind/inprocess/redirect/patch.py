"""How a function of somebody else's module is changed."""

from collections.abc import Callable
from functools import wraps
from typing import Any

Around = Callable[[Callable[..., Any]], Callable[..., Any]]


def wrap_function(owner: Any, name: str, around: Around) -> None:
    """Put ``around(what is there)`` in its place, under its own name."""
    real = getattr(owner, name)
    setattr(owner, name, wraps(real)(around(real)))
