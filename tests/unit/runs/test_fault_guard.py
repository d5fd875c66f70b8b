"""A bug while recording never reaches the agent, and never goes unmentioned."""

import asyncio
from typing import Any

import pytest

from rewind.gateway.exchange import Pass, Reply, Verdict
from rewind.match.call import Call
from rewind.model.clock import SystemClock
from rewind.model.http import Headers, HttpRequest, RequestHead, ResponseHead
from rewind.model.step import Ending
from rewind.playback.decision import Decision, Forward, Policy, Serve
from rewind.providers.hosts import LLM_HOSTS, HostRules
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs.junction import Junction
from rewind.runs.pass_through import FaultGuard

HEAD = ResponseHead(status=200, reason="OK", headers=())
ASKED = RequestHead(
    method="POST", scheme="https", host="api.openai.com", port=443, target="/v1/chat/completions", headers=()
)
MOMENTS = ("arrived", "answer_began", "answer_piece", "about_to_show", "answer_ended")


class Fragile:
    """An exchange that fails at one moment and counts the others."""

    def __init__(self, fails_at: str, verdict: Verdict | None = None) -> None:
        self.fails_at = fails_at
        self.heard: list[str] = []
        self._verdict = verdict or Pass()

    def _hear(self, moment: str) -> None:
        self.heard.append(moment)
        if moment == self.fails_at:
            raise KeyError("a bug")

    def early(self) -> bool:
        return True

    def arrived(self, body: bytes | None) -> Verdict:
        self._hear("arrived")
        return self._verdict

    def answer_began(self, head: ResponseHead) -> None:
        self._hear("answer_began")

    def answer_piece(self, data: bytes, *, ends_chunk: bool) -> None:
        self._hear("answer_piece")

    def about_to_show(self) -> None:
        self._hear("about_to_show")

    async def answer_ended(self, ending: Ending, *, trailers: Headers = (), reason: str | None = None) -> None:
        self._hear("answer_ended")

    def frame_agrees(self, recorded: str, sent: str) -> bool:
        return True

    def missed(self, reason: str) -> None: ...


def whole_exchange(shield: FaultGuard) -> Verdict:
    verdict = shield.arrived(b"{}")
    shield.answer_began(HEAD)
    shield.answer_piece(b"a", ends_chunk=True)
    shield.about_to_show()
    shield.answer_piece(b"b", ends_chunk=True)
    asyncio.run(shield.answer_ended(Ending.COMPLETE))
    return verdict


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_exchange_goes_on_unrecorded_whatever_fails_and_the_run_says_so_once(moment: str) -> None:
    remarks: list[tuple[str, str]] = []
    fragile = Fragile(moment)
    verdict = whole_exchange(FaultGuard(fragile, lambda *remark: remarks.append(remark)))
    assert isinstance(verdict, Pass)
    assert fragile.heard[-1] == moment, "after its failure it is not asked again"
    assert len(remarks) == 1
    assert remarks[0][0] == "a bug in Rewind"
    assert "KeyError" in remarks[0][1]


def test_an_exchange_that_does_not_fail_is_not_changed() -> None:
    remarks: list[tuple[str, str]] = []
    refusal = Reply(status=424, reason="", headers=(), body=b"")
    fragile = Fragile("never", refusal)
    assert whole_exchange(FaultGuard(fragile, lambda *remark: remarks.append(remark))) is refusal
    assert fragile.heard == ["arrived", "answer_began", "answer_piece", "about_to_show", "answer_piece", "answer_ended"]
    assert remarks == []


def test_being_cancelled_is_not_taken_for_a_bug() -> None:
    class Cancelled(Fragile):
        async def answer_ended(self, ending: Ending, **more: Any) -> None:
            raise asyncio.CancelledError

    remarks: list[tuple[str, str]] = []
    shield = FaultGuard(Cancelled("never"), lambda *remark: remarks.append(remark))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(shield.answer_ended(Ending.COMPLETE))
    assert remarks == []


class Broken(Policy):
    """A policy with a bug."""

    def early(self, head: RequestHead) -> Forward | None:
        raise KeyError("a bug")

    def at_a_glance(self, request: HttpRequest) -> Serve | None:
        raise KeyError("a bug")

    def decide(self, call: Call) -> Decision:
        raise KeyError("a bug")


def test_a_recorder_that_fails_at_the_sight_of_a_request_lets_it_pass() -> None:
    junction = Junction(
        policy=Broken(),
        rules=HostRules(LLM_HOSTS),
        redactor=Redactor(Secrets.from_environment({})),
        clock=SystemClock(),
        online=True,
    )
    exchange = junction.begin(ASKED)
    assert exchange.early()
    assert isinstance(exchange.arrived(b"{}"), Pass)
    assert any("a bug in Rewind" in remark for remark in junction.tally.remarks)


def test_an_offline_replay_with_a_bug_does_not_forward() -> None:
    """There is nowhere to forward to: the bug has to show."""
    junction = Junction(
        policy=Broken(),
        rules=HostRules(LLM_HOSTS),
        redactor=Redactor(Secrets.from_environment({})),
        clock=SystemClock(),
        online=False,
    )
    with pytest.raises(KeyError):
        junction.begin(ASKED)
