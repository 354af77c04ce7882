"""Devices that meet in collectives: uneven arrival, failures, what never comes."""

import threading

import numpy as np
import pytest
from support.devices import eight_devices as eight_devices

import lamina
from lamina import P, lax, runtime
from lamina.passes.framework.base import CompileError

pytestmark = pytest.mark.usefixtures("eight_devices")

SUM = """
module @sum {
  func.func @main(%x: tensor<5xDTYPE>) -> (tensor<5xDTYPE>, tensor<ui32>) {
    %0 = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<DTYPE>, %b: tensor<DTYPE>):
      %s = stablehlo.OP %a, %b : tensor<DTYPE>
      stablehlo.return %s : tensor<DTYPE>
    }) {replica_groups = dense<GROUPS> : tensor<SHAPExi64>} : (tensor<5xDTYPE>) -> tensor<5xDTYPE>
    %1 = stablehlo.replica_id : tensor<ui32>
    return %0, %1 : tensor<5xDTYPE>, tensor<ui32>
  }
}
"""


def _program(op: str, dtype: str, n: int, groups: str = "[[0, 1, 2, 3]]", shape: str = "1x4"):
    text = SUM.replace("DTYPE", dtype).replace("OP", op)
    text = text.replace("GROUPS", groups).replace("SHAPE", shape)
    return lamina.compile_stablehlo(text, num_replicas=n)


@pytest.mark.parametrize(
    ("op", "dtype", "name", "reference"),
    [
        ("add", "i8", "int8", np.add),
        ("multiply", "i16", "int16", np.multiply),
        ("maximum", "f64", "float64", np.maximum),
        ("minimum", "ui8", "uint8", np.minimum),
        ("add", "complex<f32>", "complex64", np.add),
        ("and", "i1", "bool", np.logical_and),
        ("xor", "i32", "int32", np.bitwise_xor),
        ("add", "f16", "float16", np.add),
    ],
)
def test_reductions(op, dtype, name, reference) -> None:
    rng = np.random.default_rng(0)
    xs = [rng.integers(0, 5, 5).astype(name) for _ in range(4)]
    out = _program(op, dtype, 4).on_devices([[x] for x in xs])
    for d, (total, number) in enumerate(out):
        np.testing.assert_array_equal(total, reference.reduce(xs).astype(name))
        assert int(number) == d


def test_one_replica_gets_what_it_gave() -> None:
    x = np.arange(5, dtype=np.float32)
    total, number = _program("add", "f32", 1, "[[0]]", "1x1")(x)
    np.testing.assert_array_equal(total, x)
    assert int(number) == 0


def test_more_devices_than_the_program_is_for() -> None:
    with pytest.raises(CompileError, match="names device 3 in a program for 2"):
        _program("add", "f32", 2)
    with pytest.raises(RuntimeError, match=r"\[all_reduce\] names device 2"):
        _program("add", "f32", 4).on_devices([[np.zeros(5, np.float32)]] * 2)


def _mapped(f, n=4):
    mesh = lamina.make_mesh((n,), ("i",))
    mapped = lamina.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    return lamina.jit(mapped)


def test_uneven_arrival() -> None:
    def f(x):
        rounds = lax.axis_index("i") * 20000
        late = lax.fori_loop(0, rounds, lambda _, v: lamina.numpy.sin(v) + 1, x)
        return lax.psum(late * 0 + x, "i")

    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(_mapped(f)(x), np.full(4, 6))


def test_different_branches_raise_at_once() -> None:
    def f(x):
        return lax.cond(lax.axis_index("i") == 0, lambda v: v, lambda v: lax.psum(v, "i"), x)

    runtime.set_collective_timeout(3600)
    try:
        with pytest.raises(RuntimeError, match="different branches"):
            _mapped(f)(np.arange(4, dtype=np.float32))
    finally:
        runtime.set_collective_timeout(0)
    # The devices are fit for the next program.
    np.testing.assert_array_equal(_mapped(lambda x: lax.psum(x, "i"))(np.ones(4)), np.full(4, 4))


def test_a_failure_on_one_device_ends_the_others() -> None:
    def check(i, x):
        if i == 2:
            raise ZeroDivisionError("on device two")
        return x

    def f(x):
        shape = lamina.ShapeDtypeStruct(x.shape, x.dtype)
        return lax.psum(lamina.pure_callback(check, shape, lax.axis_index("i"), x), "i")

    with pytest.raises(RuntimeError, match="on device two"):
        _mapped(f)(np.arange(4, dtype=np.float32)).block_until_ready()


def test_a_device_that_is_late_times_out() -> None:
    def f(x):
        rounds = (lax.axis_index("i") == 1) * 2_000_000_000  # it is ended with the others
        late = lax.fori_loop(0, rounds, lambda _, v: lamina.numpy.sin(v) + 1, x)
        return lax.psum(late, "i")

    runtime.set_collective_timeout(0.05)
    try:
        with pytest.raises(RuntimeError, match=r"\[all_reduce\] .* waited 50 ms"):
            _mapped(f)(np.arange(4, dtype=np.float32))
    finally:
        runtime.set_collective_timeout(0)


def test_calls_from_several_threads_take_turns() -> None:
    f = _mapped(lambda x: lax.psum(x, "i") + x)
    f(np.ones(4, np.float32))
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(10):
            got = np.asarray(f(np.full(4, k, np.float32)))
            if not (got == 5 * k).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_small_teams_after_large_ones() -> None:
    # The threads of devices that a team does not have may wake when it is over.
    large, small = (_mapped(lambda x: lax.psum(x, "i"), n) for n in (8, 2))
    xs = np.ones(8, np.float32), np.ones(2, np.float32)
    for _ in range(2000):
        large(xs[0])
        small(xs[1])
    np.testing.assert_array_equal(small(xs[1]), [2, 2])
