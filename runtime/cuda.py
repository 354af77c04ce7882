"""Programs for GPUs: loaded where there is one, and kept everywhere."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lamina.runtime import _runtime, gpus, processes
from lamina.runtime.artifact import Artifact

CONSTANTS = "constants.bin"
"""The object of an artifact that holds its constants' bytes."""


def missing() -> str:
    """Why no program can run on a GPU here; empty where one can."""
    try:
        return "" if gpus.device_count() else "the NVIDIA driver finds no GPU on this machine"
    except RuntimeError as error:
        return str(error)


def gpus_shown() -> int:
    """How many GPUs the driver shows, 0 where none can be used."""
    try:
        _runtime.open_cuda_driver()  # which says so at once, before anything is imported
        return gpus.device_count()
    except RuntimeError:
        return 0


def load_on(
    artifact: Artifact,
    device: int,
    spec: Callable[[dict[str, Any]], Any],
    seconds: float,
    callbacks: Sequence[Any] = (),
    member: Member | None = None,
) -> _runtime.Executable:
    """The artifact as a callable on arrays, on a GPU. `spec` reads what the manifest says of an
    array, `callbacks` are as in `load`. `member`: the GPUs that run it together, and which of them this is.

    Raises RuntimeError naming the driver call and the kernel that could not be loaded, MemoryError
    where its constants do not fit.
    """
    manifest = artifact.manifest
    _check_runs_on(manifest, device)
    choices = _Choices(device)
    kernels = [
        {
            **described,
            "symbol": symbol,
            "cubin": artifact.objects[f"{symbol}.cubin"],
            "ptx": artifact.objects[f"{symbol}.ptx"] + b"\0",
            "choose": choices.of(symbol, described),
        }
        for symbol, described in manifest["device_kernels"].items()
    ]
    program, timings = _runtime.device_program(
        device,
        manifest["name"],
        kernels,
        manifest["launch_plan"],
        artifact.objects.get(CONSTANTS, b""),
        manifest["arena_bytes"],
        manifest["scratch"],
        _flag("LAMINA_CUDA_SYNC", False),
        _flag("LAMINA_CUDA_GRAPHS", True),
        choices.path,
        None if member is None else member.clique,
        0 if member is None else member.position,
    )
    choices.keep(timings)
    outputs = manifest["outputs"]
    return _runtime.Executable(
        name=manifest["name"],
        entry=0,
        inputs=[spec(value) for value in manifest["inputs"]],
        outputs=[spec(value) for value in outputs],
        aliases=[value.get("alias_of") for value in outputs],
        arena_bytes=manifest["arena_bytes"],
        seconds=seconds,
        loops_for_long=False,
        code=None,
        manifest=manifest,
        callbacks=callbacks,
        device_program=program,
    )


class Member(NamedTuple):
    """One of the GPUs that run programs together: its position among them, and its number here."""

    clique: _runtime.Clique
    position: int
    number: int


def members_of_clique(gpus: Sequence[int]) -> list[Member]:
    """The GPUs of a mesh that are of this process, as those that run programs together; all processes that have
    some call it.

    Raises RuntimeError where NCCL is not installed, or they can't reach each other.
    """
    together = processes.current()
    owners = [together.of_gpu(gpu) for gpu in gpus]
    here = [position for position, owner in enumerate(owners) if owner == together.rank]
    numbers = [together.number_of_gpu(gpus[position]) for position in here]
    key = (_runtime.cuda_generation(), together, *gpus)
    if key not in _cliques:
        path, id_ = _nccl(), b""
        if len(here) < len(gpus):
            if set(owners) != set(range(together.size)):
                raise RuntimeError(
                    f"a mesh of GPUs of several processes has some of each process's: {list(gpus)} are those of "
                    f"{sorted(set(owners))}, of {together.size} processes"
                )
            first = owners[0] == together.rank
            id_ = processes.tell_all("NCCL's start", _runtime.nccl_unique_id(path) if first else None)[owners[0]]
        _cliques[key] = _runtime.clique(path, len(gpus), here, numbers, id_)
    return [Member(_cliques[key], position, number) for position, number in zip(here, numbers, strict=True)]


