"""`Array`: the class of all arrays, whatever holds their elements.

Values of three kinds are arrays. Two are subclasses: `ArrayImpl`, whose elements are in memory of the
runtime, and `KeyArray`, of random keys. Tracers stand for arrays; they are instances as far as
`isinstance` asks, so that one annotation and one check fit both sides of `jit`.

Operators and methods that compute are attached in `lamina/_connect.py`: they need the layers above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lamina.core.library import library
from lamina.core.trace import Tracer


class ArrayMeta(type):
    """The class of `Array`: tracers are instances of it, without being of a subclass."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is Array and isinstance(instance, Tracer)
        )


def _own(array: Any, name: str) -> Any:
    """What an array has of this name by its own class. AttributeError where that has nothing."""
    if getattr(type(array), name, None) is Array.__dict__[name]:
        raise AttributeError(f"{type(array).__name__!r} has no {name}")
    return getattr(array, name)


def _property(name: str, doc: str) -> property:
    return property(lambda self: _own(self, name), doc=doc)


def _method(name: str, doc: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _own(self, name)(*args, **kwargs)

    method.__name__, method.__qualname__, method.__doc__ = name, f"Array.{name}", doc
    return method


class Array(metaclass=ArrayMeta):
    """An immutable n-dimensional array; for `isinstance`, a tracer that stands for one, too.

    Arrays are made by functions: `lamina.numpy.array`, `zeros`, `arange`, ... What they can do is
    found on the class as well, so that `lamina.Array.sum(x)` is `x.sum()`.
    """

    __slots__ = ()
    __array_priority__ = 100

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        if cls is Array:
            raise TypeError(
                f"{library}.Array has no constructor: use {library}.numpy.array, zeros, or another function "
                "that makes arrays"
            )
        return super().__new__(cls)

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def dtype(self) -> Any: ...
        @property
        def ndim(self) -> int: ...
        @property
        def size(self) -> int: ...
        @property
        def itemsize(self) -> int: ...
        @property
        def nbytes(self) -> int: ...
        @property
        def weak_type(self) -> bool: ...
        def __getattr__(self, name: str) -> Any: ...

    else:
        shape = _property("shape", "Sizes of the dimensions, a tuple of int.")
        dtype = _property("dtype", "Type of the elements, a numpy.dtype or that of keys.")
        ndim = _property("ndim", "Number of dimensions.")
        size = _property("size", "Number of elements.")
        itemsize = _property("itemsize", "Bytes of one element.")
        nbytes = _property("nbytes", "Bytes of all elements.")
        weak_type = _property("weak_type", "Whether the dtype yields to others in promotion.")
        aval = _property("aval", "Shape, dtype and whether that is weak.")
        sharding = _property("sharding", "Where the array lies: a Sharding.")
        format = _property("format", "How the array lies: a layout, which is row-major, and a sharding.")
        device = _property("device", "The device that holds it; its sharding where several do.")
        committed = _property("committed", "Whether the user placed the array on a device.")
        is_fully_addressable = _property(
            "is_fully_addressable", "Whether this process can read all of the array."
        )
        is_fully_replicated = _property(
            "is_fully_replicated", "Whether every device that holds a part holds all."
        )
        addressable_shards = _property("addressable_shards", "The parts, one for each device.")
        global_shards = _property("global_shards", "The parts, one for each device.")
        addressable_data = _method(
            "addressable_data",
            """The part on one of the devices, an array of one device.

            index  which device, from 0.

            >>> print(jnp.arange(3).addressable_data(0))
            [0 1 2]
            """,
        )
        block_until_ready = _method(
            "block_until_ready",
            """The array, once it is computed. Raises what went wrong in computing it.

            >>> print(jnp.arange(3).block_until_ready())
            [0 1 2]
            """,
        )
        copy = _method(
            "copy",
            """An array with equal content in memory of its own.

            >>> print(jnp.arange(3).copy())
            [0 1 2]
            """,
        )
        copy_to_host_async = _method(
            "copy_to_host_async",
            """Begins the copy that numpy.asarray waits for.

            >>> jnp.arange(3).copy_to_host_async()
            """,
        )
        delete = _method(
            "delete",
            """Gives the memory back; the array can't be used afterwards.

            >>> x = jnp.arange(3)
            >>> x.delete()
            >>> x.is_deleted()
            True
            """,
        )
        devices = _method(
            "devices",
            """The devices that hold a part of the array: a set.

            >>> len(jnp.arange(3).devices())
            1
            """,
        )
        is_deleted = _method(
            "is_deleted",
            """Whether delete() or a donation took the content.

            >>> jnp.arange(3).is_deleted()
            False
            """,
        )
        is_ready = _method(
            "is_ready",
            """Whether block_until_ready would return at once.

            >>> jnp.arange(3).block_until_ready().is_ready()
            True
            """,
        )
        item = _method(
            "item",
            """One element as a Python scalar.

            args  none, for an array of one element; an index, or indices of each axis.

            Raises ValueError where there are more elements and no index.

            >>> jnp.array([5, 6, 7]).item(1)
            6
            """,
        )
        on_device_size_in_bytes = _method(
            "on_device_size_in_bytes",
            """Bytes of the array's memory.

            >>> jnp.ones(3, "float32").on_device_size_in_bytes()
            12
            """,
        )
        tobytes = _method(
            "tobytes",
            """The elements as bytes, as numpy.ndarray.tobytes gives them.

            >>> jnp.array([1, 2], "uint8").tobytes()
            b'\\x01\\x02'
            """,
        )
        tolist = _method(
            "tolist",
            """Nested lists of Python scalars; a scalar for an array of rank 0.

            >>> jnp.array([[1, 2], [3, 4]]).tolist()
            [[1, 2], [3, 4]]
            """,
        )
        unsafe_buffer_pointer = _method(
            "unsafe_buffer_pointer",
            """Address of the first element, which is good as long as the array lives.

            >>> x = jnp.arange(3)
            >>> x.unsafe_buffer_pointer() == np.asarray(x).ctypes.data
            True
            """,
        )
