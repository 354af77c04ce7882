"""Arrays of JAX in lamina's memory: from and to the host, shared, deleted, donated."""

import gc

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("on_lamina")

_DTYPES = [
    "bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32", "complex64",
    ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4,
]  # fmt: skip


def _values(dtype, shape):
    count = int(np.prod(shape))
    return (np.arange(count) % 7).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", _DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (3, 4), (2, 3, 4)])
def test_round_trip(dtype, shape, lamina_device):
    given = _values(dtype, shape)
    array = jax.device_put(given, lamina_device)
    assert array.devices() == {lamina_device} and array.dtype == given.dtype
    np.testing.assert_array_equal(np.asarray(array), given)
    np.testing.assert_array_equal(np.asarray(jnp.flip(array)), np.flip(given))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
def test_round_trip_of_64_bits(dtype, lamina_device):
    with jax.enable_x64(True):
        given = _values(dtype, (3, 4))
        array = jax.device_put(given, lamina_device)
        np.testing.assert_array_equal(np.asarray(array + array), given + given)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::2, ::-1],
        lambda a: a[1:, 2:],
        lambda a: np.broadcast_to(a[:1], a.shape),
        lambda a: a[:, 0],
        lambda a: a[:, :0],
    ],
)
def test_strided_arrays(view, lamina_device):
    given = view(np.arange(48.0, dtype="float32").reshape(6, 8))
    np.testing.assert_array_equal(np.asarray(jax.device_put(given, lamina_device)), given)


def test_a_large_transposed_array(lamina_device):
    given = np.random.default_rng(0).standard_normal((1500, 900), np.float32).T
    np.testing.assert_array_equal(np.asarray(jax.device_put(given, lamina_device)), given)


def test_misaligned_memory(lamina_device):
    raw = np.arange(41, dtype="uint8")[1:].view("float32")
    array = jax.device_put(raw, lamina_device)
    np.testing.assert_array_equal(np.asarray(array * 1), raw)


def test_what_the_user_writes_later_is_not_seen(lamina_device):
    given = np.zeros(1000, "float32")
    array = jnp.array(given, device=lamina_device)
    given[:] = 1
    assert float(array.sum()) == 0


def test_reading_takes_no_copy():
    array = jnp.arange(1000.0) + 1
    pointer = array.unsafe_buffer_pointer()
    assert np.asarray(array).ctypes.data == pointer
    assert np.from_dlpack(array).ctypes.data == pointer


def test_dlpack_keeps_memory_alive():
    view = np.from_dlpack(jnp.full(100_000, 3.0))
    gc.collect()
    others = [jnp.full(100_000, float(i)) for i in range(4)]
    assert (view == 3).all() and len(others) == 4


def test_dlpack_into_lamina(lamina_device):
    given = np.arange(12.0, dtype="float32").reshape(3, 4)
    array = jax.dlpack.from_dlpack(given, device=lamina_device)
    np.testing.assert_array_equal(np.asarray(array + 1), given + 1)
    transposed = jax.dlpack.from_dlpack(given.T, device=lamina_device)
    np.testing.assert_array_equal(np.asarray(transposed), given.T)


def test_between_lamina_and_the_cpu_backend(lamina_device):
    cpu = jax.devices("cpu")[0]
    array = jnp.arange(5.0)
    there = jax.device_put(array, cpu)
    back = jax.device_put(there * 2, lamina_device)
    assert there.devices() == {cpu} and back.devices() == {lamina_device}
    np.testing.assert_array_equal(np.asarray(back), 2 * np.arange(5.0))


def test_deleted_arrays_say_so():
    array = jnp.arange(5.0)
    array.delete()
    assert array.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(array)
    with pytest.raises(RuntimeError, match="deleted"):
        jax.block_until_ready(array + 1)


def test_donation_takes_the_memory():
    step = jax.jit(lambda a, b: a + b, donate_argnums=0)
    array = jnp.ones(100_000) * 2
    pointer = array.unsafe_buffer_pointer()
    result = step(array, jnp.ones(100_000))
    assert array.is_deleted()
    assert result.unsafe_buffer_pointer() == pointer
    with pytest.raises(RuntimeError, match="deleted"):
        step(array, jnp.ones(100_000))


def test_donated_memory_that_somebody_looks_at_is_left_alone():
    step = jax.jit(lambda a: a + 1, donate_argnums=0)
    array = jnp.ones(100_000) * 2
    seen = np.from_dlpack(array)
    result = step(array)
    assert array.is_deleted()
    assert (seen == 2).all() and (np.asarray(result) == 3).all()


@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_donating_one_array_twice():
    step = jax.jit(lambda a, b: a + b, donate_argnums=(0, 1))
    array = jnp.ones(10)
    with pytest.raises((RuntimeError, ValueError), match="donate the same buffer twice"):
        step(array, array)


def test_copies_to_the_host_in_advance():
    array = jnp.arange(1000.0) * 2
    array.copy_to_host_async()
    np.testing.assert_array_equal(np.asarray(array), 2 * np.arange(1000.0))


def test_memory_statistics(lamina_device):
    before = lamina_device.memory_stats()["bytes_in_use"]
    array = (jnp.zeros(1 << 20) + 1).block_until_ready()
    assert lamina_device.memory_stats()["bytes_in_use"] >= before + array.nbytes


@pytest.mark.parametrize("kind", ["device", "pinned_host", "unpinned_host"])
def test_memories(kind, lamina_device):
    sharding = jax.sharding.SingleDeviceSharding(lamina_device, memory_kind=kind)
    array = jax.device_put(jnp.arange(4.0), sharding)
    assert array.sharding.memory_kind == kind
    np.testing.assert_array_equal(np.asarray(array), np.arange(4.0))


def test_keys():
    key = jax.random.key(3)
    there = jax.random.uniform(key, (5,))
    with jax.default_device(jax.devices("cpu")[0]):
        expected = jax.random.uniform(jax.random.key(3), (5,))
    np.testing.assert_array_equal(np.asarray(there), np.asarray(expected))
