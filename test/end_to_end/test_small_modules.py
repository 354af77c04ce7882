"""Modules that programs import beside the large ones, against JAX where it has an answer."""

import jax
import numpy as np
import pytest
from jax.experimental import mesh_utils as jax_mesh_utils
from jax.experimental import multihost_utils as jax_multihost_utils

import lamina
import lamina.numpy as jnp
from lamina.experimental import hijax, layout, mesh_utils, multihost_utils, pjit
from lamina.experimental.compilation_cache import compilation_cache
from lamina.extend import backend, core
from lamina.extend import random as extend_random
from lamina.interpreters import partial_eval as pe
from lamina.sharding import AbstractMesh, Mesh, NamedSharding, auto_axes, explicit_axes
from lamina.sharding import PartitionSpec as P


def test_one_process():
    tree = {"a": np.arange(3), "b": 2.0}
    for tiled in (False, True):
        got = multihost_utils.process_allgather(tree, tiled)
        want = jax_multihost_utils.process_allgather(tree, tiled)
        assert lamina.tree.structure(got) == lamina.tree.structure(want)
        for x, y in zip(lamina.tree.leaves(got), lamina.tree.leaves(want)):
            np.testing.assert_array_equal(x, y)
    assert multihost_utils.broadcast_one_to_all(tree)["b"] == 2.0
    multihost_utils.sync_global_devices("here")
    multihost_utils.assert_equal(tree)
    lamina.distributed.initialize(num_processes=1)
    assert lamina.distributed.is_initialized()
    with pytest.raises(RuntimeError, match="once"):
        lamina.distributed.initialize()
    lamina.distributed.shutdown()
    with pytest.raises(RuntimeError, match="start all of them at once, by `mpiexec -n 2"):
        lamina.distributed.initialize("localhost:1234", num_processes=2, process_id=0)


def test_the_folder_of_compiled_programs(tmp_path, monkeypatch):
    monkeypatch.setenv("LAMINA_CACHE", "1")
    before = lamina.config.cache_dir.value
    try:
        compilation_cache.set_cache_dir(tmp_path / "programs")
        assert lamina.config.jax_compilation_cache_dir == str(tmp_path / "programs")
        lamina.jit(lambda x: x * 3.0625 + 1)(2.0)
        assert any((tmp_path / "programs").iterdir())
        compilation_cache.reset_cache()
        assert lamina.config.cache_dir.value is None
    finally:
        lamina.config.update("cache_dir", before)


def test_meshes_and_shardings():
    devices = mesh_utils.create_device_mesh((1, 1), lamina.devices()[:1])
    wanted = jax_mesh_utils.create_device_mesh((1, 1), jax.devices()[:1])
    assert devices.shape == wanted.shape
    with pytest.raises(ValueError, match="must equal the product of mesh_shape"):
        mesh_utils.create_device_mesh((2, 3), lamina.devices()[:1])
    mesh = lamina.make_mesh((1, 1), ("x", "y"))
    place = NamedSharding(mesh, P("x"))
    x = np.arange(4.0, dtype=np.float32)
    spread = multihost_utils.host_local_array_to_global_array(x, mesh, P("x"))
    assert spread.sharding.spec == P("x")
    assert auto_axes(jnp.sin, out_sharding=place)(x).sharding == place
    with lamina.set_mesh(Mesh(devices, ("x", "y"))):
        assert explicit_axes(jnp.sin, in_sharding=P("x"))(x).sharding.spec == P("x")
        assert auto_axes(lambda v: v, out_sharding=P("x"))(x) is x  # they are
    with pytest.raises(TypeError, match="out_sharding"):
        auto_axes(jnp.sin)(x)
    assert jnp.dot(x[:, None], x[None], out_sharding=place).sharding == place
    nothing = lamina.typeof(x).sharding
    assert nothing.mesh == AbstractMesh((), ())
    key = lamina.random.key(0)
    drawn = lamina.jit(lambda: lamina.random.bernoulli(key, shape=(4,), out_sharding=nothing))()
    np.testing.assert_array_equal(drawn, jax.random.bernoulli(jax.random.key(0), shape=(4,)))
    assert layout.with_layout_constraint(x, layout.Layout((0,))) is x
    with pytest.raises(NotImplementedError, match="row-major"):
        layout.with_layout_constraint(x[None], layout.Layout((1, 0)))
    with lamina.make_mesh((1,), ("x",)):
        doubled = pjit.pjit(lambda v: v + v, in_shardings=P("x"), out_shardings=P("x"))(x)
    np.testing.assert_array_equal(doubled, x + x)
    assert doubled.sharding.spec == P("x")


def test_einsum_with_a_product_of_ones_own():
    seen = []

    def product(a, b, dimension_numbers, **kwargs):
        seen.append(dimension_numbers)
        return lamina.lax.dot_general(a, b, dimension_numbers, **kwargs)

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    got = jnp.einsum("ij,kj->ik", x, x, _dot_general=product)
    np.testing.assert_array_equal(got, x @ x.T)
    assert len(seen) == 1


def test_what_libraries_of_transformations_use():
    assert backend.get_backend().platform == "cpu" and "cpu" in backend.backends()
    assert backend.get_backend("cpu").device_count() == len(lamina.devices("cpu"))
    assert backend.get_default_device() in lamina.devices()
    with pytest.raises(RuntimeError):
        backend.get_backend("tpu")
    keys = extend_random.random_seed(np.arange(2), extend_random.threefry_prng_impl)
    wanted = [jax.random.key_data(jax.random.key(i)) for i in range(2)]
    np.testing.assert_array_equal(lamina.random.key_data(keys), wanted)
    before = core.get_opaque_trace_state()
    assert before == core.get_opaque_trace_state()
    seen = []
    lamina.make_jaxpr(lambda: seen.append(core.get_opaque_trace_state()))()
    assert seen[0] != before
    fun, structure = lamina.api_util.flatten_fun_nokwargs(
        lamina.extend.linear_util.wrap_init(lambda p, y: {"known": p["x"] + 1, "not": y * 2}),
        lamina.tree.structure(({"x": 0}, 0)),
    )
    unknown = pe.PartialVal.unknown(core.ShapedArray((2,), np.float32))
    jaxpr, out, consts = pe.trace_to_jaxpr_nounits(fun, [pe.PartialVal.known(1.0), unknown])
    assert sorted(structure().entries()) == ["known", "not"]
    assert out[0].is_known() and float(out[0].const) == 2 and not out[1].is_known()
    assert out[1].aval.shape == (2,) and len(jaxpr.eqns) == 1
    with pytest.raises(NotImplementedError, match="arrays only"):
        hijax.HiPrimitive("mine").bind(1.0)
    with pytest.raises(ValueError, match="used twice"):
        with lamina.debug_key_reuse(True):
            pass
    with lamina.check_tracer_leaks(True), lamina.debug_key_reuse(False):
        assert float(lamina.jit(jnp.sin)(0.0)) == 0
