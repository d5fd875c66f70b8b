"""``bisect --prove`` on a real model that never repeats itself: pairs of prompts that matter, and that do not."""

import json
from collections.abc import Callable

import pytest

from support.cli import KEYS
from support.effort import ALL
from support.lab import Lab
from support.script import Playbook
from support.small_model.apis import SmallModelApis
from support.small_model.model import SmallModel

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not ALL, reason="hundreds of answers of a real model; `make test-all` runs it"),
]

CLAIMS = ("A broken cup", "A torn shirt", "A wet book", "A late parcel", "A lost ring", "A bent fork")
R, D = "refund", "deny"
MATTERS = "matters"
"""Hardly ever bad with the good prompt, nearly always with the bad one."""
SOMEWHAT = "somewhat"
"""Bad more often, by less than half."""
NOTHING = "nothing"
"""Both prompts come out either way, equally often."""
PAIRS: list[tuple[str, tuple[str, ...], str, tuple[str, ...], str]] = [
    # the good prompt: how it begins, the examples that it gives; the bad one; what that does
    ("You decide on claims.", (R,) * 5, "You decide on claims.", (D,) * 5, MATTERS),
    ("You decide on claims.", (R,) * 2, "You decide on claims.", (D,) * 2, MATTERS),
    ("You work for a shop.", (R,) * 3, "You work for a shop.", (D,) * 3, MATTERS),
    ("Be kind.", (R,) * 4, "Be strict.", (D,) * 4, MATTERS),
    ("Claims of today:", (R,) * 6, "Claims of today:", (D,) * 6, MATTERS),
    ("You decide on claims.", (D, R), "You decide on claims.", (D,) * 5, MATTERS),
    ("You decide on claims.", (R,) * 5, "You decide on claims.", (*(R,) * 4, D), SOMEWHAT),
    ("You judge.", (*(R,) * 4, D), "You judge claims.", (*(R,) * 4, D), NOTHING),
    ("You decide on claims.", (*(R,) * 4, D), "You rule on claims.", (*(R,) * 4, D), NOTHING),
    ("Work on this list.", (*(R,) * 4, D), "Go through this list.", (*(R,) * 4, D), NOTHING),
    ("You work for a shop.", (*(R,) * 4, D), "You work for a store.", (*(R,) * 4, D), NOTHING),
    ("Claims of today:", (*(R,) * 4, D), "Claims of this day:", (*(R,) * 4, D), NOTHING),
]


def prompt(beginning: str, actions: tuple[str, ...]) -> str:
    examples = (f'{claim}: {{"next": "{action}"}}.' for claim, action in zip(CLAIMS, actions, strict=False))
    return " ".join([beginning, *examples])


def recorded(lab: Lab, rule: str, wanted: str) -> str:
    """A run that came out so: the model is asked until it does."""
    for _ in range(30):
        run = lab.record("claim_agent.py", rule).ok()
        if run.lines[0]["next"] == wanted:
            return run.session
    pytest.fail(f"30 runs, and none came out as {wanted}: {rule}")


def test_planted_pairs_on_a_real_model(
    small_model: SmallModel, lab: Callable[[Playbook], Lab], record_property: Callable[[str, object], None]
) -> None:
    shop = lab(SmallModelApis(small_model))
    verdicts: list[tuple[str, str]] = []
    lines = []
    for good_words, good_actions, bad_words, bad_actions, truth in PAIRS:
        good = recorded(shop, prompt(good_words, good_actions), R)
        bad = recorded(shop, prompt(bad_words, bad_actions), D)
        done = shop.rewind(
            "bisect",
            good,
            bad,
            "--prove",
            "--yes",
            "--max-calls",
            "30",
            "--json",
            *shop.upstream,
            env=KEYS,
            timeout=600,
        )
        assert done.code == 1, done.talk
        proof = json.loads(done.stdout)["proof"]
        was, back = proof["control"], proof["trials"][0]
        verdicts.append((truth, back["effect"]["verdict"]))
        lines.append(
            f"  {truth:<9} {proof['verdict']:<12} bad {was['bad']}/{was['of']} as it was, "
            f"{back['bad']}/{back['of']} put back, {proof['live_calls']} calls: {bad_words} {' '.join(bad_actions)}"
        )
    record_property("shown", "\n".join(["--prove on a real small model:", *lines]))
    seen = [verdict in ("causes", "raises") for truth, verdict in verdicts if truth == MATTERS]
    false = [verdict in ("causes", "raises", "lowers") for truth, verdict in verdicts if truth == NOTHING]
    assert sum(seen) >= len(seen) - 1, "\n".join(lines)
    assert sum(false) <= 1, "\n".join(lines)
