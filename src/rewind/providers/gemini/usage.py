"""How Google Gemini counts tokens: by what was read and written, and each of it by text, sound and picture."""

from typing import Any

from rewind.providers.shared.answer_draft import UsageTable
from rewind.providers.shared.json_fields import count_at, text_at, total

_KINDS = {"text": "TEXT", "audio": "AUDIO", "image": "IMAGE", "video": "VIDEO"}
_DETAILS = {
    "input_{}_tokens": ("promptTokensDetails", "toolUsePromptTokensDetails"),
    "input_{}_tool_tokens": ("toolUsePromptTokensDetails",),
    "cache_{}_read_tokens": ("cacheTokensDetails",),
    "output_{}_tokens": ("candidatesTokensDetails",),
}
USAGE = UsageTable(
    # What was cached is counted inside the prompt; what tools read and what was thought are counted apart.
    input=(("promptTokenCount",), ("toolUsePromptTokenCount",)),
    output=(("candidatesTokenCount",), ("thoughtsTokenCount",)),
    cache_read=(("cachedContentTokenCount",),),
    reasoning=(("thoughtsTokenCount",),),
    more={
        "input_tool_tokens": (("toolUsePromptTokenCount",),),
        **{
            unit.format(kind): tuple((place, modality) for place in places)
            for unit, places in _DETAILS.items()
            for kind, modality in _KINDS.items()
        },
    },
)


def by_modality(usage: Any) -> Any:
    """The usage with each list of details as an object, so that a path leads to every count."""
    if not isinstance(usage, dict):
        return usage
    return {name: _counts(value) if isinstance(value, list) else value for name, value in usage.items()}


def _counts(details: list[Any]) -> dict[str, int | None]:
    counts: dict[str, int | None] = {}
    for detail in details:
        # A document is read as pictures of its pages, and priced as such.
        modality = {"DOCUMENT": "IMAGE"}.get(text_at(detail, "modality"), text_at(detail, "modality"))
        counts[modality] = total(counts.get(modality), count_at(detail, "tokenCount"))
    return counts
