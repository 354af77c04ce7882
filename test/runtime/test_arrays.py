"""Array: attributes, NumPy and DLPack interchange, Python scalars, text, deletion, sizes."""

import copy
import gc
import pickle
import weakref

import ml_dtypes
import numpy as np
import pytest

from lamina import runtime
from lamina.array import ArrayImpl, from_dlpack, from_numpy

ALL_DTYPES = [
    np.dtype(name)
    for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
    "complex64 complex128".split()
] + [
    np.dtype(getattr(ml_dtypes, name))
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4")
]


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_numpy_round_trip_keeps_dtype_shape_and_bytes(dtype):
    values = np.arange(12).reshape(3, 4).astype(dtype)
    array = from_numpy(values)
    assert (array.shape, array.dtype, array.ndim, array.size) == ((3, 4), dtype, 2, 12)
    assert array.nbytes == values.nbytes and array.itemsize == values.itemsize
    view = np.asarray(array)
    assert view.dtype == dtype and view.tobytes() == values.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 9, (2, 3, 4, 5, 1)])
def test_shapes_of_any_rank(shape):
    values = np.ones(shape, np.float32)
    array = from_numpy(values)
    assert array.shape == shape and np.asarray(array).shape == shape
    assert array.size == values.size and array.nbytes == values.nbytes


def test_from_numpy_copies_any_layout():
    base = np.arange(24.0).reshape(4, 6)
    for values in (base.T, base[::2, ::-1], np.asfortranarray(base), base.astype(">f8")):
        array = from_numpy(values)
        np.testing.assert_array_equal(np.asarray(array), values)
        assert array.dtype.isnative
    array = from_numpy(base)
    base[:] = 0
    assert np.asarray(array)[3, 5] == 23


@pytest.mark.parametrize("values", [np.array(["a"]), np.array([object()]), np.zeros(2, "f4,i4")])
def test_foreign_dtypes_are_refused(values):
    with pytest.raises(TypeError, match="arrays cannot have elements"):
        from_numpy(values)


def test_asarray_shares_memory_read_only():
    array = from_numpy(np.arange(4.0))
    for view in (np.asarray(array), array.numpy_view(), array.__array__()):
        assert not view.flags.writeable
        assert view.ctypes.data == array.unsafe_buffer_pointer()
    assert np.array(array).flags.writeable
    with pytest.raises(ValueError, match="only by copy"):
        array.__array__(np.float32, copy=False)


def test_views_outlive_the_array():
    array = from_numpy(np.arange(1000.0))
    view, memory = np.asarray(array), memoryview(array)
    array.delete()
    del array
    gc.collect()
    from_numpy(np.zeros(1000))  # would reuse the memory if it had been given back
    assert view[999] == 999 and memory[999] == 999


def test_memory_is_aligned():
    for size in (1, 3, 17, 1000, 300_000):
        assert from_numpy(np.zeros(size, np.int8)).unsafe_buffer_pointer() % 64 == 0


def test_buffer_protocol_refuses_writing_and_types_without_a_code():
    with pytest.raises((BufferError, ValueError, TypeError)):
        np.frombuffer(memoryview(from_numpy(np.zeros(3)))).__setitem__(0, 1)
    with pytest.raises(BufferError, match="no code for bfloat16"):
        memoryview(from_numpy(np.zeros(3, ml_dtypes.bfloat16)))


def test_dlpack_both_ways_without_a_copy():
    values = np.arange(6, dtype=np.int32).reshape(2, 3)
    array = from_dlpack(values)
    assert array.unsafe_buffer_pointer() == values.ctypes.data
    back = np.from_dlpack(array)
    assert back.ctypes.data == values.ctypes.data and not back.flags.writeable
    again = from_dlpack(from_numpy(np.ones(3, ml_dtypes.bfloat16)))
    assert again.dtype == ml_dtypes.bfloat16
    assert from_dlpack(values, copy=True).unsafe_buffer_pointer() != values.ctypes.data


