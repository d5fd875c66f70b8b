"""A journal skimmed: where the lines of each step stand, and what finds a step again, without reading the rest.

A replay opens thousands of steps and is asked for one at a time. Every checksum is checked here, and a request line
must look exactly as we write it; whatever is out of the ordinary (damage, a killed recorder, the edits of a fork,
telemetry, steps from a trace) makes a journal one to be read whole, by ``contents.py``.
"""

import os
import re
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from rewind.conversation.sketch import brings_results
from rewind.errors import DamagedStore
from rewind.model.http import RequestHead
from rewind.model.ids import BlobId, MatchKey
from rewind.model.session import SessionEnd, SessionStart, Surroundings
from rewind.model.step import StepRequest
from rewind.playback.tape import TapeEntry, place_of
from rewind.providers.telemetry import upload_name
from rewind.store.files import open_to_read, read_at, reason
from rewind.store.journal.lines import BadLine, unseal
from rewind.store.journal.records import (
    AnswerLine,
    session_end,
    session_start,
    step_answer,
    step_request,
    surroundings_in,
)

_WINDOW = 64 * 1024
_SEAL_SIZE = len(b',"~":"00000000"}\n')
_BEGINNING = rb'\{"kind":"%b","ts":[0-9.]+,"run":"([0-9a-z]+)","n":([0-9]{1,9}),'
_REQUEST = re.compile(
    _BEGINNING % b"request" + rb'"step":([0-9]{1,9}),"type":"(?:llm_call|http_call)",("provider":"([^"\\]*)",'
    rb'"model":(?:null|"[^"\\]*"),"method":"([^"\\]*)","scheme":"https?","host":"([^"\\]*)","port":([0-9]{1,5}),'
    rb'"target":"([^"\\]*)"),"key":"([^"\\]+)","body":"(sha256:[0-9a-f]{64})","size":[0-9]+'
    rb'(?:,"thread":[0-9]+)?(?:,"sketch":"([^"\\]*)")?,"headers":\['
)
_ANSWER = re.compile(_BEGINNING % b"(?:step|cut)" + rb'"step":([0-9]{1,9}),"model":')
_OTHER = re.compile(_BEGINNING % b"(?:session|surroundings|end)")


class _Lines:
    """Lines of one kind, each by the place where it begins. Mostly asked for in their order: one look takes many."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._window = (0, b"")

    def close(self) -> None:
        """Let go of the file; it is opened again where a line is asked for later."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def at(self, offset: int) -> bytes:
        """Raises BadLine, OSError."""
        start, window = self._window
        end = window.find(b"\n", offset - start) if offset >= start else -1
        size = _WINDOW
        while end < 0:
            if self._fd is None:
                self._fd = open_to_read(self._path)
            start, window = self._window = offset, read_at(self._fd, size, offset)
            end = window.find(b"\n")
            if end < 0 and len(window) < size:
                raise BadLine("it is cut short")
            size *= 8
        return window[offset - start : end]


class SkimmedJournal:
    """The steps of a whole, undamaged journal; each is read when it is asked for."""

    def __init__(
        self,
        path: Path,
        start: SessionStart,
        end: SessionEnd,
        surroundings: Surroundings | None,
        requests: dict[int, int],
        answers: dict[int, int],
    ) -> None:
        """``requests`` and ``answers`` say, by step, where the line begins."""
        self.start = start
        self.end = end
        self.surroundings = surroundings
        self.uses_tools = False
        """Whether a model heard of the result of a tool."""
        self._places = requests, answers
        # The line of an answer may stand far behind that of its request.
        self._request_lines, self._answer_lines = _Lines(path), _Lines(path)

    def close(self) -> None:
        """Let go of the file; it is opened again where a step is asked for later."""
        self._request_lines.close()
        self._answer_lines.close()

    def step(self, index: int) -> tuple[StepRequest, AnswerLine]:
        """The two halves of that step. Raises DamagedStore."""
        requests, answers = self._places
        try:
            request = step_request(unseal(self._request_lines.at(requests[index])))
            return request, step_answer(unseal(self._answer_lines.at(answers[index])))
        except BadLine as why:
            raise DamagedStore(f"The lines of step {index} in the journal cannot be understood: {why}.") from why
        except OSError as error:
            raise DamagedStore(f"The journal cannot be read: {reason(error)}.") from error


Skim = Callable[[Path, Iterable[bytes], str], tuple[SkimmedJournal, list[TapeEntry]] | None]


def skim(path: Path, lines: Iterable[bytes], run: str) -> tuple[SkimmedJournal, list[TapeEntry]] | None:
    """The journal of that session, and what finds the steps that have an answer, in order.

    ``None`` where it is to be read whole.
    """
    mark = run.encode()
    requests: dict[int, int] = {}
    answers: dict[int, int] = {}
    found: dict[int, TapeEntry] = {}
    known: dict[bytes, tuple[str, str, int, str]] = {}
    start, surroundings, line = None, None, b""
    offset, uses_tools = 0, False
    try:
        # Tens of thousands pass here while the agent may be waiting.
        for number, line in enumerate(lines):
            if line[-_SEAL_SIZE:] != b',"~":"%08x"}\n' % zlib.crc32(line[:-_SEAL_SIZE]):
                return None
            if (told := _ANSWER.match(line)) is not None:
                index = int(told[3])
                if answers.setdefault(index, offset) != offset:
                    return None
            elif (told := _REQUEST.match(line)) is not None:
                index, where = int(told[3]), known.get(told[4])
                if where is None:
                    where = known[told[4]] = told[6].decode(), told[7].decode(), int(told[8]), told[9].decode()
                    if _is_telemetry(told[5].decode(), *where):
                        return None
                uses_tools = uses_tools or (told[12] is not None and brings_results(told[12].decode()))
                body = BlobId(told[11].decode())
                found[index] = TapeEntry(index, place_of(where, body), hash(body), MatchKey(told[10].decode()))
                if requests.setdefault(index, offset) != offset:
                    return None
            elif (told := _OTHER.match(line)) is None:
                return None
            if told[1] != mark or int(told[2]) != number:
                return None
            if number == 0:
                start = session_start(unseal(line[:-1]))
            elif line.startswith(b'{"kind":"surroundings"'):
                surroundings = surroundings_in(unseal(line[:-1]))
            offset += len(line)
        end = session_end(unseal(line[:-1]))
    except (BadLine, ValueError):
        return None
    if start is None or answers.keys() - requests.keys():
        return None
    journal = SkimmedJournal(path, start, end, surroundings, requests, answers)
    journal.uses_tools = uses_tools
    return journal, [found[index] for index in sorted(answers)]


def _is_telemetry(provider: str, method: str, host: str, port: int, target: str) -> bool:
    head = RequestHead(method=method, scheme="https", host=host, port=port, target=target, headers=())
    return upload_name(provider, head) is not None
