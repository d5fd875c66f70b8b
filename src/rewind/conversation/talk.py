"""What was asked at a step and what was answered, read from its bodies by today's codecs."""

from collections.abc import Callable
from dataclasses import dataclass

from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Answered, Asked
from rewind.model.step import Step, StepKind
from rewind.providers.api import Provider
from rewind.providers.catalogue import FALLBACK, identify

Bodies = Callable[[Step], tuple[bytes, bytes]]
"""The recorded bytes of a step: of its request, and of its answer (none where there is none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Both halves of a step."""

    provider: Provider
    kind: StepKind
    """By today's codecs: a session recorded last year is read as well as they can."""
    asked: Asked
    answered: Answered | None
    """``None`` when no answer came."""


def talk_of(step: Step, bodies: Bodies) -> Talk:
    """The step, read."""
    provider, kind = reader_of(step)
    request_body, response_body = bodies(step)
    request = HttpRequest(head=step.request.head, body=request_body)
    return Talk(
        provider=provider,
        kind=kind,
        asked=provider.asked(request),
        answered=answered_at(step, request_body, response_body),
    )


def reader_of(step: Step) -> tuple[Provider, StepKind]:
    """Who reads the step today, and what kind of step that makes it; nobody new leaves the recorded kind."""
    provider = identify(step.request.head)
    return provider, step.request.kind if provider is FALLBACK else provider.kind


def answered_at(step: Step, request_body: bytes, response_body: bytes) -> Answered | None:
    """What was answered. What a model says is read without its question: ``request_body`` may then be empty."""
    if step.response is None or step.response.head is None:
        return None
    head = step.response.head
    request = HttpRequest(head=step.request.head, body=request_body)
    response = HttpResponse(head=head, body=response_body, chunks=(), trailers=step.response.trailers)
    return identify(step.request.head).answered(request, response)
