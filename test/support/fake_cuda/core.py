"""cuda.core on the driver made of Python.

cuda-python opens the driver's library, asks it for `cuGetProcAddress` and that for all else, once in a
process. Here the library is a few lines of C, and what it finds are functions that ask the
`FakeDriver` that is installed at the time. When Python ends they go, and cuda.core still calls the driver
(destructors of the main thread give contexts back): what it has are jumps, which by then lead to C.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cuda.pathfinder import LoadedDL

from support.fake_cuda import c_calls as fake_c
from support.fake_cuda.c_calls import INT, PTR, UINT, WORD, pointer, set_int, set_word
from support.fake_cuda.context import primary
from support.fake_cuda.streams import Stream

if TYPE_CHECKING:
    from support.fake_cuda.driver import FakeDriver

CALLS: fake_c.Calls = {}
"""What cuda.core calls and lamina does not."""
_call = functools.partial(fake_c.register, CALLS)
_INVALID_VALUE, _NOT_INITIALIZED, _NOT_FOUND = 1, 3, 500
_ORDINAL, _CONTEXT, _MEMORY_TYPE, _DEVICE_POINTER, _HOST_POINTER, _MANAGED = 9, 1, 2, 3, 4, 8

_call("cuCtxGetStreamPriorityRange", PTR, PTR)(
    lambda self, least, greatest: (set_int(least, 0), set_int(greatest, -5))[0]
)
_call("cuStreamCreateWithPriority", PTR, UINT, INT)(
    lambda self, out, flags, priority: set_word(out, self.handle(Stream()))
)
_call("cuStreamGetCtx", PTR, PTR)(lambda self, stream, out: set_word(out, self.contexts[-1]))
_call("cuDeviceGetMemPool", PTR, INT)(lambda self, out, device: set_word(out, self.handle("pool")))
_call("cuStreamIsCapturing", PTR, PTR)(lambda self, stream, out: set_int(out, 0))
_call("cuMemPoolGetAttribute", PTR, INT, PTR)(lambda self, pool, what, out: set_int(out, 0))


@_call("cuStreamGetCtx_v2", PTR, PTR, PTR)
def _stream_context(self: FakeDriver, stream: int, out: int, green: int) -> None:
    set_word(out, self.contexts[-1])
    set_word(green, 0)


@_call("cuStreamDestroy_v2", PTR)
def _destroy(self: FakeDriver, stream: int) -> None:
    del self.objects[stream]  # what is in it is done all the same


@_call("cuMemAllocFromPoolAsync", PTR, WORD, PTR, PTR)
def _allocate(self: FakeDriver, out: int, size: int, pool: int, stream: int) -> int | None:
    return self.calls_by_name["cuMemAllocAsync"](out, size, stream)


@_call("cuMemcpyAsync", WORD, WORD, WORD, PTR)
def _copy(self: FakeDriver, target: int, source: int, size: int, stream: int) -> None:
    self.objects[stream].put(self.copier(target, source, size))


@_call("cuPointerGetAttribute", PTR, INT, WORD)
def _about_pointer(self: FakeDriver, out: int, attribute: int, address: int) -> int | None:
    there = any(base <= address <= base + len(block) for base, block in self.blocks.items())
    if attribute in (_CONTEXT, _DEVICE_POINTER, _HOST_POINTER):
        set_word(out, {_CONTEXT: primary(0), _DEVICE_POINTER: address}.get(attribute, 0) if there else 0)
    elif attribute in (_MEMORY_TYPE, _MANAGED, _ORDINAL):
        set_int(out, {_MEMORY_TYPE: 2, _MANAGED: 0, _ORDINAL: 0}[attribute] if there else 0)
    else:
        return _INVALID_VALUE
    return None if there else _INVALID_VALUE


@_call("cuPointerGetAttributes", UINT, PTR, PTR, WORD)
def _all_about_pointer(self: FakeDriver, count: int, what: int, out: int, address: int) -> None:
    for i in range(count):
        _about_pointer(self, pointer(out, i), ctypes.c_int.from_address(what + 4 * i).value, address)


# ---- the library -------------------------------------------------------------------------------
_MOST_CALLS = 512
_SOURCE = """
__attribute__((visibility("hidden"))) void *targets[MOST];
__attribute__((visibility("hidden"))) extern char jumps[];
static int count;
__asm__(".text\\n.balign 16\\njumps:\\n.set number, 0\\n.rept MOST\\n.balign 16\\n"
        "jmp *targets+8*number(%rip)\\n.set number, number + 1\\n.endr\\n");
