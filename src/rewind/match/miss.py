"""Why a replay had no answer for a call: a value, and its text for the agent and for the person at the terminal."""

import shlex
from enum import StrEnum

from rewind.dataclass import dataclass
from rewind.providers import tools
from rewind.providers.shared.json_fields import writable
from rewind.text import plural

SHOWN_FIELDS = 5
"""How many fields, addresses and rules are shown."""
MOST_FIELDS = 100
"""How many differing fields are counted."""


class MissKind(StrEnum):
    """Why there is no answer."""

    PLAYED = "already played"
    """The call was recorded, and each of its answers was already given."""
    NO_ADDRESS = "no such address"
    """The session has no call to this address."""
    DIFFERENT = "different"
    """The session has calls to this address, or to the same API, but not this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingField:
    """One field in which the call differs from the nearest recorded one."""

    path: str
    """``messages[3].content``; ``body`` for the whole of it."""
    shown: str
    """The difference in one line, ``a [-refund-]{+return+} is due``; empty for fields that are not shown."""
    volatile: str | None
    """``an ISO date`` and the like, where only such a value differs."""
    ignore: str | None
    """The path to put into the setting ``ignore``, where that would make the field match."""
    ignores_text: bool
    """Whether that path would ignore more than the volatile value: the whole text around it."""
    pattern: str | None = None
    """The expression to put into the setting ``ignore_text`` in place of that, where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """Why a call could not be answered. It holds no bodies, so that thousands of them may be kept."""

    kind: MissKind
    session: str
    asked: str
    """``POST api.openai.com/v1/chat/completions``"""
    model: str | None
    api: str = ""
    """That the call belongs to, by its name."""
    recorded: int
    """Calls in the recording."""
    played: int
    """Those of them whose answer was given."""
    twins: tuple[int, ...] = ()
    """For ``PLAYED``: the steps that asked the same."""
    addresses: tuple[str, ...] = ()
    """For ``NO_ADDRESS``: what was recorded instead."""
    nearest: int | None = None
    """The step that comes closest."""
    nearest_played: bool = False
    servable: int | None = None
    """The nearest step, where the caller could read its answer: same address, streamed or not alike."""
    differing: tuple[DifferingField, ...] = ()
    """How the call differs from the nearest one; at most :data:`MOST_FIELDS`."""
    fork_at: int | None = None
    """The step that a fork is at; ``None`` in a replay."""
    command: tuple[str, ...] = ()
    """Given for this replay in place of the recorded one."""
    only_names: bool = False
    """Whether the nearest call is the same but for names, which were not to differ in this replay."""

    @property
    def ignore(self) -> tuple[str, ...]:
        """What to ignore so that the call matches; empty where more than volatile values differ."""
        rules = [field.ignore for field in self.differing if field.ignore is not None]
        return tuple(dict.fromkeys(rules[:SHOWN_FIELDS])) if len(rules) == len(self.differing) else ()

    @property
    def reason(self) -> str:
        """One sentence, for the agent."""
        return f"Rewind: {self.sentence}"

    @property
    def sentence(self) -> str:
        """The same without the name of who says so."""
        return writable(self._sentence())

    @property
    def facts(self) -> str:
        """Many lines, for the person at the terminal: what was asked, and what comes closest."""
        return writable("\n".join(self._fact_lines()))

    @property
    def ignore_advice(self) -> str:
        """How to leave what differs out of the comparison; empty where that does not help."""
        return writable("\n".join(self._ignore_lines()))

    @property
    def advice(self) -> str:
        """What to do about it, in commands."""
        commands = self._replay_advice() if self.fork_at is None else self._fork_advice()
        return writable("\n".join(["What to do", *self._ignore_lines(), *self._tool_advice(), *commands]))

    @property
    def report(self) -> str:
        """The facts, and what to do about it."""
        return f"{self.facts}\n\n{self.advice}"

    # ── its text ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _often(self) -> str:
        return "once" if len(self.twins) == 1 else f"{len(self.twins)} times"

    @property
    def _steps(self) -> str:
        shown = ", ".join(map(str, self.twins[:8])) + (", …" if len(self.twins) > 8 else "")
        return f"step {shown}" if len(self.twins) == 1 else f"steps {shown}"

    def _sentence(self) -> str:
        match self.kind:
            case MissKind.PLAYED:
                return (
                    f"this call was recorded {self._often} in session {self.session} ({self._steps}) "
                    "and already played."
                )
            case MissKind.NO_ADDRESS:
                return f"session {self.session} has no recorded call to {self.asked}."
        closest = f"this call was never recorded in session {self.session}; step {self.nearest} comes closest"
        if not self.differing:
            return f"{closest}."
        fields = ", ".join(field.path for field in self.differing[:3])
        more = f" and {len(self.differing) - 3} more fields" if len(self.differing) > 3 else ""
        return f"{closest} and differs in {fields}{more}."

    def _fact_lines(self) -> list[str]:
        asked = [
            f"  asked     {self.asked}" + (f"  ({self.model[:80]})" if self.model else ""),
            f"  session   {self.session}: {plural(self.recorded, 'call')} recorded, {self.played} played",
        ]
        match self.kind:
            case MissKind.PLAYED:
                title = "Already played: the agent asks this once more than it did when recorded."
                return [title, *asked, f"  recorded  {self._often}, {self._steps}"]
            case MissKind.NO_ADDRESS:
                shown = [f"  recorded  {address}" for address in self.addresses[:SHOWN_FIELDS]]
                left = len(self.addresses) - len(shown)
                more = [f"            … and {left} more"] if left else []
                return ["Never recorded: the session has no call to this address.", *asked, *shown, *more]
        nearest = f"  nearest   step {self.nearest}, {'already' if self.nearest_played else 'not yet'} played"
        return ["Never recorded: no recorded call is the same.", *asked, nearest, *self._field_lines()]

    def _field_lines(self) -> list[str]:
        count = len(self.differing)
        if not count:
            return ["  differs   only in how its values are written"]
        fields = f"{MOST_FIELDS} fields or more" if count == MOST_FIELDS else plural(count, "field")
        lines = [f"  differs   in {fields}"]
        for field in self.differing[:SHOWN_FIELDS]:
            lines.append(f"    {field.path}" + (f"   (only {field.volatile} differs)" if field.volatile else ""))
            lines.append(f"      {field.shown}")
        if count > SHOWN_FIELDS:
            lines.append(f"    … and {plural(count - SHOWN_FIELDS, 'more field')}")
        return lines

    def _ignore_lines(self) -> list[str]:
        if not self.ignore:
            return []
        lines = [
            "  - If that differs on every run, leave it out of the comparison, in pyproject.toml:",
            "        [tool.rewind]",
        ]
        patterns = [field.pattern for field in self.differing if field.pattern is not None]
        if patterns and len(patterns) == len(self.differing):
            found = ", ".join(f"'{pattern}'" for pattern in dict.fromkeys(patterns))
            return [*lines, f"        ignore_text = [{found}]"]
        paths = ", ".join(f'"{path}"' for path in self.ignore)
        lines.append(f"        ignore = [{paths}]")
        if any(field.ignores_text for field in self.differing):
            lines.append("    (this ignores the whole text of the field; holding the clock or the id still is safer)")
        return lines

    def _tool_advice(self) -> list[str]:
        if self.api != tools.API.name:
            return []
        again = (
            f"rewind replay {self.session}" if self.fork_at is None else f"rewind fork {self.session}:{self.fork_at}"
        )
        return [f"  - To run the agent's tools, whatever was recorded:        {again} --tools live{self._command}"]

    @property
    def _command(self) -> str:
        return f" -- {shlex.join(self.command)}" if self.command else ""

    def _replay_advice(self) -> list[str]:
        replay = f"rewind replay {self.session}"
        command = self._command
        lines = [
            f"  - To ask the provider whatever was not recorded:          {replay} --on-miss live{command}",
            "  - If the agent was changed on purpose, record it again:   rewind record -- …",
        ]
        if self.servable is not None and not self.nearest_played:
            lines.insert(
                0, f"  - To accept answers to slightly different questions:      {replay} --allow-drift{command}"
            )
        return [*self._names_advice(f"{replay}{command}"), *lines]

    def _names_advice(self, again: str) -> list[str]:
        """The variable wins over a setting in a file, which may be what forbids other names here."""
        accepted = f"  - Only names differ. To accept that, without --exact:     REWIND_MATCH=renamed {again}"
        return [accepted] if self.only_names else []

    def _fork_advice(self) -> list[str]:
        fork = f"rewind fork {self.session}:{self.fork_at}"
        first = (
            f"  - A fork plays the steps before {self.fork_at} from the recording: "
            "fork where the agent first asks otherwise."
        )
        if self.differing:
            # What differs here mostly comes again in every later request: live answers would be paid for, and the
            # step never be asked.
            drifting = f"  - To take such requests for the recorded ones:            {fork} --allow-drift …"
            return [*self._names_advice(f"{fork} …"), first, drifting]
        return [first, f"  - To let calls that were not recorded go live:            {fork} --on-miss live …"]
