"""Bytes that cannot be read back: whoever needs them says in which session."""

import pytest

from rewind.errors import ExitCode
from support.exchanges import request_of
from unit.cli.shelf import Rewind, Shelf, a_request, an_answer


@pytest.mark.parametrize(
    "arguments",
    [
        ("fork", "7f3a2b9c:1", "--dry-run", "--set", "temperature=0"),
        ("messages", "7f3a2b9c"),
        ("inspect", "7f3a2b9c:1"),
    ],
    ids=lambda words: words[0],
)
def test_a_damaged_step_is_told_with_its_session(rewind: Rewind, shelf: Shelf, arguments: tuple[str, ...]) -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "Hello."}]}'
    asked = request_of(body)
    writer = shelf.begin("7f3a2b9c")
    writer.request(a_request(1, head=asked.head), body)
    writer.response(1, an_answer(2), b"{}")
    writer.end(ended=1_700_000_008.4, exit_code=0, redactions=0, remarks=())
    pack = writer.folder / "pack"
    pack.write_bytes(pack.read_bytes()[:16] + b"\0" * (pack.stat().st_size - 16))
    ran = rewind(*arguments)
    assert ran.code == ExitCode.ENVIRONMENT
    assert "Session 7f3a2b9c is damaged. The bytes sha256:" in ran.talk
    assert "rewind verify 7f3a2b9c" in ran.talk
