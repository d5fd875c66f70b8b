"""What an import does not know is not made up: no time, no duration, no program."""

import json
from pathlib import Path

from unit.cli.shelf import Rewind


def cassette(folder: Path, name: str, system: str, says: str) -> Path:
    """Two calls with a tool between them, as vcrpy records them: no word of when, or how long."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"order": "8821"}}
    user = {"role": "user", "content": "Refund me."}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "It is open."}]}
    calls = [
        ([user], [use]),
        ([user, {"role": "assistant", "content": [use]}, result], [{"type": "text", "text": says}]),
    ]
    interactions = []
    for messages, content in calls:
        asked = {"model": "claude-sonnet-4-6", "max_tokens": 100, "system": system, "messages": messages}
        answer = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-6",
            "content": content,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        interactions.append(
            {
                "request": {
                    "method": "POST",
                    "uri": "https://api.anthropic.com/v1/messages",
                    "body": json.dumps(asked),
                    "headers": {"content-type": ["application/json"]},
                },
                "response": {
                    "status": {"code": 200, "message": "OK"},
                    "headers": {"content-type": ["application/json"]},
                    "body": {"string": json.dumps(answer)},
                },
            }
        )
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps({"version": 1, "interactions": interactions}))
    return path


def test_an_import_without_times_has_none_anywhere(rewind: Rewind, tmp_path: Path) -> None:
    for name, system, says in (
        ("other", "You judge. Be harsh.", "No money is given."),
        ("good", "Be kind.", "It is refunded: 189 euros."),
        ("bad", "You judge. Be harsh.", "It is refused."),
    ):
        assert rewind("import", str(cassette(tmp_path, name, system, says))).code == 0
    for command in (("list",), ("inspect", "good"), ("bisect", "good", "bad"), ("diff", "good", "bad")):
        assert "2000-01-01" not in rewind(*command).text, command
    assert rewind("bisect", "good", "bad", "--json").json()["causes"][0]["since"] is None
    assert {one["started"] for one in rewind("list", "--json").json()["sessions"]} == {None}
    assert rewind("stats", "--json").json()["total"]["ms_p50"] is None
    (call,) = rewind("inspect", "good", "--json").json()["outline"]["tool_calls"]
    assert call["ms"] is None
