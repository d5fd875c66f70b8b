"""What an agent may do to its history from one turn on: cut, drop, put in, put in another order."""

from dataclasses import replace
from random import Random

from rewind.model.message import Message, Part, Role, Text, ToolResult
from support.planted_script import Edit, Planted, Scenario, Spot, Talk


def history(scenario: Scenario, spot: Spot, random: Random) -> Planted | None:
    """Done to what had been sent whole before, so it is no output of a tool and no input of a user that changed."""
    talk = scenario.talk(spot.talk)
    if talk.held or spot.turn < 2:
        return None
    since = random.randint(2, spot.turn)
    known = 2 * since - 1  # messages that the call before had already sent
    how = random.choice(["truncated", "dropped", "injected", *(["reordered"] if since > 2 else [])])
    edit: Edit
    match how:
        case "truncated":
            edit = _truncating(random.choice(_long(talk, known)), random.choice([0.2, 0.5]))
        case "dropped":
            edit = _dropping(1 + 2 * random.randint(1, since - 1))
        case "injected":
            text = random.choice(talk.domain.other_prompt)
            role = Role.SYSTEM if talk.api in ("chat", "responses") and random.random() < 0.4 else Role.USER
            edit = _injecting(1 + 2 * random.randint(0, since - 2), Message(role, (Text(f"Reminder: {text}"),)))
        case _:
            edit = _swapping(1 + 2 * random.randint(0, since - 3))
    changed = replace(talk, edits=(*talk.edits, (since, edit)))
    return Planted(scenario=scenario.with_talk(changed), how=f"history: {how} since turn {since}")


def _long(talk: Talk, known: int) -> list[int]:
    """The first message, and those of the others that have something to lose."""
    answers = [1 + 2 * number for number, turn in enumerate(talk.turns) if len(turn.text) > 30]
    results = [
        2 + 2 * number for number, turn in enumerate(talk.turns) if any(len(use.result) > 30 for use in turn.uses)
    ]
    return [at for at in (0, *answers, *results, *results) if at < known]


def _truncating(at: int, share: float) -> Edit:
    def edit(messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return tuple(
            replace(message, parts=tuple(_cut(part, share) for part in message.parts)) if number == at else message
            for number, message in enumerate(messages)
        )

    return edit


def _cut(part: Part, share: float) -> Part:
    match part:
        case Text(text):
            return Text(f"{text[: int(len(text) * share)]} [truncated]")
        case ToolResult():
            return replace(part, parts=tuple(_cut(one, share) for one in part.parts))
    return part


def _dropping(until: int) -> Edit:
    return lambda messages: (*messages[:1], *messages[until:])


def _injecting(at: int, message: Message) -> Edit:
    return lambda messages: (*messages[:at], message, *messages[at:])


def _swapping(at: int) -> Edit:
    """Two turns of the model change places, each with what was said to it."""
    return lambda messages: (*messages[:at], *messages[at + 2 : at + 4], *messages[at : at + 2], *messages[at + 4 :])
