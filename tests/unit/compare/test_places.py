"""Where something differs: the labels that people and programs see."""

import pytest

from rewind.compare.delta import CallPlace, ChoicePlace, FieldPlace, NamedPlace, ToolPlace
from rewind.conversation.context import ContextPlace


@pytest.mark.parametrize(
    ("place", "label"),
    [
        (NamedPlace.SYSTEM, "system"),
        (NamedPlace.SNAPSHOT, "model that answered"),
        (FieldPlace(("temperature",)), "temperature"),
        (FieldPlace(("response_format", "schema", 0)), "response_format.schema[0]"),
        (FieldPlace(()), "parameters"),
        (ToolPlace("refund"), "tools.refund"),
        (ToolPlace("refund", ("description",)), "tools.refund.description"),
        (ToolPlace("refund", ("schema", "required", 1)), "tools.refund.schema.required[1]"),
        (ToolPlace("a.schema", ("schema",)), "tools.a.schema.schema"),
        (CallPlace("refund", 1), "calls refund"),
        (CallPlace("refund", 2, ("order", "id")), "calls refund (2).order.id"),
        (CallPlace("refund", 1, (0,)), "calls refund[0]"),
        (CallPlace("refund", 1, ("a b",)), 'calls refund["a b"]'),
        (ChoicePlace(2), "choice 2"),
        (ContextPlace(3), "messages[3]"),
        (ContextPlace(3, 1), "messages[3].parts[1]"),
        (ContextPlace(None), "held by the provider"),
        (ContextPlace(None, 0), "held by the provider.parts[0]"),
    ],
)
def test_a_place_has_a_label(place: object, label: str) -> None:
    assert str(place) == label
