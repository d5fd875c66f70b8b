"""What a simulated agent does and what its scripted model says: the values from which a planted run is made.

A scenario is a program: stages one after the other, the conversations of a stage side by side. A change is planted
in the program and the program is run again, so that whatever follows from the change follows by itself.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from rewind.model.message import Message, ToolDefinition
from support.planted_world import Domain

Parameters = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A tool that the model asks for, and what the tool will give back."""

    tool: str
    arguments: Mapping[str, Any]
    result: str = ""
    helper: "Talk | None" = None
    """The conversation whose last answer is the result: a sub-agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model."""

    text: str
    uses: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """All of a call but its messages."""

    model: str
    snapshot: str
    """The model that says it answered."""
    system: str
    tools: tuple[ToolDefinition, ...] = ()
    parameters: Parameters = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How the provider fails at a call."""

    status: int = 529
    """200 for an answer that breaks off."""
    attempts: int = 1
    """How often the agent tries and fails."""
    recovers: bool = False
    """Whether the try after those is good."""
    inside: bool = False
    """Whether a stream that breaks off tells an error; otherwise the connection is cut."""


Shift = Callable[[Setting], Setting]
Edit = Callable[[tuple[Message, ...]], tuple[Message, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation, as the agent leads it. Turns are counted from 0."""

    name: str
    family: str
    """What conversations of one program text share: a change of its prompt changes them all."""
    api: str
    domain: Domain
    asks: str
    turns: tuple[Turn, ...]
    setting: Setting
    streamed: bool = False
    held: bool = False
    """Whether the provider keeps the history and the agent sends what is new."""
    shifts: tuple[tuple[int, Shift], ...] = ()
    """Changes of the setting, each from one turn on."""
    edits: tuple[tuple[int, Edit], ...] = ()
    """What the agent does to its history before it sends it, each from one turn on."""
    follow_ups: Mapping[int, str] = field(default_factory=dict)
    """What the user says after the model's last word on the question before."""
    failures: Mapping[int, Failure] = field(default_factory=dict)
    reviews: Mapping[int, "Talk"] = field(default_factory=dict)
    """Other conversations that the agent leads after a turn, and whose answer it brings into this one."""
    stops_after: int | None = None
    """The turn after which the agent gives up, whatever the model asked for."""

    def at(self, turn: int) -> Setting:
        setting = self.setting
        for since, shift in self.shifts:
            if since <= turn:
                setting = shift(setting)
        return setting

    def sent(self, turn: int, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        for since, edit in self.edits:
            if since <= turn:
                messages = edit(messages)
        return messages

    @property
    def helpers(self) -> Iterator["Talk"]:
        return (use.helper for turn in self.turns for use in turn.uses if use.helper is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A program."""

    shape: str
    stages: tuple[tuple[Talk, ...], ...]

    @property
    def talks(self) -> tuple[Talk, ...]:
        """Every conversation, sub-agents after the one that starts them."""
        tops = [talk for stage in self.stages for talk in stage]
        return tuple(one for talk in tops for one in (talk, *talk.helpers))

    def talk(self, name: str) -> Talk:
        return next(talk for talk in self.talks if talk.name == name)

    def with_talk(self, changed: Talk) -> "Scenario":
        """The program with another conversation under that name."""
        return replace(self, stages=tuple(tuple(_with_talk(talk, changed) for talk in stage) for stage in self.stages))


def _with_talk(talk: Talk, changed: Talk) -> Talk:
    if talk.name == changed.name:
        return changed
    if not any(helper.name == changed.name for helper in talk.helpers):
        return talk
    turns = tuple(
        replace(
            turn,
            uses=tuple(
                replace(use, helper=changed) if use.helper and use.helper.name == changed.name else use
                for use in turn.uses
            ),
        )
        for turn in talk.turns
    )
    return replace(talk, turns=turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where the runs part: at that turn of that conversation."""

    talk: str
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A program with a change in it."""

    scenario: Scenario
    how: str
    """The change in words, for those who look into a case."""


Change = Callable[[Scenario, Spot, Random], Planted | None]
"""``None`` where that change cannot be made there."""
