"""A driver of NVIDIA's made of Python: what `runtime/src/cuda/driver.h` names, on this host's memory.

Device addresses are no addresses of the process: code that reads one ends at once. Streams are
queues whose work is done when somebody waits for it, as late as the driver may; memory that is freed
is overwritten. Kernels run in the emulator of PTX, as they are assembled, on what their `gpu` stage says that they are
given. `fail` makes a call fail; what a kernel does that a GPU would not forgive is in `faults`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import lamina
from lamina.backends.cuda import program as cuda_program
from lamina.dialects.context import parse
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.runtime import _runtime
from lamina.runtime.executable import forget_devices
from support import ptx
from support.cuda_program import MAP_ELEMENTS, TF32
from support.fake_cuda import c_calls as fake_c
from support.fake_cuda import context as fake_context
from support.fake_cuda import core as fake_core
from support.fake_cuda import graphs as fake_graphs
from support.fake_cuda import memory as fake_memory
from support.fake_cuda import streams as fake_streams
from support.fake_cuda.c_calls import INT, PTR, UINT, pointer, set_int, set_text, set_word
from support.fake_cuda.streams import NotReadyError, Stream

INVALID_VALUE = 1
UNKNOWN, ILLEGAL_ADDRESS, NO_BINARY, INVALID_CONTEXT = 999, 700, 209, 201
LEGACY_STREAM = 1
_NAMES = {1: b"CUDA_ERROR_INVALID_VALUE", 2: b"CUDA_ERROR_OUT_OF_MEMORY",
          201: b"CUDA_ERROR_INVALID_CONTEXT", 209: b"CUDA_ERROR_NO_BINARY_FOR_GPU",
          700: b"CUDA_ERROR_ILLEGAL_ADDRESS", 719: b"CUDA_ERROR_LAUNCH_FAILED", 999: b"CUDA_ERROR_UNKNOWN"}  # fmt: skip
_FIRST_ADDRESS = 1 << 40
_DEADLOCK_SECONDS, _LOOK_SECONDS = 250, 0.01

Work = fake_graphs.Work


class FakeDriver:
    """The calls, by symbol; `version` and `without` make it an older driver."""

    def __init__(
        self,
        *,
        gpus: int = 1,
        memory: int = 1 << 30,
        version: int = 13000,
        capability: tuple[int, int] = (9, 0),
        without: tuple[str, ...] = (),
        libraries: dict[str, Any] | None = None,
        peers: bool = True,
    ) -> None:
        """`libraries`: further calls that are found with the driver's, by symbol. `peers`: GPUs reach each other."""
        self.libraries = libraries or {}
        self.gpus, self.memory, self.version, self.capability = gpus, memory, version, capability
        self.without = without
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)  # some stream has got work that others may wait for
        self.objects: dict[int, Any] = {}
        self.blocks: dict[int, np.ndarray] = {}  # device address -> bytes
        self.owners: dict[int, int] = {}  # device address -> the number of its device
        self.peers = peers
        self.reach: set[tuple[int, int]] = set()  # whose memory which device may use
        self.between: list[tuple[int, int, bool]] = []  # copies: from, to, and whether they went straight
        self.next_address = _FIRST_ADDRESS
        self.next_handle = 16
        self.pinned: dict[int, Any] = {}
        self.maps: dict[int, tuple[Any, ...]] = {}  # by what their bits are here
        self.dynamic_shared: dict[str, int] = {}  # that a function may ask for
        self.kernels: dict[str, dict[str, str]] = {}  # name of a launch -> its module, by stage
        self.conditions: dict[int, int] = {}
        self.calls: list[str] = []
        self.faults: list[BaseException] = []
        self.failures: dict[str, list[int]] = {}
        self.broken = 0  # what a kernel did is said by every call after it
        self.keep: list[Any] = []
        self.of_threads: dict[int, list[int]] = {}  # threads of C have no locals that outlive a call
        self.objects[LEGACY_STREAM] = Stream()
        every = CALLS | fake_core.CALLS | self.libraries
        self.calls_by_name = {name: self._guarded(name, call) for name, (_, call) in every.items()}

    # ---- for tests -------------------------------------------------------------------------------
    def fail(self, symbol: str, code: int = UNKNOWN, after: int = 0) -> None:
        """The call after `after` further ones of this name fails."""
        self.failures.setdefault(symbol, []).extend([0] * after + [code])

    def count(self, symbol: str) -> int:
        return self.calls.count(symbol)

    @property
    def live_bytes(self) -> int:
        return sum(block.size for block in self.blocks.values())

    def drain(self) -> None:
        for thing in list(self.objects.values()):
            if isinstance(thing, Stream):
                thing.reach(thing.issued)

    # ---- plumbing --------------------------------------------------------------------------------
    def table(self) -> dict[str, int]:
        """symbol -> address, for `replace_cuda_driver`."""
        made = {}
        for symbol, (kinds, _) in (CALLS | self.libraries).items():
            if symbol not in self.without:
                result = ctypes.c_void_p if symbol in fake_c.GIVE_TEXT else ctypes.c_int
                callback = ctypes.CFUNCTYPE(result, *kinds)(self.calls_by_name[symbol])
                self.keep.append(callback)
                made[symbol] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        return made

    @property
    def contexts(self) -> list[int]:
        """The contexts of the calling thread, the current one last."""
        return self.of_threads.setdefault(threading.get_ident(), [])

    def _guarded(self, symbol: str, function: Callable[..., int | None]) -> Callable[..., int]:
        needs_context = not symbol.startswith(fake_context.NEED_NONE)

        def call(*args: Any) -> int:
            with self.lock:
                self.calls.append(symbol)
                if needs_context and not self.contexts:
                    return INVALID_CONTEXT
                planned = self.failures.get(symbol)
                if planned and (code := planned.pop(0)):
                    return code
                try:
                    return function(self, *args) or 0
                except BaseException as error:  # C code is below
                    self.faults.append(error)
                    self.broken = ILLEGAL_ADDRESS
                    return self.broken

        return call

    @property
    def device(self) -> int:
        """The number of the device whose context the calling thread has."""
        return fake_context.device_of(self.contexts[-1])

    def wait(self, stream: Stream, place: int) -> None:
        """Until a stream has come so far. What it needs of others' is waited for, but not for ever."""
        end = time.monotonic() + _DEADLOCK_SECONDS
        while True:
            try:
                return stream.reach(place)
            except NotReadyError:
                assert time.monotonic() < end, "a stream waits for what nobody issues"
                self.changed.wait(_LOOK_SECONDS)

    def device_at(self, address: int) -> int:
        """The number of the device that has this memory."""
        return next(self.owners[b] for b, block in self.blocks.items() if b <= address < b + block.size)

    def handle(self, thing: Any) -> int:
        self.next_handle += 16
        self.objects[self.next_handle] = thing
        return self.next_handle

    def at(self, address: int, size: int) -> np.ndarray:
        """The bytes at a device address; they must lie within one allocation."""
        for base, block in self.blocks.items():
            if base <= address and address + size <= base + block.size:
                return block[address - base : address - base + size]
        raise IndexError(f"{size} bytes at {address:#x} are no memory of the device")

    # ---- copies ---------------------------------------------------------------------------------
    def copier(self, target: int, source: int, size: int) -> Work:
        def copy() -> None:
            self.at(target, size)[:] = self.at(source, size).copy()

        return copy

    def filler(self, target: int, element: int, width: int, count: int) -> Work:
        data = np.frombuffer(element.to_bytes(width, "little") * count, np.uint8)

        def fill() -> None:
            self.at(target, width * count)[:] = data

        return fill

    # ---- kernels ---------------------------------------------------------------------------------
    def launcher(
        self, function: Any, grid: tuple[int, ...], parameters: int, shared: int
    ) -> Work:
        """The launch of a function on what its parameters are now."""
        if function == "lamina_set_condition":
            handle, address, size, low, high, outside = (
                ctypes.c_int64.from_address(pointer(parameters, i)).value for i in range(6)
            )
            return lambda: self._decide(handle, address, size, low, high, outside)
        kernel = _kernel(self.kernels[function]["gpu"], function)
        assert grid[:3] == tuple(kernel.attributes["known_grid_size"])
        assert grid[3:] == tuple(kernel.attributes["known_block_size"])
        arguments = kernel.regions[0].blocks[0].arguments
        addresses = []
        for i, value in enumerate(arguments):
            at = pointer(parameters, i)
            if _is_map(value):  # which is given by value
                assert at % 64 == 0 and ctypes.string_at(at + 8, 120) == bytes(120)
            addresses.append(ctypes.c_uint64.from_address(at).value)
        dynamic = "lamina.dynamic_shared_bytes"
        wanted = kernel.attributes[dynamic].value if dynamic in kernel.attributes else 0
        assert shared == wanted <= self.dynamic_shared.get(function, 48 << 10), (shared, wanted)
        return lambda: self._run(function, grid, shared, arguments, addresses)

    def _run(
        self, name: str, grid: tuple[int, ...], shared: int, arguments: Any, addresses: list[int]
    ) -> None:
        given = [
            self.map(*self.maps[address]) if _is_map(value) else ptx.Pointer(self._array(value, address))
            for value, address in zip(arguments, addresses)
        ]
        _program(self.kernels[name]["ptx"]).launch(name, grid[:3], grid[3:], given, shared)

    def _array(self, value: Any, address: int) -> np.ndarray:
        """What a kernel is given for one of its parameters."""
        of = ir.MemRefType(value.type)
        dtype = dtype_of(of)
        size = math.prod(of.shape) * dtype.itemsize
        assert address % 16 == 0
        return (self.at(address, size) if size else np.zeros(0, np.uint8)).view(dtype)

    def map(
        self, type_: int, address: int, sizes: list[int], strides: list[int], box: list[int]
    ) -> ptx.TensorMap:
        """What a tensor map shows."""
        dtype = np.dtype(MAP_ELEMENTS[type_])
        steps = zip(sizes, [dtype.itemsize, *strides], strict=True)
        span = dtype.itemsize + sum((n - 1) * step for n, step in steps)
        data = ptx.Pointer(self.at(address, span))
        return ptx.TensorMap(data, dtype.itemsize, sizes, strides, box, rounds=type_ == TF32)

    def _decide(
        self, handle: int, address: int, size: int, low: int, high: int, outside: int
    ) -> None:
        kind = {1: np.uint8, 4: np.int32, 8: np.int64}[size]
        value = int(self.at(address, size).view(kind)[0])
        self.conditions[handle] = int((low <= value <= high) != bool(outside))


