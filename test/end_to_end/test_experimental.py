"""lamina.experimental: Taylor mode against JAX, differential equations against their solutions."""

import importlib
import types
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import jet as jax_jet

import lamina
import lamina.numpy as jnp
from lamina.experimental.jet import fact, jet, zero_series
from lamina.experimental.ode import odeint


def test_jet() -> None:
    def f(m):
        return lambda x, y: {"a": m.sin(x) * y, "b": x**3}

    def both(jet, m):
        return lambda *a: [jet(f(m), *a, factorial_scaled=scaled) for scaled in (True, False)]

    at = (0.5, np.array([2.0, 1.0], np.float32))
    series = ((1.0, 0.5), (np.ones(2, np.float32), at[1]))
    got = lamina.jit(both(jet, jnp))(at, series)
    want = jax.jit(both(jax_jet.jet, jax.numpy))(at, series)
    for a, b in zip(lamina.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    with pytest.raises(ValueError, match="inconsistent lengths"):
        jet(f(jnp), at, ((1.0,), series[1]))


def test_odeint_and_its_gradients() -> None:
    """y' = -k y n + c, with exact solutions, by y0, the times and k; integers are arguments too."""
    times = np.array([0.0, 0.5, 1.5], np.float32)
    c = np.float32(0.3)

    def exact(m, y0, t, k):
        return {"y": (y0 - c / (2 * k)) * m.exp(-2 * k * (t - t[0]))[:, None] + c / (2 * k)}

    def solve(y0, t, k):
        def field(y, t, k, n):
            return {"y": -k["k"] * y["y"] * n + c}

        return odeint(field, {"y": y0}, t, {"k": k}, 2, rtol=1e-6, atol=1e-6)

    y0, k = np.array([1.0, -2.0], np.float32), np.float32(0.8)
    weight = np.array([[1.0, 2], [3, -1], [2, 2]], np.float32)
    both = lamina.jit(lamina.value_and_grad(
        lambda *a: jnp.sum(solve(*a)["y"] * weight), argnums=(0, 1, 2)))  # fmt: skip
    theirs = jax.value_and_grad(
        lambda *a: jax.numpy.sum(exact(jax.numpy, *a)["y"] * weight), argnums=(0, 1, 2)
    )
    for a, b in zip(lamina.tree.leaves(both(y0, times, k)), jax.tree.leaves(theirs(y0, times, k))):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)
    with lamina.numpy_rank_promotion("raise"):  # of times in a NumPy array
        slope = lamina.grad(lambda y: odeint(lambda y, t: -y, y, times)[-1].sum())(y0)
    np.testing.assert_allclose(slope, [np.exp(-1.5)] * 2, rtol=1e-4)
    with pytest.raises(TypeError, match="must be arrays or scalars"):
        odeint(lambda y, t, s: y, 1.0, times, "text")


def test_jet_of_an_argument_that_stays() -> None:
    series = ((1.0, 0.5), zero_series)
    got = jet(lambda x, y: jnp.sin(x) * y, (0.3, 2.0), series)
    want = jet(lambda x, y: jnp.sin(x) * y, (0.3, 2.0), ((1.0, 0.5), (0.0, 0.0)))
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6)
    assert fact(5) == 120.0
    np.testing.assert_allclose(fact(jnp.array([0.0, 4.0])), [1, 24], rtol=1e-5)


def annotated(m: types.ModuleType) -> list[Any]:
    """What functions give that are told where and how to run, in one library."""
    ex = {
        name: importlib.import_module(f"{m.__name__}.experimental.{name}")
        for name in ("xla_metadata", "compute_on", "custom_partitioning", "scheduling_groups", "topologies")
    }
    meta, device = ex["xla_metadata"], m.memory.Space.Device
    x = m.numpy.arange(6.0).reshape(2, 3)

    @meta.set_xla_metadata(note="outer")
    @m.jit
    def noted(x):
        with meta.set_xla_metadata(a="b", c=True):
            return meta.set_xla_metadata({"y": x * 2}, d=1)["y"]

    on_host = ex["compute_on"].compute_on(compute_type="device_host", out_memory_spaces=(device, device))
    partitioned = ex["custom_partitioning"].custom_partitioning(lambda x, n: x * n, static_argnums=(1,))
    with pytest.raises(AttributeError):
        partitioned(x, 2)
    partitioned.def_partition(lambda n, mesh, *a: None, sharding_rule="i j -> i j")
    calls = [
        noted, meta.xla_metadata_call(m.numpy.sin, a=1), meta.xla_metadata_call(a=1)(m.numpy.cos),
        meta.xla_metadata_call2(m.numpy.exp, {"a": 1}), meta.must_fuse_call("one")(m.numpy.tanh),
        ex["scheduling_groups"].scheduling_group("first")(m.numpy.sin),
        on_host(lambda x: (x + 1, x.sum())), lambda x: partitioned(x, 3),
    ]  # fmt: skip
    topology = ex["topologies"].get_attached_topology()
    mesh = ex["topologies"].make_mesh(topology, (1,), ("i",)) if len(topology.devices) == 1 else None
    batched = [m.vmap(f)(x) for f in calls[:-1]]  # JAX maps no function with partitioning rules
    return [(f(x), m.jit(f)(x)) for f in calls] + batched + [mesh is None or mesh.axis_names == ("i",)]


def test_functions_that_are_told_how_to_run_give_jaxs_results() -> None:
    for got, want in zip(jax.tree.leaves(annotated(lamina)), jax.tree.leaves(annotated(jax)), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)


@pytest.mark.parametrize("m", [lamina, jax])
def test_mistakes_in_what_functions_are_told(m: types.ModuleType) -> None:
    ex = importlib.import_module(f"{m.__name__}.experimental.custom_partitioning")
    on = importlib.import_module(f"{m.__name__}.experimental.compute_on").compute_on
    f, space = ex.custom_partitioning(m.numpy.sin), m.memory.Space.Device
    with pytest.raises(ValueError, match="Invalid compute type"):
        on(m.numpy.sin, compute_type="moon", out_memory_spaces=space)(1.0)
    with pytest.raises(ValueError, match="must be a tree prefix"):
        on(m.numpy.sin, compute_type="device_host", out_memory_spaces=(space, space))(1.0)
    with pytest.raises(ValueError, match="->"):
        f.def_partition(lambda *a: None, sharding_rule="i j")
    with pytest.raises(TypeError, match="got"):
        f.def_partition(lambda *a: None, sharding_rule=3)
    with pytest.raises(ValueError, match="at least two factors"):
        ex.CompoundFactor("i")
    with pytest.raises(ValueError, match="must be a str or CompoundFactor"):
        ex.ArrayMapping(1)


def test_topologies_are_those_attached() -> None:
    with pytest.raises(NotImplementedError, match="attached devices alone"):
        importlib.import_module("lamina.experimental.topologies").get_topology_desc("v5e:2x2")
