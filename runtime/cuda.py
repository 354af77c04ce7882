"""Programs for GPUs as the runtime holds them: made and kept anywhere, run where there is a GPU."""

from __future__ import annotations

import ctypes
from typing import Any, NoReturn

from lamina.runtime.artifact import Artifact


class CudaProgram:
    """An artifact for a GPU in place of a loaded executable."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact

    def __call__(self, *args: Any) -> NoReturn:
        """Raises RuntimeError that says what is missing to run it."""
        raise RuntimeError(
            f"{self.artifact.manifest['name']} can't be run: {missing()}. The program is there: "
            "compiled.artifact.objects holds its PTX and cubins"
        )


def missing() -> str:
    """Why no program can run on a GPU here."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return (
            "there is no NVIDIA driver on this machine (no libcuda.so.1), and this version of "
            "lamina compiles for GPUs but does not launch on them yet"
        )
    return "this version of lamina compiles for GPUs but does not launch on them yet"
