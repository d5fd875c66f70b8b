"""Commands to copy, and reports of misses as they fit a test."""

import shlex
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rewind.match.call import Call, understand
from rewind.match.miss import Miss
from rewind.match.nearest import RecordedCall, explain_miss
from rewind.model.http import HttpRequest, RequestHead
from rewind.pytest_plugin.modes import Mode, pytest_command, quoted
from rewind.pytest_plugin.state import address_of
from rewind.pytest_plugin.tested_run import miss_text
from rewind.runs.tally import MissNote


def call(body: bytes) -> Call:
    head = RequestHead(
        method="POST",
        scheme="https",
        host="api.openai.com",
        port=443,
        target="/v1/chat/completions",
        headers=(("Content-Type", "application/json"),),
    )
    return understand(HttpRequest(head=head, body=body), index=1)


def note_of(miss: Miss) -> MissNote:
    return MissNote(reason=miss.reason, miss=miss)


def test_a_command_can_be_pasted_into_a_shell() -> None:
    assert pytest_command("tests/test_x.py::test_y", Mode.REWRITE) == "pytest tests/test_x.py::test_y --rewind=rewrite"
    assert pytest_command("tests/test_x.py::test_y[a]", Mode.NEW) == 'pytest "tests/test_x.py::test_y[a]" --rewind=new'


@given(st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"])))
def test_whatever_a_test_is_called_the_shell_reads_it_back(name: str) -> None:
    assert shlex.split(quoted(name)) == [name]


def test_an_address_is_told_from_where_pytest_was_started() -> None:
    root = Path("/project")
    assert address_of("tests/test_x.py::T::t[a/b]", root, root) == "tests/test_x.py::T::t[a/b]"
    assert address_of("tests/test_x.py::t", root, root / "tests") == "test_x.py::t"
    assert address_of("tests/test_x.py::t", root, root / "src") == "../tests/test_x.py::t"


def test_a_miss_keeps_its_word_diff_and_loses_the_advice_for_the_command_line() -> None:
    recorded = RecordedCall(
        index=1, call=call(b'{"model":"m","messages":[{"role":"user","content":"pay it"}]}'), played=False
    )
    asked = call(b'{"model":"m","messages":[{"role":"user","content":"refund it"}]}')
    text = miss_text(note_of(explain_miss(asked, [recorded], session="7f3a2b9c")))
    assert "messages[0].content" in text
    assert "refund" in text
    assert "rewind replay" not in text
    assert "rewind record" not in text
    assert "What to do" not in text


def test_a_miss_by_an_id_still_says_how_to_ignore_it() -> None:
    recorded = RecordedCall(
        index=1,
        call=call(b'{"model":"m","metadata":{"run":"3f2b8c1e-0f6d-4a53-9d0b-5a1c7e2d9f10"},"messages":[]}'),
        played=False,
    )
    asked = call(b'{"model":"m","metadata":{"run":"9a1c2e3d-7b64-4f0a-8c55-1d2e3f405162"},"messages":[]}')
    text = miss_text(note_of(explain_miss(asked, [recorded], session="7f3a2b9c")))
    assert 'ignore = ["metadata.run"]' in text
    assert "rewind replay" not in text
