"""The memory of the driver made of Python: what it allocates, and what copies and fills do, in streams."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING

import numpy as np

from support.fake_cuda import c_calls as fake_c
from support.fake_cuda.c_calls import INT, PTR, UINT, WORD, set_int, set_word
from support.fake_cuda.context import device_of

if TYPE_CHECKING:
    from support.fake_cuda.driver import FakeDriver

CALLS: fake_c.Calls = {}
_call = functools.partial(fake_c.register, CALLS)
_OUT_OF_MEMORY, _INVALID_DEVICE = 2, 101

_call("cuDeviceGetDefaultMemPool", PTR, INT)(lambda self, out, device: set_word(out, self.handle(("pool", device))))
_call("cuMemPoolSetAttribute", PTR, INT, PTR)(lambda self, pool, what, value: 0)
_call("cuMemPoolTrimTo", PTR, WORD)(lambda self, pool, keep: 0)


@_call("cuMemGetInfo_v2", PTR, PTR)
def _memory_info(self: FakeDriver, free: int, total: int) -> None:
    set_word(free, self.memory - self.live_bytes)
    set_word(total, self.memory)


@_call("cuMemAllocAsync", PTR, WORD, PTR)
def _allocate(self: FakeDriver, out: int, size: int, stream: int) -> int | None:
    assert size > 0
    if self.live_bytes + size > self.memory:
        return _OUT_OF_MEMORY
    address = self.next_address
    self.next_address += -(-size // 512) * 512 + 512
    whole = np.full(size + 64, 0xAB, np.uint8)
    start = -whole.ctypes.data % 64
    self.blocks[address] = whole[start : start + size]
    self.owners[address] = self.device
    set_word(out, address)
    return None


@_call("cuMemFreeAsync", WORD, PTR)
def _release(self: FakeDriver, address: int, stream: int) -> None:
    assert address in self.blocks, "freed twice"

    def free() -> None:
        self.blocks.pop(address).fill(0xCD)

    self.objects[stream].put(free)


@_call("cuMemHostAlloc", PTR, WORD, UINT)
def _host_allocate(self: FakeDriver, out: int, size: int, flags: int) -> None:
    block = ctypes.create_string_buffer(size + 64)
    address = -(-ctypes.addressof(block) // 64) * 64
    self.pinned[address] = block
    set_word(out, address)


@_call("cuMemFreeHost", PTR)
def _host_release(self: FakeDriver, block: int) -> None:
    del self.pinned[block]


@_call("cuMemcpyHtoDAsync_v2", WORD, PTR, WORD, PTR)
def _to_device(self: FakeDriver, target: int, source: int, size: int, stream: int) -> None:
    pinned = any(base <= source < base + len(block) for base, block in self.pinned.items())
    data = None if pinned else ctypes.string_at(source, size)  # pageable memory is read at once

    def copy() -> None:
        given = ctypes.string_at(source, size) if data is None else data
        self.at(target, size)[:] = np.frombuffer(given, np.uint8)

    self.objects[stream].put(copy)


@_call("cuMemcpyDtoHAsync_v2", PTR, WORD, WORD, PTR)
def _to_host(self: FakeDriver, target: int, source: int, size: int, stream: int) -> None:
    def copy() -> None:
        ctypes.memmove(target, self.at(source, size).tobytes(), size)

    self.objects[stream].put(copy)
    if not any(base <= target < base + len(block) for base, block in self.pinned.items()):
        self.wait(self.objects[stream], self.objects[stream].issued)  # pageable: returns when it is done


@_call("cuMemcpyDtoDAsync_v2", WORD, WORD, WORD, PTR)
def _on_device(self: FakeDriver, target: int, source: int, size: int, stream: int) -> None:
    assert self.device_at(target) == self.device_at(source)
    self.objects[stream].put(self.copier(target, source, size))


@_call("cuDeviceCanAccessPeer", PTR, INT, INT)
def _can_access(self: FakeDriver, out: int, device: int, peer: int) -> None:
    set_int(out, int(self.peers and device != peer))


@_call("cuMemPoolSetAccess", PTR, PTR, WORD)
def _set_access(self: FakeDriver, pool: int, descriptions: int, count: int) -> int | None:
    _, owner = self.objects[pool]
    for i in range(count):
        kind, reader, flags = (ctypes.c_int.from_address(descriptions + 12 * i + 4 * at).value for at in range(3))
        if kind != 1 or flags not in (0, 1, 3) or not self.peers:
            return _INVALID_DEVICE
        self.reach.add((owner, reader))
    return None


@_call("cuMemcpyPeerAsync", WORD, PTR, WORD, PTR, WORD, PTR)
def _between(
    self: FakeDriver, target: int, to: int, source: int, from_: int, size: int, stream: int
) -> None:
    """By way of the host where the devices can't reach each other, which the driver sees to."""
    devices = device_of(from_), device_of(to)
    assert devices == (self.device_at(source), self.device_at(target))
    assert self.objects[stream].device in devices
    self.between.append((*devices, devices in self.reach))
    self.objects[stream].put(self.copier(target, source, size))


for _width, _kind in ((1, ctypes.c_ubyte), (2, ctypes.c_ushort), (4, UINT)):

    def _memset(self: FakeDriver, target: int, value: int, count: int, stream: int,
                width: int = _width) -> None:  # fmt: skip
        self.objects[stream].put(self.filler(target, value, width, count))

    _call(f"cuMemsetD{8 * _width}Async", WORD, _kind, WORD, PTR)(_memset)
