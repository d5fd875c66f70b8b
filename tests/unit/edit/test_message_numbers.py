"""A message has one number: what ``inspect --context`` and ``bisect`` show is what ``fork --set messages[i]`` takes."""

import json

import pytest

from rewind.conversation.context import context_of
from rewind.edit.apply import edited
from rewind.model.message import Role
from rewind.providers.catalogue import identify
from unit.edit.asking import APIS, Api, asked, document, edits

every_api = pytest.mark.parametrize("api", APIS, ids=str)


@every_api
def test_the_number_of_a_message_in_its_context_is_the_number_that_an_edit_takes(api: Api) -> None:
    request = api.request()
    users = [entry for entry in context_of(asked(request)) if entry.what == Role.USER.value]
    assert users
    for entry in users:
        after = edited(request, edits(f"{entry.place}=What else?"))
        assert [one.text for one in context_of(asked(after)) if one.place == entry.place] == ["What else?"]


@every_api
def test_every_entry_stands_where_its_number_says(api: Api) -> None:
    request = api.request()
    patcher = identify(request.head).patcher_for(request.head, document(request))
    turns = patcher.turns(document(request))
    placed = [entry for entry in context_of(asked(request)) if entry.message is not None]
    assert {entry.what for entry in placed} == {"user", "assistant", "tool"}
    for entry in placed:
        assert entry.message is not None and entry.message.index is not None
        alone = patcher.message(turns[entry.message.index])
        by_model = entry.what == "assistant"
        assert (alone.role is Role.ASSISTANT) == by_model
        assert entry.what != "tool" or entry.text in json.dumps(turns[entry.message.index])
