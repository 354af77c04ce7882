"""Programs for GPUs: loaded where there is one, and kept everywhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from lamina.runtime import _runtime
from lamina.runtime.artifact import Artifact

CONSTANTS = "constants.bin"
"""The object of an artifact that holds its constants' bytes."""


def device_count() -> int:
    """How many GPUs there are.

    Raises RuntimeError where there can be none: the text says what is missing and what to install.
    """
    return _runtime.cuda_device_count()


def missing() -> str:
    """Why no program can run on a GPU here; empty where one can."""
    try:
        return "" if device_count() else "the NVIDIA driver finds no GPU on this machine"
    except RuntimeError as error:
        return str(error)


def load_on(
    artifact: Artifact, device: int, spec: Callable[[dict[str, Any]], Any], seconds: float
) -> _runtime.Executable:
    """The artifact as a callable on arrays, on a GPU. `spec` reads what the manifest says of an
    array.

    Raises RuntimeError naming the driver call and the kernel that could not be loaded, MemoryError
    where its constants do not fit.
    """
    manifest = artifact.manifest
    _check_runs_on(manifest, device)
    kernels = [
        {
            "symbol": symbol,
            "cubin": artifact.objects[f"{symbol}.cubin"],
            "ptx": artifact.objects[f"{symbol}.ptx"] + b"\0",
            "launches": described["launches"],
        }
        for symbol, described in manifest["device_kernels"].items()
    ]
    program = _runtime.device_program(
        device,
        manifest["name"],
        kernels,
        manifest["launch_plan"],
        artifact.objects.get(CONSTANTS, b""),
        manifest["arena_bytes"],
        manifest["scratch"],
        _flag("LAMINA_CUDA_SYNC", False),
        _flag("LAMINA_CUDA_GRAPHS", True),
    )
    outputs = manifest["outputs"]
    return _runtime.Executable(
        name=manifest["name"],
        entry=0,
        inputs=[spec(value) for value in manifest["inputs"]],
        outputs=[spec(value) for value in outputs],
        aliases=[value.get("alias_of") for value in outputs],
        arena_bytes=manifest["arena_bytes"],
        seconds=seconds,
        code=None,
        manifest=manifest,
        device_program=program,
    )


def _check_runs_on(manifest: dict[str, Any], device: int) -> None:
    found = _runtime.cuda_device(device)
    arch = manifest["target"]["cpu"]
    digits = arch.removeprefix("sm_").rstrip("a")
    wanted, there = (int(digits[:-1]), int(digits[-1])), found["capability"]
    if there < wanted or (arch.endswith("a") and there != wanted):
        raise RuntimeError(
            f"{manifest['name']} is compiled for {arch}, and cuda:{device} ({found['name']}) has "
            f"compute capability {there[0]}.{there[1]}: compile it for 'cuda:sm_{there[0]}{there[1]}'"
        )


def _flag(variable: str, default: bool) -> bool:
    text = os.environ.get(variable, "").lower()
    return default if not text else text not in ("0", "false", "off", "no")


class CudaProgram:
    """An artifact for a GPU that is loaded when it is called, onto the first one."""

    def __init__(self, artifact: Artifact, load: Callable[[int], _runtime.Executable]) -> None:
        self.artifact = artifact
        self._load = load

    def executable(self) -> _runtime.Executable:
        """The loaded program. Raises RuntimeError that says what is missing to run it."""
        why = missing()
        if why:
            raise RuntimeError(
                f"{self.artifact.manifest['name']} can't be run: {why}. The program is there: "
                "compiled.artifact.objects holds its PTX and cubins"
            )
        return self._load(0)

    def __call__(self, args: Any) -> Any:
        return self.executable()(args)
