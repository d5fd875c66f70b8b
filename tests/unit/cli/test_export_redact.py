"""``rewind export --redact`` and the scan: nothing leaves unread, and what was done is said."""

import gzip
import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from rewind.model.http import ResponseHead
from rewind.model.session import Surroundings
from rewind.model.step import Ending, Reading, StepKind
from rewind.store.library import Library
from unit.cli.shelf import Rewind, Shelf, a_request, an_answer
from unit.cli.talks import HEAD, begin, refund, use

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ASKED = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello"}]}).encode()


def a_cut_answer(shelf: Shelf) -> None:
    """Compressed, and hung up on before its end."""
    said = b"".join(
        b'data: {"type": "content_block_delta", "delta": {"text": "write to bob@acme.example %d"}}\n\n' % n
        for n in range(99)
    )
    body = gzip.compress(said)[:-12]
    headers = (("content-type", "text/event-stream"), ("content-encoding", "gzip"))
    head = ResponseHead(status=200, reason="OK", headers=headers)
    writer = shelf.begin("9b2c0d1e", name="cut")
    writer.request(a_request(head=HEAD), ASKED)
    reading = Reading(text="write to bob@acme.example 0")
    writer.response(1, an_answer(len(body), head=head, ending=Ending.CLIENT_CLOSED, reading=reading), body)
    writer.end(ended=1_700_000_008.0, exit_code=0, redactions=0, remarks=())


@pytest.mark.parametrize("form", ["x.rw", "x.har", "x.md"])
def test_a_compressed_answer_that_was_cut_is_redacted(rewind: Rewind, shelf: Shelf, tmp_path: Path, form: str) -> None:
    a_cut_answer(shelf)
    ran = rewind("export", "cut", "--redact", r"bob@[a-z.]+", "-o", form)
    assert ran.code == 0, ran.talk
    assert b"bob@" not in (tmp_path / form).read_bytes()
    assert "step 1: not all of it could be read (the compressed data breaks off)" in ran.talk
    if form == "x.rw":
        session = Library(tmp_path).find("x.rw")
        with Library(tmp_path).open(session) as reader:
            [step] = reader.recording().steps
            assert step.response is not None and step.response.ending is Ending.CLIENT_CLOSED
            assert gzip.decompress(reader.blob(step.response.body)).count(b"REDACTEDxxxxxxxx") >= 97


def test_what_is_told_in_short_is_scrubbed_where_the_body_says_nothing_of_it(
    rewind: Rewind, shelf: Shelf, tmp_path: Path
) -> None:
    writer = shelf.begin("9b2c0d1e", name="odd")
    writer.request(a_request(note="asked by bob-1234"), ASKED)
    writer.response(1, an_answer(2, reading=Reading(text="it is bob-1234", error="no bob-1234")), b"{}")
    writer.end(ended=1_700_000_008.0, exit_code=0, redactions=0, remarks=())
    ran = rewind("export", "odd", "--redact", r"bob-\d+", "-o", "x.rw", "--json")
    assert b"bob" not in (tmp_path / "x.rw").read_bytes()
    assert ran.json()["redactions"]["will_miss"] == [], "what is asked is as it was"
    assert ran.json()["id"] != "9b2c0d1e"


