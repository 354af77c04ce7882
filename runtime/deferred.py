"""Programs that are loaded when they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.runtime import _runtime
from lamina.runtime.artifact import Artifact


def is_for_gpu(artifact: Artifact) -> bool:
    """Whether a program was compiled for a GPU."""
    return artifact.manifest.get("target", {}).get("kind") == "cuda"


class DeferredProgram:
    """An artifact that is loaded when it is called: for a GPU, onto this process's first, or for a processor
    that this machine does not have, where that fails."""

    def __init__(self, artifact: Artifact, load: Callable[[], _runtime.Executable]) -> None:
        self.artifact = artifact
        self._load = load

    @property
    def on_gpu(self) -> bool:
        """Whether it is for a GPU."""
        return is_for_gpu(self.artifact)

    def executable(self) -> _runtime.Executable:
        """The loaded program. Raises LoadError, or RuntimeError for a GPU, that says what is missing
        to run it."""
        return self._load()

    def __call__(self, args: Any) -> Any:
        return self.executable()(args)
