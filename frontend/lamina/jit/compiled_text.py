"""Stage texts of a program that came from the disk store: made again from its StableHLO on demand."""

from __future__ import annotations

from typing import Any


class StoredCompilation:
    """What compile_module gives, for an artifact that was already there."""

    from_cache = True

    def __init__(self, artifact: Any) -> None:
        self.artifact = artifact
        self._again: Any = None

    def text(self, stage: str) -> str:
        """The program at a stage; the first call runs the passes again."""
        if self._again is None:
            from lamina.backends.compile import Compilation

            self._again = Compilation.of_artifact(self.artifact)
        return self._again.text(stage)
