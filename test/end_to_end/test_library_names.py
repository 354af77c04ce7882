"""Names that libraries written for JAX use beside its main interface, against JAX's."""

import jax
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import config, errors
from lamina.core import pytype_aval_mappings
from lamina.experimental import colocated_python as colocated
from lamina.experimental.shard_map import shard_map
from lamina.extend import core as extend_core
from lamina.extend.linear_util import wrap_init
from lamina.interpreters import pxla, xla
from lamina.sharding import Mesh, PartitionSpec


def windows(lib, start):
    x, y = lib.numpy.arange(10.0), lib.numpy.arange(30.0).reshape(5, 6)
    ds = lib.ds
    return {
        "read": lambda i: x[ds(i, 4)],
        "written": lambda i: x.at[ds(i, 4)].set(0.0),
        "rows": lambda i: y[ds(i, 2), 1],
        "blocks": lambda i: y.at[ds(i, 2), ds(i, 1)].multiply(3.0),
        "partly static": lambda i: y.at[ds(i, 2), 1:3].add(1.0),
        "clipped": lambda i: y.at[ds(i, 2), ds(i, 1)].set(3.0, mode="clip"),
        "new axis": lambda i: y[ds(i, 2), None, ds(i, 1)],
        "beside an array": lambda i: y[ds(abs(i), 2), np.array([0, 1])],
        "static": lambda i: y[1, ds(2, 3)] + x[ds(3)] + x[ds(None)][ds(0, 6, 2)],
    }


@pytest.mark.parametrize("name", windows(lamina, 0))
def test_windows_anywhere(name):
    got, want = (lib.jit(windows(lib, 0)[name]) for lib in (lamina, jax))
    for start in (0, 3, 8, 12, -2, -12):
        np.testing.assert_array_equal(got(start), want(start), err_msg=str(start))
    eager, wanted = (windows(lib, 0)[name] for lib in (lamina, jax))
    for start in (0, 3):
        np.testing.assert_array_equal(eager(start), wanted(start), err_msg=f"eagerly {start}")


def test_windows_under_transformations():
    def results(lib):
        x, read = lib.numpy.arange(10.0), lambda x, i: (x[lib.ds(i, 4)] ** 2).sum()
        return [
            lib.grad(lib.jit(read))(x, 3),
            lib.vmap(read, (None, 0))(x, np.arange(3)),
            lib.jit(lambda i: lib.jit(lambda at: x[at])(lib.ds(i, 2)))(1),
        ]

    for got, want in zip(results(lamina), results(jax), strict=True):
        np.testing.assert_array_equal(got, want)
    assert repr(lamina.ds(1, 2)) == repr(jax.ds(1, 2))
    with pytest.raises(IndexError, match="stride 1"):
        lamina.jit(lambda i: jnp.arange(9)[lamina.ds(i, 2, 2)])(1)
    with pytest.raises(IndexError, match="does not fit"):
        lamina.jit(lambda i: jnp.arange(3)[lamina.ds(i, 4)])(1)
    with pytest.raises(ValueError, match="stride"):
        lamina.ds(0, 1, -1)


def test_the_current_trace_taken_and_set():
    def traced(x):
        with extend_core.take_current_trace() as parent:
            assert float(jnp.sin(0.0)) == 0.0  # at once
            with extend_core.set_current_trace(parent):
                return x * 2

    assert str(lamina.make_jaxpr(traced)(1.0)) == str(lamina.make_jaxpr(lambda x: x * 2)(1.0))
    assert extend_core.concrete_or_error(int, jnp.array(3)) == 3
    assert extend_core.concrete_or_error(None, 3) == 3
    with pytest.raises(errors.ConcretizationTypeError, match="the size"):
        lamina.jit(lambda n: extend_core.concrete_or_error(int, n, "the size"))(3)
    assert extend_core.TraceTag() != extend_core.TraceTag()


def test_argnums_partial():
    from lamina.api_util import argnums_partial, safe_map

    def f(a, b, c):
        return a, b, c

    fun, dynamic = argnums_partial(wrap_init(f), (0, -1), (1, 2, 3))
    assert dynamic == (1, 3)
    assert fun.call_wrapped(10, 30) == (10, 2, 30)
    assert fun == argnums_partial(wrap_init(f), (0, -1), (5, 2, 6))[0]
    assert fun != argnums_partial(wrap_init(f), (0, -1), (5, 2.0, 6))[0]
    with pytest.raises(ValueError, match=r"index 1.*non-hashable"):
        argnums_partial(wrap_init(f), 0, (1, [2], 3))
    loose = argnums_partial(wrap_init(f), 0, (1, [2], 3), require_static_args_hashable=False)[0]
    assert loose.call_wrapped(4) == (4, [2], 3)
    with pytest.raises(ValueError, match="Positional argument indices"):
        argnums_partial(wrap_init(f), 3, (1, 2, 3))
    assert safe_map(max, [1, 5], [3, 4]) == [3, 5]
    with pytest.raises(ValueError, match="lengths"):
        safe_map(max, [1], [2, 3])


