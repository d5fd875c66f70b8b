"""The environment of a test: what it is given for the time of its run."""

import os
from collections.abc import Mapping


class Variables:
    """Puts variables into this process's environment, and takes them back."""

    def __init__(self) -> None:
        self._before: dict[str, str | None] = {}

    def lay(self, variables: Mapping[str, str]) -> None:
        """In place of what is there."""
        for name, value in variables.items():
            self._before.setdefault(name, os.environ.get(name))
            os.environ[name] = value

    def lend(self, variables: Mapping[str, str]) -> None:
        """Where there is none."""
        self.lay({name: value for name, value in variables.items() if name not in os.environ})

    def take_back(self) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before.clear()
