"""Calls of programs over a mesh: the fast path serves them from the second on, and gives what the first gave."""

from typing import Any

import numpy as np
import pytest
from support.devices import auto_mesh
from support.devices import eight_devices as eight_devices

import lamina
import lamina.partitioning
from lamina import P
from lamina.jit import function
from lamina.jit.calls import call_new
from lamina.sharding import NamedSharding

pytestmark = pytest.mark.usefixtures("eight_devices")
partitioned = pytest.mark.skipif(
    lamina.partitioning.missing() is not None, reason="needs lamina[sharding]"
)


class _Calls:
    """A jitted function, and how many of its calls the fast path did not know."""

    def __init__(self, fun: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        self.new = 0

        def counted(*args: Any) -> Any:
            self.new += 1
            return call_new(*args)

        with monkeypatch.context() as patched:
            patched.setattr(function, "call_new", counted)
            self.jitted = lamina.jit(fun, **options)

    def __call__(self, *args: Any) -> Any:
        return self.jitted(*args)


def _sharded(n: int = 8) -> tuple[Any, NamedSharding]:
    mesh = auto_mesh((4,), ("x",))
    sharding = NamedSharding(mesh, P("x"))
    return lamina.device_put(np.arange(n, dtype=np.float32), sharding), sharding


def _total(x: Any) -> Any:
    return lamina.lax.psum(x, "x")


def test_shard_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    x, sharding = _sharded()
    f = _Calls(
        lamina.shard_map(_total, mesh=sharding.mesh, in_specs=P("x"), out_specs=P()), monkeypatch
    )
    first = f(x)
    again = f(x)
    assert f.new == 1 and again.sharding == first.sharding and again.weak_type == first.weak_type
    assert np.array_equal(first, [12, 16]) and np.array_equal(again, first)
    whole = lamina.device_put(np.asarray(x), NamedSharding(sharding.mesh, P()))
    for _ in range(2):  # split otherwise than the program takes it: cut in each call
        assert np.array_equal(f(whole), first)
    assert f.new == 2
    host = np.asarray(x)
    for _ in range(2):
        assert np.array_equal(f(host), first)
    assert f.new == 3


@partitioned
def test_results_are_arguments_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x, sharding = _sharded()
    f = _Calls(lambda x: x + 1, monkeypatch)
    for _ in range(4):
        x = f(x)
        assert x.sharding.is_equivalent_to(sharding, 1) and len(x.addressable_shards) == 4
    assert f.new <= 2 and np.array_equal(x, np.arange(8) + 4)


@partitioned
def test_of_two_shardings_each_has_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    x, sharding = _sharded()
    other = NamedSharding(auto_mesh((2, 4), ("a", "b")), P(("a", "b")))
    y = lamina.device_put(np.asarray(x), other)
    f = _Calls(lambda x: x * 2, monkeypatch)
    for _ in range(2):
        assert f(x).sharding.is_equivalent_to(sharding, 1) and f(y).sharding.is_equivalent_to(other, 1)
    assert f.new == 2


@partitioned
def test_the_current_mesh_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    x, sharding = _sharded()
    f = _Calls(lambda x: (x.sum(), x), monkeypatch)
    outside = f(x)
    with lamina.set_mesh(sharding.mesh):
        for _ in range(3):
            total, same = f(x)
            assert total.sharding.mesh == sharding.mesh and same.sharding == sharding
        assert f.new == 2
    for _ in range(2):
        assert np.array_equal(f(x)[0], outside[0])
    assert f.new == 2


@partitioned
def test_donated_arguments_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = _sharded()
    f = _Calls(lambda x, y: (x + y, y), monkeypatch, donate_argnums=0)
    y = x + 1
    for step in range(3):
        given = x
        x, kept = f(given, y)
        assert given.is_deleted() and not y.is_deleted() and kept is not given
        assert np.array_equal(x, np.arange(8) + (step + 1) * (np.arange(8) + 1))
    assert f.new <= 2
    with pytest.raises(RuntimeError, match="deleted"):
        f(given, y)


@partitioned
def test_what_passes_through_has_parts_of_its_own() -> None:
    x, sharding = _sharded()
    f = lamina.jit(lambda x: (x, x + 1))
    same, _ = f(x)
    moved = lamina.device_put(x, NamedSharding(auto_mesh((4,), ("y",)), P("y")))  # has the same parts
    replaced = lamina.jit(lambda x: x * 0, donate_argnums=0)
    for given in (same, moved):
        replaced(given)
        assert given.is_deleted() and np.array_equal(x, np.arange(8)) and len(x.addressable_shards) == 4
        assert np.array_equal(x.addressable_shards[1].data, [2, 3])


@partitioned
def test_arguments_that_in_shardings_moves_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    _, sharding = _sharded()
    f = _Calls(lambda x: x - 1, monkeypatch, in_shardings=sharding, out_shardings=sharding)
    host = np.arange(8, dtype=np.float32)
    for _ in range(3):
        out = f(host)
        assert out.sharding == sharding and np.array_equal(out, host - 1)
        host += 1
    assert f.new == 1
    given = lamina.numpy.asarray(host)
    donating = lamina.jit(lambda x: x - 1, in_shardings=sharding, donate_argnums=0)
    for _ in range(2):
        assert np.array_equal(donating(given), host - 1) and not given.is_deleted()


@partitioned
def test_keys_and_operations_outside_of_jit(monkeypatch: pytest.MonkeyPatch) -> None:
    x, sharding = _sharded()
    keys = lamina.device_put(lamina.random.split(lamina.random.key(0), 8), sharding)
    f = _Calls(lambda k, x: lamina.vmap(lamina.random.uniform)(k) * x, monkeypatch)
    wanted = lamina.vmap(lamina.random.uniform)(lamina.random.split(lamina.random.key(0), 8)) * np.asarray(x)
    for _ in range(3):
        np.testing.assert_allclose(f(keys, x), wanted, rtol=1e-6)
    assert f.new == 1
    sums = [x + x for _ in range(3)]
    assert all(s.sharding.is_equivalent_to(sharding, 1) and np.array_equal(s, 2 * np.arange(8)) for s in sums)
