"""DLPack both ways: what is shared, what is copied, and how long it lives."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lamina

pytestmark = pytest.mark.usefixtures("on_lamina")

_ALIGNED = 64  # bytes: what code may count on


def _at(offset, dtype="float32", count=64):
    """Numbers that begin so many bytes after a multiple of 64."""
    dtype = np.dtype(dtype)
    raw = np.zeros(count * dtype.itemsize + 2 * _ALIGNED, np.uint8)
    begin = -raw.ctypes.data % _ALIGNED + offset
    array = raw[begin : begin + count * dtype.itemsize].view(dtype)
    array[:] = np.arange(count) % 2 if dtype.kind == "b" else np.arange(count)
    return array


def _is_shared(array, given):
    return array.unsafe_buffer_pointer() == given.ctypes.data


@pytest.mark.parametrize("offset", [0, 64, 1, 2, 4, 8, 16, 32])
def test_memory_is_taken_where_it_is_aligned(offset, lamina_device):
    given = _at(offset)
    array = jax.dlpack.from_dlpack(given, device=lamina_device)
    assert array.devices() == {lamina_device}
    assert _is_shared(array, given) == (offset % _ALIGNED == 0)
    np.testing.assert_array_equal(np.asarray(jnp.flip(array)), np.flip(given))


@pytest.mark.parametrize("name", "bool int8 int16 int32 uint8 uint16 uint32 float16 float32 complex64".split())
def test_types_both_ways(name, lamina_device):
    given = _at(0, name)
    array = jax.dlpack.from_dlpack(given, device=lamina_device)
    assert array.dtype == given.dtype and _is_shared(array, given)
    back = np.from_dlpack(array)
    assert back.dtype == given.dtype and back.ctypes.data == given.ctypes.data and not back.flags.writeable
    np.testing.assert_array_equal(back, given)


@pytest.mark.parametrize("name", ["int64", "uint64", "float64", "complex128"])
def test_types_of_64_bits(name, lamina_device):
    with jax.enable_x64(True):
        array = jax.dlpack.from_dlpack(_at(0, name), device=lamina_device)
        assert array.dtype == name
        np.testing.assert_array_equal(np.from_dlpack(array), _at(0, name))


def test_bfloat16_and_float8_by_lamina(lamina_device):
    """NumPy has no DLPack type for them."""
    for dtype in (jnp.bfloat16, jnp.float8_e4m3fn, jnp.float8_e5m2):
        array = jnp.arange(5).astype(dtype)
        with pytest.raises(BufferError):
            np.from_dlpack(array)
    there = lamina.dlpack.from_dlpack(jnp.arange(5).astype(jnp.bfloat16))
    assert there.dtype == jnp.bfloat16 and float(there.sum()) == 10


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (1, 4, 1)])
def test_shapes(shape, lamina_device):
    given = np.full(shape, 7.0, np.float32)
    array = jax.dlpack.from_dlpack(given, device=lamina_device)
    np.testing.assert_array_equal(np.asarray(array), given)
    np.testing.assert_array_equal(np.from_dlpack(array), given)


def test_strides(lamina_device):
    """Permuted dimensions are put in order; what has gaps or is repeated JAX refuses, as on its CPU."""
    given = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for axes in ((2, 1, 0), (1, 0, 2), (0, 2, 1)):
        array = jax.dlpack.from_dlpack(given.transpose(axes), device=lamina_device)
        np.testing.assert_array_equal(np.asarray(array), given.transpose(axes))
        assert not _is_shared(array, given)
    for view in (given[:, ::2], given[::-1], np.broadcast_to(given[:1], given.shape), given[..., 1]):
        with pytest.raises(jax.errors.JaxRuntimeError, match="compact"):
            jax.dlpack.from_dlpack(view, device=lamina_device)


def test_read_only_memory_is_shared_and_never_written(lamina_device):
    given = _at(0)
    given.flags.writeable = False
    array = jax.dlpack.from_dlpack(given, device=lamina_device)
    assert _is_shared(array, given)
    result = jax.jit(lambda x: x + 1, donate_argnums=0)(array)
    assert not _is_shared(result, given)
    np.testing.assert_array_equal(given, np.arange(64))
    np.testing.assert_array_equal(np.asarray(result), np.arange(64) + 1)


def test_memory_of_others_is_not_donated(lamina_device):
    given = _at(0)
    array = jax.dlpack.from_dlpack(given, device=lamina_device)
    jax.jit(lambda x: x * 2, donate_argnums=0)(array).block_until_ready()
    assert array.is_deleted()
    np.testing.assert_array_equal(given, np.arange(64))


def test_the_owner_lives_as_long_as_the_array(lamina_device):
    class Owner(np.ndarray):
        pass

    given = _at(0).view(Owner)
    owner = weakref.ref(given)
    array = jax.dlpack.from_dlpack(given, device=lamina_device)
    del given
    gc.collect()
    assert owner() is not None
    later = jnp.sin(array) + array  # may still be under way when the array goes
    del array
    wanted = np.arange(64, dtype=np.float32)
    np.testing.assert_allclose(np.asarray(later), np.sin(wanted) + wanted, rtol=1e-5)
    del later
    gc.collect()
    assert owner() is None


def test_the_array_lives_as_long_as_who_reads_it():
    views = [np.from_dlpack(jnp.full(10_000, float(i))) for i in range(20)]
    gc.collect()
    others = [jnp.full(10_000, -1.0).block_until_ready() for _ in range(20)]
    assert all((view == i).all() for i, view in enumerate(views)) and len(others) == 20


def test_what_is_under_way_is_waited_for():
    x = jnp.ones((700, 700))
    np.testing.assert_allclose(np.from_dlpack((x @ x) @ x)[0, :3], 490_000.0)


def test_with_lamina_in_one_process(lamina_device):
    """Without a copy, in both directions."""
    array = jnp.arange(1000.0) + 1
    there = lamina.dlpack.from_dlpack(array)
    assert there.unsafe_buffer_pointer() == array.unsafe_buffer_pointer()
    back = jax.dlpack.from_dlpack(lamina.numpy.sin(there), device=lamina_device)
    np.testing.assert_allclose(np.asarray(back), np.sin(np.arange(1000.0) + 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("offset", [0, 1, 4, 16])
def test_host_arrays_in_any_place(offset, lamina_device):
    """device_put: memory on which elements do not begin at multiples of their size is copied."""
    given = _at(offset)
    array = jax.device_put(given, lamina_device)
    assert not (offset % 4 and _is_shared(array, given))
    np.testing.assert_array_equal(np.asarray(array * 1), given)
