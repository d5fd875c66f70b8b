"""Parameters that say what would hold anyway, or nothing: they differ, and change no answer."""

from rewind.compare.delta import Difference, FieldPlace

_DEFAULTS = {
    "frequency_penalty": {"0"},
    "logprobs": {"false"},
    "n": {"1"},
    "parallel_tool_calls": {"true"},
    "presence_penalty": {"0"},
    "service_tier": {'"auto"', '"default"'},
    "store": {"true", "false"},
    "temperature": {"1"},
    "text": {'{"format":{"type":"text"}}'},
    "tool_choice": {'"auto"', '{"type":"auto"}'},
    "top_logprobs": {"0"},
    "top_p": {"1"},
    "truncation": {'"disabled"'},
}
"""Values that providers take where nothing is said."""
_WITHOUT_EFFECT = frozenset({"metadata", "prompt_cache_key", "safety_identifier", "service_tier", "store", "user"})
"""What is for the provider's books: no model reads it."""
_NOTHING = frozenset({"null", "[]", "{}", '""', "false"})


def is_idle(difference: Difference) -> bool:
    """Whether a parameter says in both runs what would hold anyway."""
    if not isinstance(difference.place, FieldPlace):
        return False
    name, inner = difference.place.name, len(difference.place.path) > 1
    if name in _WITHOUT_EFFECT:
        return True
    defaults = _NOTHING | (set() if inner else _DEFAULTS.get(name, set()))
    return all(
        one is None or one in defaults or one.removesuffix(".0") in defaults
        for one in (difference.before, difference.after)
    )
