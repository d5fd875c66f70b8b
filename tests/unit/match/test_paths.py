"""The small grammar of paths into a request."""

import pytest

from rewind.errors import UsageError
from rewind.match.paths import Item, Key, Parameter, parse_path, path_text


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("metadata.request_id", (Key("metadata"), Key("request_id"))),
        ("messages[*].id", (Key("messages"), Item(None), Key("id"))),
        ("input[].id", (Key("input"), Item(None), Key("id"))),
        ("messages[0].content[12].text", (Key("messages"), Item(0), Key("content"), Item(12), Key("text"))),
        ("metadata.*", (Key("metadata"), Key(None))),
        ("$.user", (Key("user"),)),
        ("$[*].id", (Item(None), Key("id"))),
        ("[*].id", (Item(None), Key("id"))),
        ('metadata["a.b"]', (Key("metadata"), Key("a.b"))),
        ('["a.b"].c', (Key("a.b"), Key("c"))),
        (" user ", (Key("user"),)),
        ("?page", Parameter("page")),
    ],
)
def test_a_path_is_read_as_written(text: str, path: object) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize("text", ["", " ", ".", "a.", ".a", "a..b", "a[", "a[x]", "a]b", "$", "?", 'a["b]', "a[0]b"])
def test_what_follows_no_grammar_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_path(text)
    assert "messages[*].id" in str(caught.value.hint)


def test_a_place_is_written_in_the_grammar_it_is_read_in() -> None:
    places: list[tuple[str | int, ...]] = [("messages", 3, "content"), ("a.b", "c"), (0, "x"), ("metadata", "*")]
    for place in places:
        path = parse_path(path_text(place))
        assert isinstance(path, tuple)
        assert tuple(part.name if isinstance(part, Key) else part.number for part in path) == place
