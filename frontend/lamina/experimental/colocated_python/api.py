"""colocated_python, colocated_python_class, colocated_cpu_devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina.api import ShapeDtypeStruct
from lamina.core import tree
from lamina.core.library import library
from lamina.core.trace import Tracer
from lamina.devices import device_put
from lamina.devices import devices as all_devices
from lamina.sharding import Mesh


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """For devices the CPU's on the same machine, in their order; for a mesh one of these.

    devices_or_mesh  a sequence of Devices, or a Mesh.

    Raises ValueError where the CPU is fewer devices than are asked for (num_cpu_devices).

    >>> colocated = lamina.experimental.colocated_python
    >>> len(colocated.colocated_cpu_devices(lamina.devices()[:1]))
    1
    """
    if isinstance(devices_or_mesh, Mesh):
        grid = np.array(colocated_cpu_devices(devices_or_mesh.device_list), dtype=object)
        return Mesh(
            grid.reshape(devices_or_mesh.axis_sizes),
            devices_or_mesh.axis_names,
            axis_types=devices_or_mesh.axis_types,
        )
    devices = tuple(devices_or_mesh)
    if all(d.platform == "cpu" for d in devices):
        return devices
    there = all_devices("cpu")
    if len(devices) > len(there):
        raise ValueError(
            f"Process 0 does not have enough local CPU devices: {len(devices)} are asked for, there "
            f"are {len(there)} (the setting num_cpu_devices)"
        )
    return tuple(there[: len(devices)])


class ColocatedFunction:
    """A Python function, with what is said of its results."""

    def __init__(
        self,
        fun: Callable[..., Any],
        out_specs_fn: Callable[..., Any] | None = None,
        devices: tuple[Any, ...] | None = None,
    ) -> None:
        self._fun, self._out_specs_fn, self._devices = fun, out_specs_fn, devices
        functools.update_wrapper(self, fun)

    def specialize(
        self,
        in_specs: Any = None,
        out_specs_fn: Callable[..., Any] | None = None,
        devices: Sequence[Any] | None = None,
    ) -> ColocatedFunction:
        """The same function, of which more is said.

        in_specs      types of the arguments, which are known when it is called.
        out_specs_fn  types of the arguments -> types (`shape`, `dtype`) of the results.
        devices       where results go, by default where the arguments are.
        """
        return ColocatedFunction(
            self._fun,
            out_specs_fn or self._out_specs_fn,
            tuple(devices) if devices is not None else self._devices,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with arrays on the CPU.

        Raises TypeError where an argument is traced, ValueError where results are not of the types
        that out_specs_fn said.
        """
        leaves = tree.leaves((args, kwargs))
        if any(isinstance(x, Tracer) for x in leaves):
            raise TypeError(
                f"colocated_python: {self._fun} can't be traced. Call it outside of jit, or use "
                f"{library}.pure_callback."
            )
        there = self._devices or _devices_of(leaves)
        cpu = colocated_cpu_devices(there[:1])[0] if there else None
        moved = tree.map(lambda x: device_put(x, cpu), (args, kwargs)) if _elsewhere(there) else (
            args, kwargs
        )  # fmt: skip
        out = self._fun(*moved[0], **moved[1])
        self._check(out, args, kwargs)
        return tree.map(lambda x: device_put(x, there[0]), out) if _elsewhere(there) else out

    def _check(self, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._out_specs_fn is None:
            return
        types = tree.map(lambda x: ShapeDtypeStruct(np.shape(x), x.dtype), (args, kwargs))
        expected, wanted_tree = tree.flatten(self._out_specs_fn(*types[0], **types[1]))
        found, found_tree = tree.flatten(out)
        if wanted_tree != found_tree:
            raise ValueError(
                f"colocated_python: {self._fun} gave {found_tree}, out_specs_fn said {wanted_tree}"
            )
        for have, want in zip(found, expected, strict=True):
            if (have.shape, have.dtype) != (tuple(want.shape), want.dtype):
                raise ValueError(
                    f"colocated_python: {self._fun} gave {have.dtype}{list(have.shape)}, "
                    f"out_specs_fn said {want.dtype}{list(want.shape)}"
                )


def _devices_of(leaves: Sequence[Any]) -> tuple[Any, ...]:
    for x in leaves:
        if hasattr(x, "devices"):
            return tuple(sorted(x.devices()))
    return ()


def _elsewhere(devices: Sequence[Any]) -> bool:
    return any(d.platform != "cpu" for d in devices)


def colocated_python(fun: Callable[..., Any]) -> ColocatedFunction:
    """A function that is called as Python on the machine that its arguments' devices belong to.

    fun  a function of pytrees of arrays, which need not be traceable.

    >>> double = lamina.experimental.colocated_python.colocated_python(lambda x: x * 2)
    >>> print(double(jnp.arange(3)))
    [0 2 4]
    """
    return ColocatedFunction(fun)


def colocated_python_class(cls: type) -> type:
    """A class whose objects are made when a method of theirs is first called; methods are colocated
    functions.

    cls  a class.

    >>> @lamina.experimental.colocated_python.colocated_python_class
    ... class Counter:
    ...     def __init__(self):
    ...         self.count = 0
    ...     def add(self, x):
    ...         self.count += 1
    ...         return x + self.count
    >>> counter = Counter()
    >>> print(counter.add(jnp.array(1)), counter.add(jnp.array(1)))
    2 3
    """

    class Colocated:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._make = functools.partial(cls, *args, **kwargs)
            self._object: Any = None

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not callable(getattr(cls, name, None)):
                raise AttributeError(f"{cls.__name__} has no method {name!r}")

            @functools.wraps(getattr(cls, name))
            def method(*args: Any, **kwargs: Any) -> Any:
                if self._object is None:
                    self._object = self._make()
                return getattr(self._object, name)(*args, **kwargs)

            return colocated_python(method)

    Colocated.__name__ = Colocated.__qualname__ = cls.__name__
    Colocated.__doc__, Colocated.__module__ = cls.__doc__, cls.__module__
    return Colocated