def _is_map(value: Any) -> bool:
    return str(value.type) == "!llvm.ptr"


@functools.lru_cache(256)
def _module(text: str) -> ir.Module:
    return parse(text)


def _kernel(text: str, name: str) -> ir.Operation:
    """The `gpu.func` of this name in a module, which says what the kernel is given."""
    (device,) = [op.operation for op in _module(text).body.operations if op.operation.name == "gpu.module"]
    functions = [op.operation for op in device.regions[0].blocks[0].operations]
    (found,) = [f for f in functions if f.name == "gpu.func" and f.attributes["sym_name"].value == name]
    return found


@functools.lru_cache(256)
def _program(text: str) -> ptx.Program:
    return ptx.Program(text)


# ---- the calls -----------------------------------------------------------------------------------
_CALLS: fake_c.Calls = {}
_call = functools.partial(fake_c.register, _CALLS)

_call("cuInit", UINT)(lambda self, flags: 0)
_call("cuDriverGetVersion", PTR)(lambda self, out: set_int(out, self.version))
_call("cuGetErrorName", INT, PTR)(lambda self, code, out: set_text(out, _NAMES.get(code)))
_call("cuGetErrorString", INT, PTR)(lambda self, code, out: set_text(out, b"as the test wants it"))
_call("cuDeviceGetCount", PTR)(lambda self, out: set_int(out, self.gpus))
_call("cuDeviceGet", PTR, INT)(lambda self, out, number: set_int(out, number))
_call("cuDeviceTotalMem_v2", PTR, INT)(lambda self, out, device: set_word(out, self.memory))
_call("cuModuleLoadData", PTR, PTR)(lambda self, out, image: set_word(out, self.handle("module")))
_call("cuModuleUnload", PTR)(lambda self, module: 0)


