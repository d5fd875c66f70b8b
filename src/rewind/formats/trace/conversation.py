"""A conversation as it grows: what was said, which tools are waited for, and how its requests are written."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from rewind.formats.trace.apis.base import Api, Asking, Form, Result, Turn, Use, text_at
from rewind.formats.trace.events import Turns
from rewind.formats.trace.waiting import Waiting

_SCALAR = str | int | float | bool | None


@dataclass(slots=True, kw_only=True, eq=False)
class Conversation:
    """What was said so far. All that is done for a line takes as long as the line is, not as all that was said."""

    api: Api
    number: int = 0
    """Counts conversations, so that the newest can be told."""
    system: Any = None
    model: str = ""
    turns: list[Turn] = field(default_factory=list)
    open: Waiting[Use] = field(default_factory=Waiting)
    """Tools that were asked for and have given nothing yet."""
    lost: list[str] = field(default_factory=list)
    _given: int = 0
    """Turns that some call was given: those stay as they are."""
    _results: Turn | None = None
    """The last turn, where it brings results and no call was given it."""
    _prompts: set[str] | None = None
    """What the user said, once somebody asks for it."""
    _asking: Asking | None = None
    _form: Form | None = None

    def asked_for(self, tool_id: str, name: str) -> int | None:
        """The place of the open call of that id; without one, of that name; without either, the oldest."""
        if tool_id:
            return self.open.of_id(tool_id)
        return self.open.of_names((name,)) if name else self.open.oldest()

    def give(self) -> Turns:
        """All turns, to a call."""
        self._given = len(self.turns)
        self._results = None
        return Turns(self.turns, self._given)

    def say(self, turns: Iterable[Turn]) -> None:
        """These follow."""
        begin = len(self.turns)
        self.turns.extend(turns)
        self._results = None
        if self._prompts is not None:
            self._prompts.update(self._words(self.turns[begin:]))

    def ask(self, text: str) -> None:
        """What the user asks; one that is told with every call is asked once."""
        if self._prompts is None:
            self._prompts = set(self._words(self.turns))
        if text not in self._prompts:
            self.say([self.api.user(text)])

    def retell(self, turns: list[Turn]) -> None:
        """All that was said, told anew: most often what a call was given before, and more."""
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(self.turns, turns, strict=False))
        shared = sum(1 for _ in pairs)
        if self._given and shared >= self._given:
            del self.turns[shared:]
        else:
            self.turns, self._given, shared = [], 0, 0
        self._prompts = None
        self.say(turns[shared:])

    def bring(self, result: Result) -> None:
        """A tool's result follows; those that come in a row belong into one message, where the API has it so."""
        turn = self.api.brought(result)
        together = self.api.together
        if together is not None and self._results is not None:
            self._results[together] += turn[together]
            return
        self.say([turn])
        self._results = turn

    def form(self, asking: Asking) -> Form:
        """How a request is written; the very same one as long as nothing is set anew."""
        if self._form is None or self._asking is None or not _same(self._asking, asking):
            self._asking, self._form = asking, self.api.form(asking)
        return self._form

    def _words(self, turns: list[Turn]) -> Iterable[str]:
        for turn in turns:
            parts = turn.get("parts")
            words = text_at(turn, "content") or (
                text_at(parts[0], "text") if isinstance(parts, list) and parts else ""
            )
            if words and turn == self.api.user(words):
                yield words


def _same(a: Asking, b: Asking) -> bool:
    """Whether both are made of the same values: what was told once is the same object in every call."""
    return (
        a.model == b.model
        and _is(a.system, b.system)
        and (_is(a.tools, b.tools) or not (a.tools or b.tools))
        and a.parameters.keys() == b.parameters.keys()
        and all(_is(value, b.parameters[name]) for name, value in a.parameters.items())
    )


def _is(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, _SCALAR) and type(a) is type(b) and a == b)
