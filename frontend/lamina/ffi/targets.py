"""Which compiled functions calls may name."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path
from typing import Any

from lamina.core.library import library
from lamina.errors import JaxRuntimeError

_targets: dict[str, int] = {}  # the addresses of handlers, by name

# Python's functions on capsules: what they give, what they take.
_OBJECT, _ADDRESS, _TEXT = ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p
_new_capsule = ctypes.PYFUNCTYPE(_OBJECT, _ADDRESS, _TEXT, _ADDRESS)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_capsule_name = ctypes.PYFUNCTYPE(_TEXT, _OBJECT)(("PyCapsule_GetName", ctypes.pythonapi))
_capsule_address = ctypes.PYFUNCTYPE(_ADDRESS, _OBJECT, _TEXT)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Makes a compiled handler known, for ffi_call.

    name         what calls say.
    fn           a PyCapsule of the handler's address (see pycapsule), or {"execute": such a
                 capsule}.
    platform     "cpu"; handlers for others are left aside, since there only the CPU calls them.
    api_version  1, XLA's typed interface.

    Raises TypeError where fn is no capsule, ValueError for a name that has another handler,
    NotImplementedError for stages other than execute and for api_version 0, whose functions have no
    types.

    >>> import ctypes
    >>> handler = ctypes.CDLL(None).abs  # as ctypes.CDLL("libscale.so").Scale
    >>> lamina.ffi.register_ffi_target("help.of.register_ffi_target", lamina.ffi.pycapsule(handler))
    """
    if api_version != 1:
        raise NotImplementedError(
            f"register_ffi_target({name!r}): {library} calls handlers of the typed interface "
            f"(api_version=1), not of api_version={api_version}"
        )
    if isinstance(fn, dict):
        others = sorted(set(fn) - {"execute"})
        if others or not fn:
            raise NotImplementedError(
                f"register_ffi_target({name!r}): {library} calls handlers of the stage execute alone, "
                f"got {', '.join(others) or 'none'}"
            )
        fn = fn["execute"]
    address = capsule_address(name, fn)
    if platform.lower() not in ("cpu", "host"):
        return
    if _targets.setdefault(name, address) != address:
        raise ValueError(f"the FFI target {name!r} is registered already, with another handler")


def address_of(name: str) -> int:
    """The handler of a name; JaxRuntimeError where there is none."""
    if name not in _targets:
        raise JaxRuntimeError(
            f"UNIMPLEMENTED: no FFI target {name!r} is registered for the CPU: "
            f"{library}.ffi.register_ffi_target makes one known"
        )
    return _targets[name]


def find(name: str) -> int | None:
    """The address of a name's handler; None where there is none."""
    return _targets.get(name)


def pycapsule(funcptr: Any) -> Any:
    """A PyCapsule of a function of a library that ctypes has loaded, for register_ffi_target.

    funcptr  the function.

    >>> import ctypes
    >>> type(lamina.ffi.pycapsule(ctypes.CDLL(None).abs)).__name__
    'PyCapsule'
    """
    try:
        address = ctypes.cast(funcptr, ctypes.c_void_p).value
    except ctypes.ArgumentError as e:
        raise TypeError(f"pycapsule takes a ctypes function pointer, got {funcptr!r}") from e
    return _new_capsule(address, None, None)


def capsule_address(name: str, capsule: Any) -> int:
    """The address of a handler in a PyCapsule; TypeError, which names the target, for anything else."""
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(
            f"register_ffi_target({name!r}) takes a PyCapsule, as {library}.ffi.pycapsule makes it, got "
            f"{capsule!r}"
        )
    return int(_capsule_address(capsule, _capsule_name(capsule)))


def include_dir() -> str:
    """The folder of XLA's headers, which handlers are compiled with: jaxlib's, where it is
    installed.

    Raises FileNotFoundError where it is not.

    >>> import importlib.util
    >>> if importlib.util.find_spec("jaxlib"):
    ...     assert lamina.ffi.include_dir().endswith("include")
    """
    spec = importlib.util.find_spec("jaxlib")
    places = [] if spec is None else spec.submodule_search_locations or []
    for place in places:
        folder = Path(place) / "include"
        if folder.is_dir():
            return str(folder)
    raise FileNotFoundError(f"{library} has no copy of XLA's headers: they come with the package jaxlib")


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Says that a target works on batches in parts, to no effect: programs on sharded arrays run it
    on gathered ones.

    name  of the target.

    >>> lamina.ffi.register_ffi_target_as_batch_partitionable("scale")
    """


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Not here: handlers are given no objects of their own types. Raises NotImplementedError.

    name               of the type.
    type_registration  how to make and delete its objects.
    platform           of the handlers.

    >>> lamina.ffi.register_ffi_type("state", {})
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        f"register_ffi_type({name!r}): {library} keeps no state for FFI handlers, so no types of it"
    )


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Not here: see register_ffi_type. Raises NotImplementedError.

    name      of the type.
    obj       a PyCapsule of its id.
    platform  of the handlers.

    >>> lamina.ffi.register_ffi_type_id("state", None)
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        f"register_ffi_type_id({name!r}): {library} keeps no state for FFI handlers, so no types of it"
    )


def build_ffi_lowering_function(call_target_name: str, **options: Any) -> Any:
    """Not here: ffi_lowering gives a whole rule. Raises NotImplementedError.

    call_target_name  the name given to register_ffi_target.

    >>> lamina.ffi.build_ffi_lowering_function("scale")
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        f"build_ffi_lowering_function({call_target_name!r}): {library} has ffi_lowering, which gives a "
        "whole lowering rule"
    )