@_call("cuFuncSetAttribute", PTR, INT, INT)
def _function_set(self: FakeDriver, function: int, what: int, value: int) -> None:
    assert what == 8 and value <= 227 << 10
    self.dynamic_shared[self.objects[function]] = value


@_call("cuTensorMapEncodeTiled", PTR, INT, UINT, PTR, PTR, PTR, PTR, PTR, INT, INT, INT, INT)
def _tensor_map(
    self: FakeDriver, out: int, type_: int, rank: int, address: int, sizes: int, strides: int,
    box: int, steps: int, interleave: int, swizzle: int, promotion: int, fill: int,
) -> int | None:  # fmt: skip
    """Refuses what the driver's documentation says it does."""
    size = [pointer(sizes, i) for i in range(rank)]
    stride = [pointer(strides, i) for i in range(rank - 1)]
    length, step = (
        [ctypes.c_uint32.from_address(of + 4 * i).value for i in range(rank)] for of in (box, steps)
    )
    bytes_ = {0: 1, 6: 2, 9: 2, 11: 4}[type_]
    right = (
        out % 64 == 0 and 1 <= rank <= 5 and address % 16 == 0 and length[0] * bytes_ == 128
        and all(0 < n <= 1 << 32 for n in size) and all(0 < n <= 256 for n in length)
        and all(n % 16 == 0 and 0 < n < 1 << 40 for n in stride) and step == [1] * rank
        and (interleave, swizzle, fill) == (0, 3, 0) and promotion in (0, 1, 2, 3)
    )  # fmt: skip
    if not right:
        return INVALID_VALUE
    self.next_handle += 16
    self.maps[self.next_handle] = (type_, address, size, stride, length)
    ctypes.memset(out, 0, 128)
    set_word(out, self.next_handle)
    return None


