"""Names of things. Hashes name their rule, so that a changed rule is seen and not guessed."""

import hashlib
from typing import NewType

SessionId = NewType("SessionId", str)
"""Eight hexadecimal digits."""

BlobId = NewType("BlobId", str)
"""``sha256:`` and 64 hexadecimal digits: the name of immutable bytes."""

MatchKey = NewType("MatchKey", str)
"""``rw1:`` and 32 hexadecimal digits: two requests with one key mean the same."""


def blob_id(data: bytes) -> BlobId:
    """The name of these bytes."""
    return BlobId("sha256:" + hashlib.sha256(data).hexdigest())