def test_dlpack_of_strided_memory_is_a_copy():
    values = np.arange(6.0).reshape(2, 3).T
    array = from_dlpack(values)
    np.testing.assert_array_equal(np.asarray(array), values)
    with pytest.raises(BufferError, match="copy=False"):
        from_dlpack(values, copy=False)


def test_dlpack_keeps_the_producer_alive_and_lets_it_go():
    class Owner(np.ndarray):
        pass

    values = np.zeros(8, np.float32).view(Owner)
    alive = weakref.ref(values)
    array = from_dlpack(values)
    del values
    gc.collect()
    assert alive() is not None
    array.delete()
    gc.collect()
    assert alive() is None


def test_dlpack_capsule_that_nobody_takes_is_freed():
    array = from_numpy(np.zeros(3))
    for versioned in (False, True):
        capsule = runtime.to_dlpack(array, versioned=versioned)
        assert array.buffer.references == 2
        del capsule
        assert array.buffer.references == 1
    with pytest.raises(BufferError, match="no type for float8_e5m2"):
        from_numpy(np.zeros(1, ml_dtypes.float8_e5m2)).__dlpack__()
    with pytest.raises(TypeError, match="unconsumed"):
        runtime.from_dlpack("no capsule")


def test_python_scalars_from_arrays():
    assert int(from_numpy(np.array(3.7))) == 3
    assert float(from_numpy(np.array(2, np.int8))) == 2.0
    assert complex(from_numpy(np.array(1 + 2j))) == 1 + 2j
    assert from_numpy(np.array(5, np.uint8)).__index__() == 5
    assert from_numpy(np.arange(3)).tolist() == [0, 1, 2]
    assert from_numpy(np.arange(3)).item(2) == 2
    assert bool(from_numpy(np.ones((1, 1)))) is True
    assert f"{from_numpy(np.array(1.5)):.3f}" == "1.500"
    many = from_numpy(np.arange(3))
    for convert in (int, float, complex):
        with pytest.raises(TypeError, match="Only scalar arrays"):
            convert(many)
    with pytest.raises(TypeError, match="scalar index"):
        range(from_numpy(np.array(1.0)))
    with pytest.raises(ValueError, match="more than one element is ambiguous"):
        bool(many)
    with pytest.raises(ValueError, match="empty array is ambiguous"):
        bool(from_numpy(np.zeros(0)))


def test_sequence_protocol_and_refusals():
    array = from_numpy(np.arange(6).reshape(2, 3), weak_type=True)
    rows = list(array)
    assert [row.tolist() for row in rows] == [[0, 1, 2], [3, 4, 5]] and rows[0].weak_type
    assert len(array) == 2
    scalar = from_numpy(np.array(1))
    with pytest.raises(TypeError, match="unsized"):
        len(scalar)
    with pytest.raises(TypeError, match="0-d"):
        iter(scalar)
    with pytest.raises(TypeError, match="unhashable type: 'ArrayImpl'"):
        hash(array)
    with pytest.raises(TypeError, match=r"x\.at\[idx\]\.set\(y\)"):
        array[0] = 1
    with pytest.raises(TypeError, match="no constructor"):
        ArrayImpl()


@pytest.mark.parametrize(
    ("values", "weak", "text"),
    [
        (np.float32([1, 2]), False, "Array([1., 2.], dtype=float32)"),
        (np.float32(1), True, "Array(1., dtype=float32, weak_type=True)"),
        (np.zeros((0, 3), np.float32), False, "Array([], shape=(0, 3), dtype=float32)"),
        (np.array([[True], [False]]), False, "Array([[ True],\n       [False]], dtype=bool)"),
    ],
)
def test_repr(values, weak, text):
    assert repr(from_numpy(np.asarray(values), weak_type=weak)) == text


def test_repr_puts_the_dtype_on_a_line_of_its_own_where_it_does_not_fit():
    text = repr(from_numpy(np.full(9, 1.25, np.float32), weak_type=True))
    assert text.splitlines()[-1] == "      dtype=float32, weak_type=True)"


