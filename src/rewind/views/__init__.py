"""Values → plain JSON, for ``--json`` and for pages alike.

The shapes are a contract: each names its schema, fields are added and never change their meaning.

A view reads values of the use cases and runs none of them. Types whose modules would load an engine are imported for
the type checker alone.
"""

from typing import Any


def members(value: object, *names: str) -> dict[str, Any]:
    """These members of a value, under the names they have there."""
    return {name: getattr(value, name) for name in names}
