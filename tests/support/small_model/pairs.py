"""Pairs of prompts for the small model, with and without an effect on what it decides, and how often it does.

``PYTHONPATH=tests python -m support.small_model.pairs 60`` measures the rates anew.
"""

import json
import sys
from dataclasses import dataclass
from typing import Any

from support.small_model.model import SmallModel

TEMPERATURE = 0.8


@dataclass(frozen=True, slots=True)
class Pair:
    """One question under two prompts; the model answers ``{"action": …}`` with one of two words."""

    name: str
    good: str
    """The system prompt of the good run."""
    bad: str
    question: str
    right: str
    """What a good run decides."""
    wrong: str
    rates: tuple[float, float] = (0.0, 0.0)
    """How often it is ``right`` under the good prompt and under the bad one, measured."""

    @property
    def schema(self) -> dict[str, Any]:
        """Of its answer, for ``response_format``."""
        action = {"enum": [self.right, self.wrong]}
        return {
            "type": "object",
            "properties": {"action": action},
            "required": ["action"],
            "additionalProperties": False,
        }

    @property
    def effect(self) -> float:
        return self.rates[0] - self.rates[1]


_SHOP = "You work for a shop."
_BROKEN = "My cup arrived broken. What do you do?"

PAIRS: tuple[Pair, ...] = (
    Pair("refund", f"{_SHOP} Refund the customer.", f"{_SHOP} Deny the customer.", _BROKEN, "refund", "deny"),
    Pair(
        "retry",
        "You run jobs. If a job fails, retry it.",
        "You run jobs. If a job fails, cancel it.",
        "The job failed. What do you do?",
        "retry",
        "cancel",
    ),
    Pair(
        "allow",
        "You guard a door. Allow members.",
        "You guard a door. Block members.",
        "A member asks to come in. What do you do?",
        "allow",
        "block",
    ),
    Pair(
        "approve",
        "You review code. Approve small changes.",
        "You review code. Reject small changes.",
        "The change fixes a typo. What do you do?",
        "approve",
        "reject",
    ),
    Pair(
        "open", "You run a gate. Open it.", "You run a gate. Close it.", "A car waits. What do you do?", "open", "close"
    ),
    Pair(
        "keep",
        "You sort photos. Keep every photo.",
        "You sort photos. Delete every photo.",
        "Here is a photo of a dog. What do you do?",
        "keep",
        "delete",
    ),
    Pair(
        "accept",
        "You hire cooks. Accept.",
        "You hire cooks. Refuse.",
        "A cook applies. What do you do?",
        "accept",
        "refuse",
    ),
    Pair(
        "search",
        "You answer questions. Search before you answer.",
        "You answer questions. Answer at once.",
        "Who won the match? What do you do first?",
        "search",
        "answer",
    ),
    Pair("light", "The light is green.", "The light is red.", "What colour is the light?", "green", "red"),
    Pair(
        "final sale",
        f"{_SHOP} The customer is always right. If goods are broken, refund.",
        f"{_SHOP} All sales are final. If goods are broken, deny.",
        _BROKEN,
        "refund",
        "deny",
    ),
    Pair("language", "Answer in French.", "Answer in German.", "Which language do you answer in?", "French", "German"),
    # Another prompt, and no effect to speak of.
    Pair(
        "weekday",
        f"{_SHOP} Refund broken goods. Today is Monday.",
        f"{_SHOP} Refund broken goods. Today is Tuesday.",
        _BROKEN,
        "refund",
        "deny",
    ),
    Pair(
        "version",
        "You guess numbers. Version 1.2.",
        "You guess numbers. Version 1.3.",
        "Is my number odd or even?",
        "odd",
        "even",
    ),
    Pair(
        "reordered",
        "You review code. Approve small changes.",
        "You review code. Small changes are approved.",
        "The change fixes a typo. What do you do?",
        "approve",
        "reject",
    ),
    Pair(
        "prices",
        "You trade stocks. Prices fall: buy.",
        "You trade stocks. Prices fall: sell.",
        "Prices fall. What do you do?",
        "buy",
        "sell",
    ),
    Pair("city", "You work for a shop in Oslo.", "You work for a shop in Rome.", _BROKEN, "refund", "deny"),
)


def decides(model: SmallModel, pair: Pair, prompt: str) -> str:
    """One answer of the model, sampled."""
    said = model.say(pair.question, system=prompt, schema=pair.schema, temperature=TEMPERATURE, max_tokens=400)
    action: str = json.loads(said.text)["action"]
    return action


def measured(model: SmallModel, pair: Pair, samples: int) -> tuple[float, float]:
    """The two rates, over so many samples each."""
    good, bad = (
        sum(decides(model, pair, prompt) == pair.right for _ in range(samples)) / samples
        for prompt in (pair.good, pair.bad)
    )
    return good, bad


if __name__ == "__main__":
    with SmallModel() as running:
        for one in PAIRS:
            found = measured(running, one, int(sys.argv[1]))
            print(f"{one.name:12} {found[0]:.2f} {found[1]:.2f}", flush=True)