def test_copies_and_pickles():
    for array in (
        from_numpy(np.arange(3, dtype=np.float32), weak_type=True),
        from_numpy(np.ones(2, ml_dtypes.bfloat16)),
    ):
        for other in (copy.copy(array), copy.deepcopy(array), pickle.loads(pickle.dumps(array))):
            assert type(other) is ArrayImpl and other.dtype == array.dtype
            assert other.weak_type == array.weak_type
            assert other.tobytes() == array.tobytes()
            assert other.unsafe_buffer_pointer() != array.unsafe_buffer_pointer()


def test_deleted_arrays_say_so():
    array = from_numpy(np.zeros(3, np.float32))
    array.delete()
    array.delete()
    assert array.is_deleted() and array.shape == (3,)
    uses = (np.asarray, ArrayImpl.block_until_ready, ArrayImpl.is_ready, ArrayImpl.unsafe_buffer_pointer, str)
    for use in uses[:-1]:
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]\."):
            use(array)
    assert "deleted" in repr(array) and "deleted" in str(array)


def test_scalars_and_weak_types():
    kinds = [(True, "bool", False), (1, "int32", True), (1.5, "float32", True),
             (2j, "complex64", True), (np.float64(1), "float32", False)]  # fmt: skip
    for value, dtype, weak in kinds:
        array = runtime.to_array(value)
        assert (array.dtype.name, array.weak_type, array.shape) == (dtype, weak, ())
        assert array.item() == value
    assert runtime.array_from_scalar(1, np.int8).dtype == np.int8
    with pytest.raises(OverflowError, match="int32"):
        runtime.to_array(2**31)
    with pytest.raises(TypeError, match="str cannot be made an array"):
        runtime.to_array("one")


def test_x64_keeps_wide_types():
    runtime.set_thread_config(1, True)
    try:
        assert runtime.x64_enabled()
        assert runtime.to_array(2**40).item() == 2**40
        assert runtime.to_array(1.0).dtype == np.float64
        assert runtime.to_array(np.arange(3)).dtype == np.int64
    finally:
        runtime.clear_thread_config()
    assert runtime.to_array(np.arange(3) + 2**32).tolist() == [0, 1, 2]


def test_views_share_memory():
    array = from_numpy(np.arange(6.0))
    square = runtime.array_view(array, (2, 3))
    weak = runtime.array_with_type(array, True)
    assert square.shape == (2, 3) and weak.weak_type
    pointers = {a.unsafe_buffer_pointer() for a in (array, square, weak)}
    assert len(pointers) == 1 and array.buffer.references == 3
    with pytest.raises(ValueError, match="as many elements"):
        runtime.array_view(array, (4,))
    with pytest.raises(ValueError, match="negative"):
        runtime.array_view(array, (-1, 6))


def test_wrapped_memory_keeps_its_owner():
    class Owner:
        values = np.arange(4, dtype=np.int16)

    owner = Owner()
    alive = weakref.ref(owner)
    array = runtime.wrap_memory(owner, owner.values.ctypes.data, np.int16, (4,))
    del owner
    assert alive() is not None and array.tolist() == [0, 1, 2, 3]
    assert not array.buffer.owned
    del array
    assert alive() is None


def test_aval_slot_and_weak_references():
    array = from_numpy(np.zeros(1))
    assert array.aval_cache is None
    array.aval_cache = "anything"
    assert array.aval_cache == "anything"
    reference = weakref.ref(array)
    del array
    assert reference() is None


def test_impossible_sizes_are_memory_errors():
    values = np.broadcast_to(np.float32(0), (1 << 20, 1 << 20, 1 << 20))
    with pytest.raises(MemoryError, match=r"float32\[1048576,1048576,1048576\]"):
        from_numpy(values)
    values = np.broadcast_to(np.float32(0), (1 << 15, 1 << 15, 1 << 10))
    with pytest.raises(MemoryError, match="out of memory: 4398046511104 bytes for float32"):
        from_numpy(values)


def test_only_stateless_subclasses_can_be_the_array_type():
    class Stateful(runtime.ArrayBase):
        pass

    for wrong in (Stateful, int, 3):
        with pytest.raises(TypeError, match="subclass of ArrayBase"):
            runtime.set_array_type(wrong)