def test_hosts_and_the_name_of_the_file_are_redacted(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    writer = shelf.begin(
        "9b2c0d1e",
        name="acmecorp incident",
        hosts=("*.acmecorp.example",),
        base_urls={"OPENAI_BASE_URL": "https://llm.acmecorp.example/v1"},
        cwd="/home/acmecorp",
        ignore=("body.acmecorp",),
    )
    head = replace(HEAD, host="llm.acmecorp.example", headers=(("Host", "llm.acmecorp.example"),))
    writer.request(a_request(head=head), ASKED)
    writer.response(1, an_answer(2), b"{}")
    writer.surroundings(Surroundings(branch="fix/acmecorp"))
    writer.end(ended=1_700_000_008.0, exit_code=0, redactions=0, remarks=("acmecorp went around",))
    ran = rewind("export", "9b2c", "--redact", "(?i)acmecorp")
    assert ran.code == 0, ran.talk
    [file] = tmp_path.glob("*.rw")
    assert file.name == "REDACTED-incident.rw"
    assert b"acmecorp" not in file.read_bytes().lower()
    assert b"https://llm.redacted.example/v1/messages" in file.read_bytes()


def test_the_scan_looks_at_everything(rewind: Rewind, shelf: Shelf) -> None:
    def key(number: int) -> str:
        return f"ghp_{number:02}" + KEY[6:]

    writer = shelf.begin(
        "9b2c0d1e",
        name=f"n {key(1)}",
        cwd=f"/home/{key(2)}",
        hosts=(key(3),),
        key_variables=(key(4),),
        ignore=(f"body.{key(5)}",),
        tags={key(6): key(7)},
        base_urls={"X_BASE_URL": f"https://x.example/{key(8)}"},
    )
    writer.surroundings(Surroundings(branch=key(9), locks={"uv.lock": key(10)}))
    writer.request(a_request(note=key(11), model=key(12), head=replace(HEAD, host=f"{key(13)}.example")), ASKED)
    head = ResponseHead(status=200, reason=key(14), headers=((f"x-{key(21)}", key(15)),))
    reading = Reading(text=key(16), error=key(17), note=key(18), model="m")
    writer.response(1, an_answer(2, head=head, reading=reading, reason=key(19)), b"{}")
    writer.end(ended=1_700_000_008.0, exit_code=0, redactions=0, remarks=(key(20),))
    ran = rewind("export", "9b2c", "--strict-secrets", "--json")
    places = sorted(f"{one['where']} {one['path']}" for one in ran.json()["findings"])
    assert (ran.code, len(places)) == (1, 21), places
    clean = rewind("export", "9b2c", "--strict-secrets", "--redact", r"ghp_\w+", "-o", "x.rw")
    assert clean.code == 0, clean.talk


def test_a_pattern_that_matches_nothing_is_said(rewind: Rewind, shelf: Shelf) -> None:
    refund(begin(shelf, "9b2c0d1e", name="refund")).end()
    ran = rewind("export", "refund", "--redact", "no such thing", "--redact", "8821", "-o", "x.rw", "--json")
    assert ran.json()["redactions"]["unmatched"] == ["no such thing"]
    assert "--redact 'no such thing' matched nothing" in ran.talk
    assert "--redact 8821 matched nothing" not in ran.talk


def test_an_agent_that_is_given_placeholders_may_take_another_path(rewind: Rewind, shelf: Shelf) -> None:
    talk = begin(shelf, "9b2c0d1e").says("Who am I?")
    talk.hears("You are ACME-778.").says("Thanks.").hears("Goodbye.").end()
    ran = rewind("export", "9b2c", "--redact", "ACME-[0-9-]+", "-o", "x.rw", "--json")
    assert "the agent gets placeholders at step 1: if it acts on what was removed" in ran.talk
    assert ran.json()["redactions"]["answers_changed"] == [1]


def test_the_hint_is_the_whole_command_and_works(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    talk = begin(shelf, "9b2c0d1e", name="leak").says("Look it up.")
    talk.hears("I will.", use("lookup", order="8821")).brings(f"token={KEY}").hears("Found it.").end()
    ran = rewind("export", "leak", "-o", "my x.har", "--steps", "2..", "--redact", "8821")
    assert "my x.har was written, and holds them" in ran.talk
    hint = ran.talk.split("to remove them: ")[1].splitlines()[0]
    assert hint == (
        "rewind export leak --steps 2.. -o 'my x.har' --redact 8821 --redact 'gh[pousr]_[A-Za-z0-9]{30,}' --force"
    )
    assert rewind(*shlex.split(hint)[1:]).code == 0
    assert KEY.encode() not in (tmp_path / "my x.har").read_bytes()


def test_an_archive_says_what_it_has_no_place_for(rewind: Rewind, shelf: Shelf) -> None:
    writer = shelf.begin("9b2c0d1e", name="mixed")
    for index, kind, scheme in ((1, StepKind.LLM_CALL, "https"), (2, StepKind.TOOL_CALL, "tool")):
        writer.request(a_request(index, kind=kind, head=replace(HEAD, scheme=scheme)), ASKED)
        writer.response(index, an_answer(2), b"{}")
    writer.end(ended=1_700_000_008.0, exit_code=0, redactions=0, remarks=())
    ran = rewind("export", "mixed", "-o", "x.har", "--json")
    assert "(1 step of 2, " in ran.talk
    assert "step 2 did not go over HTTP" in ran.talk
    assert ran.json()["without_form"] == [2]
    ran = rewind("export", "mixed", "-o", "y.har", "--steps", "2")
    assert (ran.code, "No step of 9b2c0d1e went over HTTP" in ran.talk) == (2, True)
