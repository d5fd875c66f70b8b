"""Strings that come in pieces, each by its place in a JSON value that is not whole yet."""

from dataclasses import dataclass, field
from typing import Any

Path = tuple[str | int, ...]

_DEEPEST = 32
"""No API nests deeper; a damaged path must not build a value that nothing can walk."""


@dataclass(frozen=True, slots=True)
class _Whole:
    value: Any


_Branch = dict[str | int, Any]
"""By the next step: another branch, a list of pieces, or what was told whole."""


@dataclass(slots=True)
class Pieces:
    """What is known of a value so far, by path."""

    root: _Branch = field(default_factory=dict)

    def append(self, path: Path, piece: str) -> None:
        """The next piece of the text at that place."""
        branch, step = self._place(path)
        if not isinstance(branch.get(step), list):
            branch[step] = []
        branch[step].append(piece)

    def put(self, path: Path, value: Any) -> None:
        """The whole value at that place, instead of what came in pieces."""
        branch, step = self._place(path)
        branch[step] = _Whole(value)

    def into(self, value: Any) -> Any:
        """The value with all pieces in their places."""
        return _filled(value, self.root) if self.root else value

    def _place(self, path: Path) -> tuple[_Branch, str | int]:
        branch = self.root
        *way, last = path[:_DEEPEST] or ("",)
        for step in way:
            if not isinstance(branch.get(step), dict):
                branch[step] = {}
            branch = branch[step]
        return branch, last


def _filled(value: Any, known: Any) -> Any:
    if isinstance(known, _Whole):
        return known.value
    if isinstance(known, list):
        return "".join(known)
    if named := {step: inside for step, inside in known.items() if isinstance(step, str)}:
        fields = value if isinstance(value, dict) else {}
        return {**fields, **{step: _filled(fields.get(step), inside) for step, inside in named.items()}}
    elements = list(value) if isinstance(value, list) else []
    for step, inside in sorted(known.items()):
        # A damaged index must not make a list of that length: what lies beyond the end comes next.
        if step < len(elements):
            elements[step] = _filled(elements[step], inside)
        else:
            elements.append(_filled(None, inside))
    return elements
