"""PTX to cubin with nvJitLink by way of cuda-python: neither needs a GPU or a driver, both come as wheels."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from lamina.backends.target import CUDA_ARCHITECTURES, TargetError
from lamina.records import Record
from lamina.runtime.gpus import INSTALL, CudaUnavailable


class Resources(Record):
    """What one thread or block of a kernel takes, as the assembler says."""

    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int
    serialized: bool = False
    """Whether products of warpgroups can't overlap: for want of registers, or for a call."""


class Cubin(Record):
    """Machine code for one GPU architecture, with what each kernel in it takes."""

    code: bytes
    kernels: dict[str, Resources]


def assemble(ptx: str, arch: str) -> Cubin:
    """The cubin of a PTX module for an architecture such as "sm_90a".

    Raises CudaUnavailable where nvJitLink is not installed, TargetError for an architecture that is
    none of `CUDA_ARCHITECTURES`, ValueError for PTX or an architecture that nvJitLink refuses.
    """
    if arch not in CUDA_ARCHITECTURES:  # nvJitLink may end the process
        raise TargetError(f"unknown GPU architecture {arch!r}")
    nvjitlink = _nvjitlink()
    options = [f"-arch={arch}", "-O3", "-verbose"]
    try:
        handle = nvjitlink.create(len(options), options)
    except nvjitlink.nvJitLinkError as error:
        raise ValueError(f"nvJitLink does not know the architecture {arch} ({error})") from None
    try:
        data = ptx.encode() + b"\0"
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "lamina")
        nvjitlink.complete(handle)
        code = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, code)
        log = _text(nvjitlink.get_info_log_size, nvjitlink.get_info_log, handle)
        return Cubin(bytes(code), resources(log))
    except nvjitlink.nvJitLinkError as error:
        log = _text(nvjitlink.get_error_log_size, nvjitlink.get_error_log, handle)
        raise ValueError(f"the assembler refuses the generated PTX ({error}): {log}") from None
    finally:
        nvjitlink.destroy(handle)


_ENTRY = re.compile(
    r"Compiling entry function '(?P<name>[^']+)'.*?(?P<stack>\d+) bytes stack frame, "
    r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads.*?"
    r"Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)
_SERIALIZED = re.compile(r"wgmma.mma_async instructions are serialized[^\n]* the function '([^']+)'")


def resources(log: str) -> dict[str, Resources]:
    """What the assembler's log says of each kernel."""
    found, serialized = {}, set(_SERIALIZED.findall(log))
    for match in _ENTRY.finditer(log):
        shared = re.search(r"(\d+) bytes smem", match["rest"])
        found[match["name"]] = Resources(
            int(match["registers"]), int(shared[1]) if shared else 0, int(match["stack"]),
            int(match["stores"]), int(match["loads"]), match["name"] in serialized,
        )  # fmt: skip
    return found


def _text(size_of: Callable[[int], int], get: Callable[[int, bytearray], None], handle: int) -> str:
    text = bytearray(size_of(handle))
    if text:
        get(handle, text)
    return text.rstrip(b"\0").decode(errors="replace")


@functools.cache
def _nvjitlink() -> Any:
    """cuda-python's binding of nvJitLink, with the library found."""
    try:
        from cuda.bindings import nvjitlink

        nvjitlink.version()  # which looks for the library
    except (ImportError, RuntimeError) as error:
        raise CudaUnavailable(
            f"making cubins needs cuda-bindings and nvJitLink, which are not installed here: {INSTALL}"
            f" ({str(error).splitlines()[0]})"
        ) from None
    return nvjitlink
