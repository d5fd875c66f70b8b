"""A run of this process that can be looked at while it goes on."""

import os
import shutil
from functools import cached_property
from pathlib import Path

from rewind.inprocess.run import InProcessRun
from rewind.inprocess.tool_calls import within_tools
from rewind.model.step import Step, StepKind
from rewind.pytest_plugin.cassette_update import Reel
from rewind.pytest_plugin.saying import miss_text
from rewind.store.journal.reader import FolderReader

_TOLD = (StepKind.NOTE, StepKind.ERROR)
"""What the agent told, and need not tell again."""


class TestedRun(InProcessRun):
    """What a test may ask of its run at any moment."""

    __test__ = False  # a name that pytest would otherwise collect where it is imported

    def misses_so_far(self) -> list[str]:
        """Why calls were not answered, as a test tells it."""
        return [miss_text(note) for note in self._tally.misses]

    def on_tape(self) -> list[Step]:
        """What the test could have asked for: no notes, and not what a tool had asked for that did not run now."""
        if self._tape is None:
            return []
        steps = self._tape.steps()
        hidden = within_tools(steps, self._tally.served)
        return [
            step
            for step in steps
            if step.request.kind not in _TOLD and (self._tape.played(step.index) or step.index not in hidden)
        ]

    def unplayed(self) -> list[Step]:
        return [step for step in self.on_tape() if self._tape and not self._tape.played(step.index)]

    def so_far(self) -> Reel:
        """All that was asked and answered until now, and is on the disk when this returns."""
        self.flush()
        return Reel(recording=self._reader.recording(), blob=self._reader.blob)

    def forget(self) -> None:
        """Nothing of it stays in the store."""
        self._reader.close()
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    os.unlink(entry.path)  # noqa: PTH108  two files after every test: every call counts
            self._folder.rmdir()
        except OSError:  # something else is in there
            shutil.rmtree(self._folder, ignore_errors=True)

    @cached_property
    def _reader(self) -> FolderReader:
        return FolderReader(self._folder)

    @property
    def _folder(self) -> Path:
        assert self._writer is not None, "a test's run is always written"
        return self._writer.folder
