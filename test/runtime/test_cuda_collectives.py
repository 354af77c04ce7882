"""Programs of several GPUs, made of Python as their driver and NCCL are: what they give is what CPU devices give."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.fake_cuda import driver as fake_driver
from support.fake_cuda import nccl as fake_nccl
from support.fake_cuda.driver import FakeDriver
from support.fake_cuda.nccl import FakeNccl

import lamina
import lamina.numpy as jnp
from lamina import lax, runtime
from lamina.errors import JaxRuntimeError
from lamina.passes.kernels.gpu.collectives import OPERATIONS, TYPES
from lamina.sharding import Mesh, NamedSharding
from lamina.sharding import PartitionSpec as P

_DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
    "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip
_ALL = ("a", "b")


@pytest.fixture(autouse=True)
def four_cpus() -> Iterator[None]:
    with lamina.enable_x64(True):
        old = lamina.config.num_cpu_devices.value
        lamina.config.update("num_cpu_devices", 4)
        yield
        lamina.config.update("num_cpu_devices", old)


@pytest.fixture
def nccl() -> FakeNccl:
    return FakeNccl()


@pytest.fixture
def cuda(nccl: FakeNccl) -> Iterator[FakeDriver]:
    with fake_driver.installed(FakeDriver(gpus=4, libraries=nccl.calls())) as driver:
        yield driver
    assert not nccl.refused


def _mesh(platform: str) -> Mesh:
    return Mesh(np.array(lamina.devices(platform)[:4]).reshape(2, 2), _ALL)


def _put(x: Any, mesh: Mesh, *spec: Any) -> Any:
    return lamina.device_put(x, NamedSharding(mesh, P(*spec)))


def _on_blocks(body: Any, platform: str, x: Any, calls: int = 1) -> list[Any]:
    """What body gives of rows of x, one a device."""
    mesh = _mesh(platform)
    run = lamina.jit(lamina.shard_map(body, mesh=mesh, in_specs=P(_ALL), out_specs=P(_ALL), check_vma=False))
    for _ in range(calls):
        found = run(_put(x, mesh, _ALL))
    leaves: list[Any] = lamina.tree_util.tree_leaves(found)
    return [np.asarray(leaf) for leaf in leaves]


def _values(dtype: np.dtype) -> np.ndarray:
    numbers = np.arange(16).reshape(4, 4) % 7 - 3
    return numbers > 0 if dtype == np.bool_ else numbers.astype(dtype)


def _every_collective(x: Any) -> list[Any]:
    row = x[0]
    found = [
        lax.psum(x, _ALL),
        lax.psum(x, "a"),
        lax.all_gather(x, "b", axis=1),
        lax.psum_scatter(row, _ALL, tiled=True)[None],
        lax.all_to_all(row, _ALL, 0, 0, tiled=True)[None],
        lax.ppermute(x, "a", [(0, 1)]),
        lax.ppermute(x, _ALL, [(0, 1), (1, 2), (2, 0), (3, 3)]),
        lax.pbroadcast(x, "b", 1),
        x + lax.axis_index(_ALL).astype(x.dtype),
    ]
    return found if x.dtype.kind == "c" else [*found, lax.pmax(x, _ALL), lax.pmin(x, "b")]


@pytest.mark.parametrize("dtype", _DTYPES)
def test_every_collective_of_every_type(cuda: FakeDriver, nccl: FakeNccl, dtype: str) -> None:
    x = _values(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    for found, wanted in zip(
        _on_blocks(_every_collective, "cuda", x), _on_blocks(_every_collective, "cpu", x), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
    asked = {call.what for call in nccl.asked}
    assert asked == {"all_reduce", "all_gather", "reduce_scatter", "send", "recv"}
    assert all(width.dtype == "uint8" or call.what in ("all_reduce", "reduce_scatter") for call in nccl.asked
               for width in [np.zeros(0, fake_nccl.TYPES[call.type])])  # fmt: skip


def test_numbers_of_types() -> None:
    for name, number in TYPES.items():
        assert np.dtype(fake_nccl.TYPES[number]).name == name
    assert sorted(OPERATIONS.values()) == [0, 1, 2, 3]


_COMBINERS = {"add": "add", "multiply": "multiply", "minimum": "minimum", "maximum": "maximum", "and": "bitwise_and",
              "or": "bitwise_or", "xor": "bitwise_xor"}  # fmt: skip


_ELEMENTS = {"i1": "bool", "ui8": "uint8", "i16": "int16", "ui16": "uint16", "i32": "int32", "i64": "int64",
             "f16": "float16", "f32": "float32", "complex<f32>": "complex64"}  # fmt: skip


@pytest.mark.parametrize(
    ("how", "dtype"),
    [
        (how, dtype)
        for how in _COMBINERS
        for dtype in _ELEMENTS
        if dtype[0] not in {"and": "fc", "or": "fc", "xor": "fc", "minimum": "c", "maximum": "c"}.get(how, "")
    ],
)
def test_reductions_of_stablehlo(cuda: FakeDriver, how: str, dtype: str) -> None:
    """All that StableHLO combines with, by NumPy: also bitwise, and what NCCL lacks."""
    kind = _ELEMENTS[dtype]
    x = _values(np.dtype(kind))
    combine = getattr(np, _COMBINERS[how])
    if kind == "bool":
        combine = {"add": np.logical_or, "multiply": np.logical_and}.get(how, combine)
    text = f"""module @m attributes {{mhlo.num_partitions = 4 : i32}} {{
      func.func public @main(%x: tensor<1x4x{dtype}>) -> tensor<1x4x{dtype}> {{
        %0 = "stablehlo.all_reduce"(%x) ({{
        ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
          %s = stablehlo.{how} %a, %b : tensor<{dtype}>
          stablehlo.return %s : tensor<{dtype}>
        }}) {{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}} : (tensor<1x4x{dtype}>) -> tensor<1x4x{dtype}>
        return %0 : tensor<1x4x{dtype}>
      }}
    }}"""
    for (row,) in _run_text(text, x):
        np.testing.assert_array_equal(row, functools.reduce(combine, x)[None])


def test_groups_that_leave_devices_out(cuda: FakeDriver, nccl: FakeNccl) -> None:
    text = """module @m attributes {mhlo.num_partitions = 4 : i32} {
      func.func public @main(%x: tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
        %0 = "stablehlo.collective_broadcast"(%x) {replica_groups = dense<[[2, 0], [3, 1]]> : tensor<2x2xi64>}
          : (tensor<1x4xf32>) -> tensor<1x4xf32>
        %1 = "stablehlo.all_reduce"(%x) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) {replica_groups = dense<[[0, 3, 1], [2, -1, -1]]> : tensor<2x3xi64>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
        return %0, %1 : tensor<1x4xf32>, tensor<1x4xf32>
      }
    }"""
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    found = _run_text(text, x)
    for position, (spread, total) in enumerate(found):
        np.testing.assert_array_equal(spread[0], x[(2, 3, 2, 3)[position]])
        np.testing.assert_array_equal(total[0], x[2] if position == 2 else x[0] + x[1] + x[3])
    assert cuda.count("ncclCommSplit") == 8 and {call.what for call in nccl.asked} == {"broadcast", "all_reduce"}
    one = text.replace("[[2, 0], [3, 1]]> : tensor<2x2xi64>", "[[3, 1]]> : tensor<1x2xi64>")
    for position, (spread, _) in enumerate(_run_text(one, x)):
        np.testing.assert_array_equal(spread[0], x[3] if position in (1, 3) else np.zeros(4))
    assert cuda.count("ncclCommSplit") == 12  # of the groups that are new


def _run_text(text: str, x: np.ndarray) -> list[list[np.ndarray]]:
    """The program on four GPUs, each of which gets a row."""
    compiled = lamina.compile_stablehlo(text, target="cuda:sm_90a")
    return [list(map(np.asarray, outs)) for outs in compiled.on_devices([[x[i : i + 1]] for i in range(4)])]


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float8_e5m2", "float8_e4m3fn"])
def test_types_of_a_byte_and_less_on_cpus(dtype: str) -> None:
    x = np.array([[1, 2], [3, 4], [0, 1], [2, 0]]).astype(getattr(ml_dtypes, dtype))
    total, largest = _on_blocks(lambda row: [lax.psum(row, _ALL), lax.pmax(row, _ALL)], "cpu", x)
    np.testing.assert_array_equal(total[0].astype(int), [6, 7])
    np.testing.assert_array_equal(largest[0].astype(int), [3, 4])


def test_extremes_keep_nan_and_signed_zeros(cuda: FakeDriver) -> None:
    """Which those of NCCL need not."""
    x = np.array([[1, np.nan, -0.0, -np.inf], [2, 1, 0.0, np.inf], [-5, 2, -0.0, 3], [0, 3, 0.0, -4]])
    for dtype in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):
        given = x.astype(dtype)
        largest, least = _on_blocks(lambda row: [lax.pmax(row, _ALL), lax.pmin(row, _ALL)], "cuda", given)
        for found, wanted in ((largest, np.max), (least, np.min)):
            one = wanted(given.astype(np.float64), axis=0)
            np.testing.assert_array_equal(found.astype(np.float64), np.broadcast_to(one, (4, 4)))
        assert not np.signbit(largest[:, 2].astype(np.float64)).any()
        assert np.signbit(least[:, 2].astype(np.float64)).all()


def test_pmap_gives_parts_on_their_devices(cuda: FakeDriver) -> None:
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = lamina.pmap(lambda x: x * lax.psum(x, "i"), axis_name="i", devices=lamina.devices("cuda"))(x)
    np.testing.assert_array_equal(np.asarray(found), x * x.sum(0))
    assert [shard.data.device for shard in found.addressable_shards] == lamina.devices("cuda")
    assert found.devices() == set(lamina.devices("cuda"))


def _step(weights: dict[str, Any], x: Any, y: Any) -> Any:
    """A training step of a small network."""

    def loss(w: dict[str, Any]) -> Any:
        hidden = jnp.tanh(x @ w["in"])
        return ((hidden @ w["out"] - y) ** 2).mean()

    value, gradient = lamina.value_and_grad(loss)(weights)
    return value, lamina.tree_util.tree_map(lambda w, g: w - 0.5 * g, weights, gradient)


@pytest.mark.parametrize("donated", [(), (0,)])
def test_partitioned_training(cuda: FakeDriver, donated: tuple[int, ...]) -> None:
    """Data by tensor parallel: as on one device, step by step and as graphs."""
    draw = np.random.default_rng(0)
    shapes = {"in": (8, 16), "out": (16, 4)}
    start = {k: draw.normal(size=s).astype(np.float32) / 4 for k, s in shapes.items()}
    x, y = (draw.normal(size=(16, n)).astype(np.float32) for n in (8, 4))
    weights, losses = start, []
    alone = lamina.jit(_step)
    for _ in range(5):
        value, weights = alone(weights, x, y)
        losses.append(float(value))
    mesh = _mesh("cuda")
    spread = {"in": _put(start["in"], mesh, None, "b"), "out": _put(start["out"], mesh, "b", None)}
    run = lamina.jit(_step, donate_argnums=donated)
    batch = _put(x, mesh, "a"), _put(y, mesh, "a")
    for wanted in losses:
        value, spread = run(spread, *batch)
        np.testing.assert_allclose(float(value), wanted, rtol=1e-5)
    for name, whole in weights.items():
        np.testing.assert_allclose(np.asarray(spread[name]), np.asarray(whole), rtol=1e-4, atol=1e-6)
    assert cuda.count("cuGraphLaunch") > 0


def _chain(x: Any) -> Any:
    for _ in range(3):
        x = lax.psum(jnp.sin(x), _ALL) + lax.all_gather(x, "a").sum(0)
    return x


def test_graphs_hold_collectives(cuda: FakeDriver, nccl: FakeNccl, monkeypatch) -> None:
    """From the second call on. All devices make theirs in the same call, and none calls NCCL when it launches one."""
    x = np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4)
    (wanted,) = _on_blocks(_chain, "cpu", x)
    mesh = _mesh("cuda")
    run = lamina.jit(lamina.shard_map(_chain, mesh=mesh, in_specs=P(_ALL), out_specs=P(_ALL), check_vma=False))
    given = _put(x, mesh, _ALL)
    asked = []
    for _ in range(4):
        np.testing.assert_allclose(np.asarray(run(given)), wanted, rtol=1e-6)
        asked.append(len(nccl.asked))
    assert asked[0] * 2 == asked[1] and cuda.count("cuGraphLaunch") == 12
    held = [run(given) for _ in range(12)]  # their results are elsewhere each time, on each device in its own way
    held[3] = held[5] = None
    other = lamina.device_put(np.zeros((3, 3), np.float32), lamina.devices("cuda")[2])
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(run(given)), wanted, rtol=1e-6)
    del held, other


def test_without_graphs(cuda: FakeDriver, monkeypatch) -> None:
    monkeypatch.setenv("LAMINA_CUDA_GRAPHS", "0")
    monkeypatch.setenv("LAMINA_CUDA_SYNC", "1")
    x = np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4)
    (wanted,) = _on_blocks(_chain, "cpu", x)
    np.testing.assert_allclose(_on_blocks(_chain, "cuda", x, calls=3)[0], wanted, rtol=1e-6)
    assert cuda.count("cuGraphLaunch") == 0


def _looped(x: Any) -> Any:
    def body(state: tuple[Any, Any]) -> tuple[Any, Any]:
        i, y = state
        y = lax.cond(i % 2 == 0, lambda y: lax.psum(y, "a"), lambda y: lax.ppermute(y, "b", [(0, 1), (1, 0)]), y)
        return i + 1, y * 0.5

    def goes_on(state: tuple[Any, Any]) -> Any:
        return (state[0] < 6) & (lax.pmax(jnp.abs(state[1]).max(), _ALL) > 0.01)

    return lax.while_loop(goes_on, body, (0, x))[1]


def test_loops_and_branches_that_meet(cuda: FakeDriver) -> None:
    """The host decides: in conditional nodes of a graph there are no collectives."""
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    for found, wanted in zip(
        _on_blocks(_looped, "cuda", x, calls=2), _on_blocks(_looped, "cpu", x), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert cuda.count("cuGraphLaunch") == 0


def test_operations_outside_of_programs(cuda: FakeDriver) -> None:
    mesh = _mesh("cuda")
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    a = _put(x, mesh, "a", "b")
    np.testing.assert_array_equal(np.asarray(a @ a.T + 1), x @ x.T + 1)
    np.testing.assert_array_equal(np.asarray(lamina.device_put(a, NamedSharding(mesh, P("b")))), x)
    np.testing.assert_array_equal(np.asarray(lamina.device_put(a, lamina.devices("cpu")[0])), x)
    np.testing.assert_array_equal(np.asarray(lamina.device_put(a, lamina.devices("cuda")[3])), x)
    np.testing.assert_array_equal(np.asarray(a), x)


def test_callbacks_on_each_device(cuda: FakeDriver) -> None:
    x = np.arange(4, dtype=np.float32).reshape(4, 1)

    def body(x: Any) -> Any:
        there = lamina.pure_callback(lambda v: v * 2, lamina.ShapeDtypeStruct((1, 1), np.float32), x)
        return lax.psum(there, _ALL)

    np.testing.assert_array_equal(_on_blocks(body, "cuda", x)[0], np.full((4, 1), 12, np.float32))


def test_devices_in_another_order(cuda: FakeDriver) -> None:
    """What devices are called is their position in the mesh."""
    mesh = Mesh(np.array([lamina.devices("cuda")[i] for i in (2, 0, 3)]), ("i",))

    def body(x: Any) -> Any:
        return lax.ppermute(x, "i", [(0, 1), (1, 2)]) + lax.axis_index("i")

    run = lamina.jit(lamina.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))
    np.testing.assert_array_equal(np.asarray(run(np.array([5, 6, 7]))), [0, 6, 8])


# ---- errors --------------------------------------------------------------------------------------
def _sum(x: Any) -> Any:
    return lax.psum(x, _ALL)


def test_a_call_that_fails_names_the_device(cuda: FakeDriver, nccl: FakeNccl) -> None:
    """The others are let go, and the next call has new communicators."""
    x = np.ones((4, 2), np.float32)
    nccl.last = b"a cable is out"
    cuda.fail("ncclAllReduce", fake_nccl.SYSTEM_ERROR, after=2)
    pattern = (
        r"jit_.*ncclAllReduce failed of collective all_reduce.* at .* on cuda:\d, device \d of 4: "
        r"unhandled system error \(a cable is out\)"
    )
    with pytest.raises(JaxRuntimeError, match=pattern):
        _on_blocks(_sum, "cuda", x)
    assert cuda.count("ncclCommAbort") == 4
    np.testing.assert_array_equal(_on_blocks(_sum, "cuda", x)[0], np.full((4, 2), 4, np.float32))


def test_a_device_that_never_comes(cuda: FakeDriver, nccl: FakeNccl) -> None:
    x = np.ones((4, 2), np.float32)
    _on_blocks(_sum, "cuda", x)
    nccl.stalled.add(2)
    runtime.set_collective_timeout(0.3)
    try:
        with pytest.raises(JaxRuntimeError, match=r"cuda:\d, device \d of 4 has been waited for 300 ms: another"):
            _on_blocks(_sum, "cuda", x)
    finally:
        runtime.set_collective_timeout(0)
        nccl.stalled.clear()
    np.testing.assert_array_equal(_on_blocks(_sum, "cuda", x)[0], np.full((4, 2), 4, np.float32))


def test_graphs_of_communicators_that_were_aborted(cuda: FakeDriver, nccl: FakeNccl) -> None:
    """Are made anew, on all devices in the same call."""
    x = np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4)
    (wanted,) = _on_blocks(_chain, "cpu", x)
    mesh = _mesh("cuda")
    run = lamina.jit(lamina.shard_map(_chain, mesh=mesh, in_specs=P(_ALL), out_specs=P(_ALL), check_vma=False))
    given = _put(x, mesh, _ALL)
    for _ in range(3):
        run(given).block_until_ready()
    nccl.stalled.add(0)
    held = run(given)
    runtime.set_collective_timeout(0.2)
    try:
        with pytest.raises(JaxRuntimeError, match="has been waited for 200 ms"):
            held.block_until_ready()
    finally:
        runtime.set_collective_timeout(0)
        nccl.stalled.clear()
    launched = cuda.count("cuGraphLaunch")
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(run(given)), wanted, rtol=1e-6)
    assert cuda.count("cuGraphLaunch") == launched + 8


def test_what_nccl_finds_out_later(cuda: FakeDriver, nccl: FakeNccl) -> None:
    mesh = _mesh("cuda")
    run = lamina.jit(lamina.shard_map(_sum, mesh=mesh, in_specs=P(_ALL), out_specs=P(_ALL), check_vma=False))
    given = _put(np.ones((4, 2), np.float32), mesh, _ALL)
    before = run(given)
    before.block_until_ready()
    nccl.stalled.add(1)
    found = run(given)
    nccl.comms[3].last, nccl.comms[3].async_error = b"connection closed by peer", fake_nccl.REMOTE_ERROR
    pattern = r"on cuda:3, device 3 of 4: remote process exited .* network error \(connection closed by peer\)"
    with pytest.raises(JaxRuntimeError, match=pattern):
        found.block_until_ready()
    nccl.stalled.clear()
    np.testing.assert_array_equal(np.asarray(before), np.full((4, 2), 4, np.float32))  # that was over


def test_a_callback_that_raises_ends_all(cuda: FakeDriver) -> None:
    def complain(v: Any) -> Any:
        if v[0, 0] == 2:
            raise ValueError("not that one")
        return v

    def body(x: Any) -> Any:
        x = lamina.pure_callback(complain, lamina.ShapeDtypeStruct((1, 1), np.float32), x)
        return lax.while_loop(lambda y: lax.psum(y, _ALL)[0, 0] < 100, lambda y: y * 2, x)

    with pytest.raises(Exception, match="not that one"):
        _on_blocks(body, "cuda", np.arange(4, dtype=np.float32).reshape(4, 1))


def test_programs_are_loaded_while_another_runs(cuda: FakeDriver) -> None:
    """Communicators of groups that are new are made between two runs, not in the midst of one."""
    mesh = _mesh("cuda")
    given = _put(np.ones((4, 2), np.float32), mesh, _ALL)

    def mapped(body: Any) -> Any:
        return lamina.jit(lamina.shard_map(body, mesh=mesh, in_specs=P(_ALL), out_specs=P(_ALL), check_vma=False))

    run, over, wrong = mapped(_chain), threading.Event(), []
    wanted = np.asarray(run(given))

    def work() -> None:
        while not over.is_set():
            try:
                np.testing.assert_array_equal(np.asarray(run(given)), wanted)
            except BaseException as error:
                wrong.append(error)
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for pair in itertools.combinations(range(4), 2):
            rest = [i for i in range(4) if i not in pair]
            sums = mapped(lambda x, groups=[list(pair), rest]: lax.psum(x, _ALL, axis_index_groups=groups))
            np.testing.assert_array_equal(np.asarray(sums(given)), np.full((4, 2), 2, np.float32))
    finally:
        over.set()
        thread.join()
    assert not wrong


def test_a_callback_loads_no_program_with_new_groups(cuda: FakeDriver) -> None:
    mesh = _mesh("cuda")

    def sums(axes: Any) -> Any:
        body = lamina.shard_map(lambda x: lax.psum(x, axes), mesh=mesh, in_specs=P(_ALL), out_specs=P(_ALL))
        return lamina.jit(body)

    def load(x: Any) -> Any:
        sums("a")(_put(np.ones((4, 2), np.float32), mesh, _ALL))
        return x

    def body(x: Any) -> Any:
        return lax.psum(lamina.pure_callback(load, lamina.ShapeDtypeStruct(x.shape, x.dtype), x), _ALL)

    with pytest.raises(Exception, match="new groups of devices was loaded by a callback"):
        _on_blocks(body, "cuda", np.ones((4, 2), np.float32))


def test_without_nccl() -> None:
    with fake_driver.installed(FakeDriver(gpus=4)):
        with pytest.raises(RuntimeError, match=r"need NVIDIA's NCCL.*pip install 'lamina\[nccl\]'"):
            _on_blocks(_sum, "cuda", np.ones((4, 2), np.float32))


def test_memory_of_the_arrays_goes(cuda: FakeDriver) -> None:
    import gc

    x = np.ones((4, 256), np.float32)
    _on_blocks(_sum, "cuda", x)
    gc.collect()
    cuda.drain()
    before = cuda.live_bytes
    for _ in range(3):
        _on_blocks(_sum, "cuda", x)
    gc.collect()
    cuda.drain()
    assert cuda.live_bytes <= before