_cliques: dict[Any, _runtime.Clique] = {}


class _Choices:
    """Who does a product where cuBLASLt could: what the kernel's description says, or what was measured
    on such a GPU before."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.path = ""

    def of(self, symbol: str, described: dict[str, Any]) -> str:
        """`kernel`, `library`, or `measure`, for a kernel."""
        import json

        wanted = described["library"]["choose"] if "library" in described else "kernel"
        if wanted == "kernel":
            return wanted
        self.path = self.path or _cublaslt()
        if not _runtime.cublaslt_version(self.path):
            return "kernel"
        from lamina.runtime.store import default_store

        store = default_store()
        known = store.get(_KIND, self._key(symbol)) if store and wanted == "measure" else None
        try:
            found = json.loads(known)["choose"] if known else wanted
        except (ValueError, TypeError, KeyError, RecursionError):  # it is measured again
            return wanted
        return found if found in ("kernel", "library") else wanted

    def keep(self, timings: dict[str, tuple[float, float]]) -> None:
        """Keep what was measured for the next time."""
        import json

        from lamina.runtime.store import default_store

        store = default_store()
        for symbol, (kernel, library) in timings.items():
            choose = "kernel" if kernel <= library else "library"
            entry = {"choose": choose, "kernel_ms": kernel, "library_ms": library}
            if store is not None:
                store.put(_KIND, self._key(symbol), json.dumps(entry).encode())

    def _key(self, symbol: str) -> str:
        import hashlib

        name, capability = gpus.name(self.device), gpus.capability(self.device)
        of = (symbol, name, capability, _runtime.cublaslt_version(self.path))
        return hashlib.blake2b(repr(of).encode(), digest_size=16).hexdigest()


_KIND = "products"


@functools.cache
def _cublaslt() -> str:
    """The file of cuBLASLt that a wheel, a toolkit or the system has; else the name that a driver's
    folder may have it by."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError:
        return "libcublasLt.so.13"
    try:
        return load_nvidia_dynamic_lib("cublasLt").abs_path or "libcublasLt.so.13"
    except RuntimeError:  # it is nowhere
        return "libcublasLt.so.13"


@functools.cache
def _nccl() -> str:
    """The file of NCCL that its wheel has; else the name that the system's loader may know it by."""
    from importlib.util import find_spec

    try:
        folders = getattr(find_spec("nvidia.nccl"), "submodule_search_locations", None) or ()
    except ModuleNotFoundError:  # no package of NVIDIA's
        folders = ()
    files = (os.path.join(folder, "lib", _NCCL) for folder in folders)
    return next(filter(os.path.exists, files), _NCCL)


_NCCL = "libnccl.so.2"


def _check_runs_on(manifest: dict[str, Any], device: int) -> None:
    arch = manifest["target"]["cpu"]
    digits = arch.removeprefix("sm_").rstrip("a")
    wanted, there = (int(digits[:-1]), int(digits[-1])), gpus.capability(device)
    if there < wanted or (arch.endswith("a") and there != wanted):
        raise RuntimeError(
            f"{manifest['name']} is compiled for {arch}, and cuda:{device} ({gpus.name(device)}) has "
            f"compute capability {there[0]}.{there[1]}: compile it for 'cuda:sm_{there[0]}{there[1]}'"
        )


def _flag(variable: str, default: bool) -> bool:
    text = os.environ.get(variable, "").lower()
    return default if not text else text not in ("0", "false", "off", "no")


def check_runs(artifact: Artifact) -> None:
    """Raises RuntimeError that says what is missing to run a program for a GPU."""
    why = missing()
    if why:
        raise RuntimeError(
            f"{artifact.manifest['name']} can't be run: {why}. The program is there: "
            "compiled.artifact.objects holds its PTX and cubins"
        )
