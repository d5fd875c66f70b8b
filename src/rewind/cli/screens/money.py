"""US dollars as people read them: unknown is a dash, never a zero."""

UNKNOWN = "—"
SOME_UNKNOWN = "+"
"""Stands behind a sum that some calls are missing from, because their price is not known."""


def dollars(usd: float | None, unpriced: int = 0) -> str:
    """``$0.034``; ``—`` for what is not known; ``$0.034+`` where some calls could not be priced."""
    if usd is None or (unpriced and not usd):
        return UNKNOWN
    return amount(usd) + (SOME_UNKNOWN if unpriced else "")


def amount(usd: float) -> str:
    """With as many digits as tell something: cents from a dollar on, tenths of a cent, or the first two that count."""
    if usd == 0:
        return "$0"
    if usd >= 1:
        return f"${usd:,.2f}"
    if usd >= 0.01:
        return f"${usd:.3f}"
    return f"${usd:.2g}" if usd >= 0.0001 else "<$0.0001"
