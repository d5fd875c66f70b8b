"""Bodies from an editor: secrets come from the agent, and what stands in their place is never sent."""

import json
from typing import Any

import pytest

from rewind.errors import CannotEdit
from rewind.runs.fork.manual_edits import ManualEdit, SentBody, filled
from support.exchanges import request_of

HIDDEN = "REDACTEDxxxx"
SECRET = "s3cr3t-value"


def body(system: str, *texts: str, **more: Any) -> dict[str, Any]:
    turns = [{"role": "user", "content": text} for text in texts]
    return {"model": "m", "messages": [{"role": "system", "content": system}, *turns], **more}


def test_what_is_left_alone_may_hold_a_secret_also_where_a_message_is_added() -> None:
    by_hand = ManualEdit(body(f"Use {HIDDEN}.", "a"), body(f"Use {HIDDEN}.", "a", "b"))
    by_hand.check()
    sent = by_hand.apply(request_of(body(f"Use {SECRET}.", "a")))
    assert json.loads(sent.body) == body(f"Use {SECRET}.", "a", "b")


def test_what_is_changed_may_not() -> None:
    with pytest.raises(CannotEdit, match="contains a secret that Rewind does not store"):
        ManualEdit(body(f"Use {HIDDEN}.", "a"), body(f"Do use {HIDDEN}.", "a")).check()


def test_a_body_that_went_out_goes_out_again_with_the_agents_secrets() -> None:
    again = SentBody(body(f"Use {HIDDEN}.", "by hand", temperature=0))
    sent = again.apply(request_of(body(f"Use {SECRET}.", "a")))
    assert json.loads(sent.body) == body(f"Use {SECRET}.", "by hand", temperature=0)


def test_a_secret_that_was_written_by_hand_is_not_taken_for_the_agents_words() -> None:
    again = SentBody(body(f"You are {HIDDEN}.", "a"))
    for live in ("You are a clerk.", "You are a good clerk."):
        with pytest.raises(CannotEdit, match="Nothing was sent"):
            again.apply(request_of(body(live, "a")))


@pytest.mark.parametrize(
    ("sent", "live", "expected"),
    [
        ([HIDDEN, "new", "b"], ["b", SECRET], [SECRET, "new", "b"]),
        ({"a": f"{HIDDEN}/{HIDDEN}"}, {"a": f"{SECRET}/{SECRET}"}, {"a": f"{SECRET}/{SECRET}"}),
        ({"a": HIDDEN}, {}, {"a": HIDDEN}),
        (["REDACTED"], ["something"], ["REDACTED"]),
    ],
)
def test_secrets_are_filled_in_where_their_places_are_known(sent: Any, live: Any, expected: Any) -> None:
    assert filled(sent, live) == expected