@_call("cuDeviceGetName", PTR, INT, INT)
def _device_name(self: FakeDriver, out: int, length: int, device: int) -> None:
    ctypes.memmove(out, b"Emulated GPU\0", 13)


@_call("cuDeviceGetAttribute", PTR, INT, INT)
def _device_attribute(self: FakeDriver, out: int, what: int, device: int) -> None:
    set_int(out, dict(zip((75, 76), self.capability)).get(what, 1))


@_call("cuModuleGetFunction", PTR, PTR, ctypes.c_char_p)
def _function(self: FakeDriver, out: int, module: int, name: bytes) -> None:
    set_word(out, self.handle(name.decode()))


@_call("cuLaunchKernel", PTR, UINT, UINT, UINT, UINT, UINT, UINT, UINT, PTR, PTR, PTR)
def _launch(self: FakeDriver, function: int, *rest: Any) -> None:
    stream, parameters = self.objects[rest[7]], rest[8]
    work = self.launcher(self.objects[function], rest[:6], parameters, rest[6])

    def run() -> None:
        work()
        stream.milliseconds += 1

    stream.put(run)


CALLS = _CALLS | fake_context.CALLS | fake_memory.CALLS | fake_streams.CALLS | fake_graphs.CALLS
"""All that the driver knows."""


# ---- in tests ------------------------------------------------------------------------------------
_replaced: list[FakeDriver] = []  # callbacks that code may still hold are never freed


@contextlib.contextmanager
def installed(driver: FakeDriver, cache: str | None = None) -> Iterator[FakeDriver]:
    """Programs and arrays use this driver; at the end, kernels must have done nothing forbidden.

    Every program is compiled, unless there is a folder as cache: then `driver.kernels` must know
    those found there.
    """
    compile_kernel = cuda_program.compile_kernel

    def noted(*args: Any, **kwargs: Any) -> Any:
        kernel = compile_kernel(*args, **kwargs)
        for launch in kernel.launches:
            driver.kernels[launch.name] = kernel.texts
        return kernel

    _replaced.append(driver)
    with fake_core.installed(driver), pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_CACHE", "0" if cache is None else "1")
        patch.setenv("LAMINA_CACHE_DIR", cache or "")
        patch.setattr(cuda_program, "compile_kernel", noted)
        _forget()
        _runtime.replace_cuda_driver(driver.table())
        try:
            yield driver
            driver.drain()
        finally:
            if driver.faults:
                raise driver.faults[0]
            _forget()
            _runtime.replace_cuda_driver(None)


def _forget() -> None:
    lamina.clear_caches()
    forget_devices()
