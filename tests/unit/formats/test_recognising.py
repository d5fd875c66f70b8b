"""Which file is which."""

import pytest

from rewind.formats.recognise import FileKind, kind_of


@pytest.mark.parametrize(
    ("beginning", "kind"),
    [
        (b"interactions:\n- request:\n", FileKind.VCR),
        (b"---\nhttp_interactions:\n- request:\n", FileKind.VCR),
        (b"# by hand\nversion: 1\ninteractions:\n", FileKind.VCR),
        (b"- request:\n    body: null\n", FileKind.VCR),
        (b'{\n    "version": 1,\n    "interactions": [\n', FileKind.VCR),
        (b'[{"request": {"method": "GET"}, "response": {}}]', FileKind.VCR),
        (b'{"interactions": [{"request": {"body": "{\\"log\\": {}}"}}]}\n', FileKind.VCR),
        (b'{"log":{"version":"1.2"}}', FileKind.HAR),
        (b'\xef\xbb\xbf{\n  "log" : {\n    "entries": [ {"x": "interactions:"} ]', FileKind.HAR),
        (b"1234:9:websocket;0:~4:type;4:http;}", FileKind.FLOWS),
        (b"\x28\xb5\x2f\xfd\x04\x00", FileKind.CASSETTE),
        (b'{"rewind_cassette": 1, "steps": 2}\n{\n', FileKind.CASSETTE),
        (b'{"kind":"llm_call","ts":1.5,"run":"a"}\n', FileKind.TRACE),
    ],
)
@pytest.mark.parametrize("name", ["file", "file.txt", "file.har", "file.rw", "file.yaml"])
def test_what_a_file_begins_with_tells_more_than_its_ending(beginning: bytes, kind: FileKind, name: str) -> None:
    assert kind_of(beginning, name) is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.rw", FileKind.CASSETTE),
        ("a.RW.ZST", FileKind.CASSETTE),
        ("a.jsonl", FileKind.TRACE),
        ("a.yml", FileKind.VCR),
        ("a.har", FileKind.HAR),
        ("a.flow", FileKind.FLOWS),
        ("a.json", None),
        ("a.txt", None),
        ("rw", None),
    ],
)
@pytest.mark.parametrize("beginning", [b"", b"\0\1\2", b"{", b"words"])
def test_where_the_content_says_nothing_the_ending_decides(beginning: bytes, name: str, kind: FileKind | None) -> None:
    assert kind_of(beginning, name) is kind