class Box:
    """An array of another library's."""

    def __init__(self, value):
        self.value = value

    shape, dtype = (property(lambda self, n=n: getattr(self.value, n)) for n in ("shape", "dtype"))

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.value, dtype)


def test_types_of_other_libraries_as_arrays():
    pytype_aval_mappings[Box] = pytype_aval_mappings[np.ndarray]
    xla.canonicalize_dtype_handlers[Box] = xla.canonicalize_dtype_handlers[np.ndarray]
    try:
        x = Box(np.arange(3.0))
        double = lamina.jit(lambda x: x * 2)
        for _ in range(2):
            np.testing.assert_array_equal(double(x), [0, 2, 4])
        np.testing.assert_array_equal(lamina.grad(lambda x: (x * x).sum())(x), [0, 2, 4])
        np.testing.assert_array_equal(lamina.jit(lambda y: x + y)(1.0), [1, 2, 3])
        assert Box in pytype_aval_mappings and len(xla.canonicalize_dtype_handlers) > 1
    finally:
        del pytype_aval_mappings[Box], xla.canonicalize_dtype_handlers[Box]
    with pytest.raises(TypeError, match="not a valid"):
        lamina.jit(lambda x: x * 2)(Box(np.arange(3.0)))
    assert float(xla.apply_primitive(lamina.lax.sin_p, jnp.float32(0))) == 0.0


def test_settings_by_their_names_in_jax(tmp_path, monkeypatch):
    platforms = config.platforms.value
    try:
        config.update("jax_platform_name", "cpu")
        assert config.platforms.value == ("cpu",) and config.jax_platform_name == "cpu"
        config.update("jax_platforms", "cpu,gpu")
        assert config.platforms.value == ("cpu", "cuda")
        with pytest.raises(ValueError, match="tpu"):
            config.update("jax_platforms", "tpu")
    finally:
        config.platforms.set(platforms)
    monkeypatch.setenv("LAMINA_CACHE_DIR", "elsewhere")
    config.update("jax_compilation_cache_dir", str(tmp_path / "programs"))
    assert config.jax_compilation_cache_dir == str(tmp_path / "programs")
    lamina.jit(lambda x: lamina.lax.sin(x) * 1.25)(1.0)
    assert list((tmp_path / "programs").rglob("*"))
    config.update("jax_compilation_cache_dir", None)
    assert config.x64_enabled is config.enable_x64.value


def test_modules_of_extend_are_there_by_name():
    import lamina.extend

    for name in ("backend", "core", "ifrt_programs", "linear_util", "random", "source_info_util"):
        assert getattr(lamina.extend, name).__name__ == f"lamina.extend.{name}" and name in dir(lamina.extend)


def test_small_names():
    assert jnp.arange(2).aval.at_least_vspace().dtype == lamina.float0
    device = lamina.devices()[0]
    assert device.client.platform == "cpu" and device in device.client.devices()
    assert float(lamina.grad(lambda x: x * x, reduce_axes=())(3.0)) == 6.0
    with pytest.raises(NotImplementedError, match="psum"):
        lamina.grad(lambda x: x * x, reduce_axes=("batch",))
    mesh = Mesh(np.array(lamina.devices()), ("x",))
    double = shard_map(lambda x: 2 * x, mesh, PartitionSpec("x"), PartitionSpec("x"), check_rep=False)
    np.testing.assert_array_equal(double(np.arange(4)), [0, 2, 4, 6])
    with mesh:
        assert pxla.thread_resources.env.physical_mesh == mesh
    from lamina.extend.ifrt_programs import ifrt_programs

    with pytest.raises(AttributeError, match="no IFRT"):
        ifrt_programs.make_hlo_program("")


def test_python_beside_the_devices():
    @colocated.colocated_python
    def bins(x):
        return jnp.asarray(np.histogram(np.asarray(x), 3)[0].astype(np.int32))

    np.testing.assert_array_equal(bins(jnp.arange(6.0)), [2, 2, 2])
    typed = bins.specialize(out_specs_fn=lambda x: lamina.ShapeDtypeStruct((3,), np.int32))
    np.testing.assert_array_equal(typed(jnp.arange(6.0)), [2, 2, 2])
    with pytest.raises(ValueError, match="out_specs_fn"):
        bins.specialize(out_specs_fn=lambda x: x)(jnp.arange(6.0))
    with pytest.raises(TypeError, match="pure_callback"):
        lamina.jit(bins)(jnp.arange(6.0))

    @colocated.colocated_python_class
    class Counter:
        made = 0

        def __init__(self, start):
            type(self).made += 1
            self.count = start

        def add(self, x):
            self.count += int(x)
            return jnp.asarray(self.count)

    counter = Counter(10)
    assert int(counter.add(jnp.array(1))) == 11 and int(counter.add(jnp.array(2))) == 13
    devices = lamina.devices()
    assert colocated.colocated_cpu_devices(devices) == tuple(devices)
    mesh = Mesh(np.array(devices), ("x",))
    assert colocated.colocated_cpu_devices(mesh) == mesh
