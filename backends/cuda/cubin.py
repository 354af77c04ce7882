"""PTX to cubin with nvJitLink, which needs neither a GPU nor a driver; it comes as a wheel."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

from lamina.passes.records import Record

_PTX = 2  # nvJitLinkInputType
_INSTALL = "pip install 'lamina[cuda]'"


class CudaUnavailable(RuntimeError):
    """Something that CUDA needs is not on this machine; the text says what, and what to do."""


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

    Raises CudaUnavailable where nvJitLink is not installed, ValueError for PTX it refuses.
    """
    library = _library()
    options = [f"-arch={arch}".encode(), b"-O3", b"-verbose"]
    handle = ctypes.c_void_p()
    status = library.nvJitLinkCreate(
        ctypes.byref(handle), len(options), (ctypes.c_char_p * len(options))(*options)
    )
    if status:
        raise ValueError(f"nvJitLink does not know the architecture {arch} (error {status})")
    try:
        data = ptx.encode() + b"\0"
        status = library.nvJitLinkAddData(handle, _PTX, data, len(data), b"lamina") or (
            library.nvJitLinkComplete(handle)
        )
        if status:
            log = _text(library.nvJitLinkGetErrorLogSize, library.nvJitLinkGetErrorLog, handle)
            raise ValueError(f"the assembler refuses the generated PTX (error {status}): {log}")
        size = ctypes.c_size_t()
        library.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        library.nvJitLinkGetLinkedCubin(handle, code)
        log = _text(library.nvJitLinkGetInfoLogSize, library.nvJitLinkGetInfoLog, handle)
        return Cubin(code.raw, resources(log))
    finally:
        library.nvJitLinkDestroy(ctypes.byref(handle))


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


def _text(size_of: Callable[..., int], get: Callable[..., int], handle: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    size_of(handle, ctypes.byref(size))
    if not size.value:
        return ""
    text = ctypes.create_string_buffer(size.value)
    get(handle, text)
    return text.value.decode(errors="replace")


@functools.cache
def _library() -> ctypes.CDLL:
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for path in sorted(Path(folder).glob("*/lib/libnvJitLink.so*"), reverse=True):
            return ctypes.CDLL(str(path))
    raise CudaUnavailable(
        f"making cubins needs nvJitLink, which is not installed here: {_INSTALL}"
    )
