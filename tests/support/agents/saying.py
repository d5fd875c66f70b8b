"""How every agent here speaks: one JSON line per answer, so that two runs can be compared call by call."""

import json
from typing import Any


def say(**fields: Any) -> None:
    print(json.dumps(fields, sort_keys=True), flush=True)
