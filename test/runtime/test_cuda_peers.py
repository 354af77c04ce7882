"""Copies from one GPU to another: the driver, which does them, is made of Python."""

from collections.abc import Iterator

import numpy as np
import pytest
from support.fake_cuda import driver as fake_driver
from support.fake_cuda.driver import FakeDriver

import lamina
from lamina.sharding import Mesh, NamedSharding
from lamina.sharding import PartitionSpec as P

_X = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.fixture(params=[True, False], ids=["peers", "by way of the host"])
def cuda(request: pytest.FixtureRequest) -> Iterator[FakeDriver]:
    with fake_driver.installed(FakeDriver(gpus=4, peers=request.param)) as driver:
        yield driver


def _gpus() -> list[lamina.Device]:
    return lamina.devices("cuda")


@pytest.mark.parametrize("count", [24, 1 << 18])
def test_from_one_to_the_other(cuda: FakeDriver, count: int) -> None:
    x = np.arange(count, dtype=np.float32)
    there = lamina.device_put(x, _gpus()[0])
    moved = lamina.device_put(there, _gpus()[2])
    again = lamina.device_put(lamina.device_put(there, _gpus()[1]), _gpus()[2])
    assert cuda.between == [(0, 2, cuda.peers), (0, 1, cuda.peers), (1, 2, cuda.peers)]
    assert cuda.count("cuMemcpyDtoHAsync_v2") == 0
    assert cuda.count("cuDeviceCanAccessPeer") == 3
    lamina.device_put(there, _gpus()[2])
    assert cuda.count("cuDeviceCanAccessPeer") == 3  # asked once
    assert moved.device == _gpus()[2] and np.array_equal(moved, x) and np.array_equal(again, x)


def test_the_source_stays_until_it_is_read(cuda: FakeDriver) -> None:
    """What is freed, or overwritten in place, waits for copies that are under way."""
    x = lamina.device_put(_X, _gpus()[0])
    doubled = lamina.jit(lambda x: x * 2)(x)  # computed when somebody waits for it
    moved = lamina.device_put(doubled, _gpus()[1])
    lamina.jit(lambda x: x + 100, donate_argnums=0)(doubled).block_until_ready()
    assert doubled.is_deleted() and np.array_equal(moved, 2 * _X)
    moved = lamina.device_put(x, _gpus()[3])
    del x
    lamina.jit(lambda x: x - 1)(lamina.device_put(_X, _gpus()[0])).block_until_ready()
    assert np.array_equal(moved, _X)


def test_a_copy_that_fails_says_of_what(cuda: FakeDriver) -> None:
    x = lamina.device_put(_X, _gpus()[0])
    cuda.fail("cuMemcpyPeerAsync")
    with pytest.raises(RuntimeError, match="cuMemcpyPeerAsync failed.*a copy from cuda:0 to cuda:3"):
        lamina.device_put(x, _gpus()[3])


def test_shards_move_whole(cuda: FakeDriver) -> None:
    """To a mesh of other devices, or the same in another order; each GPU takes what it needs."""
    gpus = np.array(_gpus())
    x = lamina.device_put(_X, NamedSharding(Mesh(gpus, ("a",)), P("a")))
    assert len(x.addressable_shards) == 4  # which are cut when they are asked for
    turned = lamina.device_put(x, NamedSharding(Mesh(gpus[::-1].copy(), ("a",)), P("a")))
    assert cuda.between == [(i, 3 - i, cuda.peers) for i in range(4)]
    assert cuda.count("cuMemcpyDtoHAsync_v2") == 0
    for shard in turned.addressable_shards:
        assert np.array_equal(shard.data, _X[shard.index]) and shard.data.device_number == shard.device.gpu_number
    pairs = Mesh(gpus.reshape(2, 2), ("a", "b"))
    halves = lamina.device_put(_X, NamedSharding(pairs, P("a")))
    assert len(halves.addressable_shards) == 4
    cuda.between.clear()
    swapped = lamina.device_put(halves, NamedSharding(Mesh(gpus[[1, 0, 3, 2]].reshape(2, 2), ("a", "b")), P("a")))
    assert not cuda.between and np.array_equal(swapped, _X)  # each has its part already
