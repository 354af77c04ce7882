"""Arrays over all devices of four processes: made, moved, told to all. Run by test_arrays.py."""

import itertools

import numpy as np

import lamina
import lamina.numpy as jnp
import lamina.partitioning
from lamina import P
from lamina.experimental import multihost_utils as utils
from lamina.sharding import Mesh, NamedSharding, SingleDeviceSharding

SPECS = [
    P(),
    P("a"),
    P("b"),
    P(None, "a"),
    P("b", "a"),
    P("a", "b"),
    P(("a", "b")),
    P(None, ("b", "a")),
]


def check(array: lamina.Array, data: np.ndarray) -> None:
    assert array.shape == data.shape
    assert array.dtype == data.dtype
    assert len(array.addressable_shards) == len(array.sharding.addressable_devices)
    for shard in array.addressable_shards:
        assert shard.device.process_index == lamina.process_index()
        np.testing.assert_array_equal(np.asarray(shard.data), data[shard.index])


def moves(meshes: list[Mesh]) -> None:
    shardings = [NamedSharding(mesh, spec) for mesh in meshes for spec in SPECS]
    random = np.random.default_rng(0)
    for number, (start, end) in enumerate(itertools.product(shardings, repeat=2)):
        if number % 3:  # every third pair
            continue
        data = random.standard_normal((8, 16, 2)).astype(
            ("float32", "int8", "complex64")[number % 9 // 3]
        )
        x = lamina.make_array_from_callback(data.shape, start, lambda at, data=data: data[at])
        check(x, data)
        moved = lamina.device_put(x, end)
        assert moved.sharding == end
        check(moved, data)
        if start.is_fully_replicated:
            np.testing.assert_array_equal(np.asarray(x), data)
    number = lamina.device_put(np.float32(3), shardings[0])
    check(lamina.device_put(number, NamedSharding(meshes[1], P())), np.float32(3))
    empty = lamina.make_array_from_callback((0, 8), shardings[1], lambda at: np.zeros((0, 8))[at])
    check(lamina.device_put(empty, shardings[4]), np.zeros((0, 8), np.float32))


def by_process(mesh: Mesh) -> None:
    rank, count = lamina.process_index(), lamina.process_count()
    whole = np.arange(16 * 6, dtype=np.float32).reshape(16, 6)
    rows = len(whole) // count
    mine = whole[rank * rows : (rank + 1) * rows]
    sharding = NamedSharding(mesh, P(("a", "b")))
    check(lamina.make_array_from_process_local_data(sharding, mine), whole)
    check(lamina.make_array_from_process_local_data(sharding, mine, whole.shape), whole)
    check(lamina.make_array_from_process_local_data(sharding, whole, whole.shape), whole)
    replicated = lamina.make_array_from_process_local_data(NamedSharding(mesh, P()), whole)
    check(replicated, whole)
    try:
        lamina.make_array_from_process_local_data(sharding, mine[:-1], whole.shape)
        raise AssertionError("taken")
    except ValueError as error:
        assert f"this process holds {rows}, or gives all 16; its data has {rows - 1}" in str(error)
    shared = utils.host_local_array_to_global_array({"x": mine}, mesh, P(("a", "b")))["x"]
    check(shared, whole)
    np.testing.assert_array_equal(
        utils.global_array_to_host_local_array(shared, mesh, P(("a", "b"))), mine
    )
    np.testing.assert_array_equal(utils.process_allgather(shared), whole)
    devices = [d for d in mesh.device_list if d.process_index == rank]
    one = SingleDeviceSharding(devices[0])
    check(lamina.device_put(mine, one), mine)
    parts = [lamina.device_put(part, d) for part, d in zip(np.split(mine, len(devices)), devices)]
    check(lamina.make_array_from_single_device_arrays(whole.shape, sharding, parts), whole)


def told() -> None:
    rank, count = lamina.process_index(), lamina.process_count()
    out = utils.process_allgather({"a": np.float32(rank), "b": np.full((2, 3), rank)})
    np.testing.assert_array_equal(out["a"], np.arange(count))
    assert out["b"].shape == (count, 2, 3)
    tiled = utils.process_allgather(np.full((2, 3), rank), tiled=True)
    np.testing.assert_array_equal(tiled[:, 0], np.repeat(np.arange(count), 2))
    assert int(utils.broadcast_one_to_all(np.int32(rank + 5))) == 5
    assert int(utils.broadcast_one_to_all(np.int32(rank), is_source=rank == count - 1)) == count - 1
    utils.sync_global_devices("a place")
    utils.assert_equal({"x": np.array([1.0, np.nan])})
    for wrong, said in (
        (
            lambda: utils.assert_equal(np.int32(rank), "seeds"),
            "seeds: process 1 differs from process 0",
        ),
        (lambda: utils.sync_global_devices(f"place {rank}"), "name mismatch"),
    ):
        try:
            wrong()
            raise RuntimeError("accepted")
        except AssertionError as error:
            assert said in str(error)


def unreadable(mesh: Mesh) -> None:
    x = lamina.make_array_from_callback(
        (8,), NamedSharding(mesh, P("a")), lambda at: np.arange(8)[at]
    )
    assert not x.is_fully_addressable
    assert x.block_until_ready() is x
    assert x.is_ready()
    assert repr(x) == "Array(shape=(8,), dtype=int32)"
    for read in (np.asarray, jnp.ndarray.tolist, list):
        try:
            read(x)
            raise AssertionError("read")
        except RuntimeError as error:
            assert "spans devices of several processes" in str(error)

    missing, lamina.partitioning.missing = lamina.partitioning.missing, lambda: "there is no Shardy"
    for use in (lamina.jit(lambda x: x + 1), lambda x: x * 3):
        try:
            use(x)
            raise AssertionError("computed")
        except ValueError as error:
            assert "no process has" in str(error)
            assert "there is no Shardy" in str(error)
    lamina.partitioning.missing = missing


def main() -> None:
    lamina.distributed.initialize()
    devices = np.array(lamina.devices()).reshape(4, -1)
    assert devices.size == 8
    assert lamina.local_devices() == list(devices[lamina.process_index()])
    assert lamina.local_devices(2) == list(devices[2])
    assert jnp.ones(3).devices() == {lamina.local_devices()[0]}
    meshes = [Mesh(devices, ("a", "b")), Mesh(devices[::-1].T.reshape(4, 2), ("a", "b"))]
    assert meshes[0].is_multi_process
    assert list(meshes[0].local_mesh.device_list) == lamina.local_devices()
    moves(meshes)
    by_process(meshes[0])
    told()
    unreadable(meshes[0])
    print("all right")


if __name__ == "__main__":
    main()