void *jump_to(void *target) { targets[count] = target; return jumps + 16 * count++; }
static int gone(void) { return 4; } /* CUDA_ERROR_DEINITIALIZED */
void leave(void) { for (int i = 0; i < count; i++) targets[i] = gone; }
int (*find)(const char *, void **, int, unsigned long long, int *);
int cuGetProcAddress_v2(const char *symbol, void **out, int version, unsigned long long flags,
                        int *status) { return find(symbol, out, version, flags, status); }
""".replace("MOST", str(_MOST_CALLS))
_Find = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, PTR, INT, WORD, PTR)
_NEWER = {("cuCtxGetDevice", 13000), ("cuStreamGetCtx", 12050)}
"""Calls of which two versions are asked for by one name, and from which version on the second is meant."""
_installed: list[FakeDriver] = []
_kept: list[Any] = []


@functools.cache
def _library() -> ctypes.CDLL:
    """The library with one call, compiled; the function behind it is `_find`."""
    compiler = shutil.which("cc")
    assert compiler, "the stand-in for libcuda.so.1 is compiled by cc: on Debian, `apt install gcc`"
    folder = Path(tempfile.mkdtemp(prefix="fake-driver-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source, made = folder / "driver.c", folder / "driver.so"
    source.write_text(_SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, source], check=True)
    library = ctypes.CDLL(str(made))
    library.jump_to.argtypes, library.jump_to.restype = [PTR], PTR
    atexit.register(library.leave)
    PTR.in_dll(library, "find").value = _jump_to(library, _Find(_find))
    return library


def _jump_to(library: ctypes.CDLL, callback: Any) -> int:
    """The address of a function in C that goes on to one in Python as long as that is there."""
    _kept.append(callback)
    assert len(_kept) <= _MOST_CALLS
    return library.jump_to(ctypes.cast(callback, PTR))


def _find(symbol: bytes, out: int, version: int, flags: int, status: int | None) -> int:
    address = _address(symbol.decode(), version)
    set_word(out, address)
    if status:
        set_int(status, 0 if address else 1)
    return 0 if address else _NOT_FOUND


@functools.cache
def _address(symbol: str, version: int) -> int:
    from support.fake_cuda import driver as fake_driver

    known = fake_driver.CALLS | CALLS
    names = (symbol, f"{symbol}_v2")
    found = next((n for n in names[(symbol, version) in _NEWER :] if n in known), None)
    if symbol == "cuGetProcAddress":
        callback: Any = _Find(_find)
    elif found is None:
        return 0
    else:
        callback = ctypes.CFUNCTYPE(ctypes.c_int, *known[found][0])(_forwarded(found))
    return _jump_to(_library(), callback)


def _forwarded(symbol: str) -> Callable[..., int]:
    def call(*args: Any) -> int:
        return _installed[-1].calls_by_name[symbol](*args) if _installed else _NOT_INITIALIZED

    return call


@contextmanager
def installed(driver: FakeDriver) -> Iterator[None]:
    """cuda.core uses this driver, and forgets before and after what it knows of devices."""
    loader = importlib.import_module("cuda.pathfinder._dynamic_libs.load_nvidia_dynamic_lib")
    found = loader._load_driver_lib_no_cache

    def load(library: Any) -> LoadedDL:
        if library.name != "cuda":
            return found(library)
        return LoadedDL("fake", False, _library()._handle, "fake")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "_load_driver_lib_no_cache", load)
        _installed.append(driver)
        _forget()
        try:
            yield
        finally:
            _installed.pop()
            _forget()


def _forget() -> None:
    from cuda.core import _device

    _device._tls.__dict__.pop("devices", None)
