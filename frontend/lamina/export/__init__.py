"""Jitted functions as bytes: their StableHLO with what is needed to call it, here or elsewhere.

    exported = lamina.export.export(lamina.jit(f))(lamina.ShapeDtypeStruct((3,), "float32"))
    blob = exported.serialize(vjp_order=1)
    lamina.export.deserialize(blob).call(x)        # also under jit, vmap and grad
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina.control_flow.call_exported import ExportedModule as ExportedModule
from lamina.control_flow.call_exported import call_exported_p as call_exported_p
from lamina.control_flow.tracing import arg_names as arg_names
from lamina.core import dtypes as dtypes
from lamina.core import tree as tree
from lamina.core.avals import ShapedArray as ShapedArray
from lamina.core.library import library as library
from lamina.core.trace import get_aval as get_aval
from lamina.export.structures import from_json as from_json
from lamina.export.structures import (
    register_namedtuple_serialization as register_namedtuple_serialization,
)
from lamina.export.structures import (
    register_pytree_node_serialization as register_pytree_node_serialization,
)
from lamina.export.structures import to_json as to_json

__all__ = [
    "Exported", "default_export_platform", "deserialize", "export", "is_symbolic_dim",
    "register_namedtuple_serialization", "register_pytree_node_serialization",
    "symbolic_args_specs", "symbolic_shape",
]  # fmt: skip

_MAGIC = b"lamina export 1\n"


@dataclasses.dataclass(frozen=True, eq=False)
class Exported:
    """A function in StableHLO."""

    fun_name: str
    in_tree: Any
    in_avals: tuple[ShapedArray, ...]
    out_tree: Any
    out_avals: tuple[ShapedArray, ...]
    platforms: tuple[str, ...]
    mlir_module_serialized: bytes
    _get_vjp: Callable[[], Exported] | None = dataclasses.field(default=None, repr=False)
    nr_devices: int = 1
    disabled_safety_checks: tuple[Any, ...] = ()
    _is_foreign: bool = dataclasses.field(default=False, repr=False)

    @property
    def module_kept_var_idx(self) -> tuple[int, ...]:
        """Which arguments the module takes: all."""
        return tuple(range(len(self.in_avals)))

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    def mlir_module(self) -> str:
        """The module as text."""
        from lamina.dialects import serialize

        return serialize.to_text(self._module().parse())

    def _module(self) -> ExportedModule:
        return ExportedModule(self.mlir_module_serialized, is_foreign=self._is_foreign)

    def has_vjp(self) -> bool:
        """Whether its derivative is there."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The function (arguments, cotangents of the results) -> cotangents of the arguments, all of
        them flat. ValueError where it was stored without."""
        if self._get_vjp is None:
            raise ValueError("No VJP is available")
        return self._get_vjp()

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives. It may be called in traced functions, too.

        Raises ValueError where arguments differ in structure, shape or dtype from those that it was
        exported for.
        """
        leaves, in_tree = tree.flatten((args, kwargs))
        if in_tree != self.in_tree:
            raise ValueError(
                "The invocation args and kwargs must have the same pytree structure as when the "
                f"function '{self.fun_name}' was exported: {self.in_tree} expected, got {in_tree}"
            )
        paths = tree.paths((args, kwargs))
        for x, want, path in zip(leaves, self.in_avals, paths, strict=True):
            got = get_aval(x)
            what = "args" + path[3:] if path.startswith("[0]") else "kwargs" + path[3:]
            if got.shape != want.shape:
                raise ValueError(
                    f"Shape mismatch for {what}: expected {want.shape} and called with {got.shape}"
                )
            if got.dtype != want.dtype and not (got.weak_type and not got.shape):
                raise ValueError(
                    f"Dtype mismatch for {what}: expected {want.dtype.name} and called with "
                    f"{got.dtype.name}"
                )
        from lamina import lax

        cast = [
            lax.convert_element_type(x, want.dtype) if get_aval(x).dtype != want.dtype else x
            for x, want in zip(leaves, self.in_avals, strict=True)
        ]
        return tree.unflatten(self.out_tree, self._flat()(*cast))

    def _flat(self) -> Callable[..., list[Any]]:
        module = self._module()
        out_avals = self.out_avals

        def run(*leaves: Any) -> list[Any]:
            return list(
                call_exported_p.bind(
                    *leaves, module=module, name=self.fun_name, out_avals=out_avals
                )
            )

        if self._get_vjp is None:
            return run
        from lamina.custom_derivatives import custom_vjp

        differentiable: Any = custom_vjp(run)
        differentiable.defvjp(
            lambda *leaves: (run(*leaves), leaves), lambda leaves, cts: self._cotangents(leaves, cts)
        )
        return differentiable

    def _cotangents(self, leaves: Any, cts: Any) -> tuple[Any, ...]:
        cts = [ct for ct, a in zip(cts, self.out_avals, strict=True) if _has_tangent(a)]
        given = iter(self.vjp().call(*leaves, *cts))
        return tuple(
            next(given) if _has_tangent(a) else np.zeros(a.shape, dtypes.float0)
            for a in self.in_avals
        )

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """What `deserialize` reads. vjp_order: how often what is read may be differentiated.

        Raises ValueError for pytree nodes of types that are not registered for this.
        """
        vjp = bytes(self.vjp().serialize(vjp_order - 1)) if vjp_order else b""
        header = {
            "fun_name": self.fun_name,
            "in_tree": to_json(self.in_tree),
            "in_avals": [_aval_to_json(a) for a in self.in_avals],
            "out_tree": to_json(self.out_tree),
            "out_avals": [_aval_to_json(a) for a in self.out_avals],
            "platforms": self.platforms,
            "module_bytes": len(self.mlir_module_serialized),
            "vjp_bytes": len(vjp),
        }
        line = json.dumps(header).encode() + b"\n"
        return bytearray(_MAGIC + line + self.mlir_module_serialized + vjp)


def deserialize(blob: bytes | bytearray) -> Exported:
    """An exported function from the bytes that its serialize gave. They may come from a stranger:
    the program is read in a process of its own when it is first needed.

    blob  the bytes.

    Raises ValueError where this is no such thing.

    >>> double = lamina.jit(lambda x: 2 * x)
    >>> exported = lamina.export.export(double)(lamina.ShapeDtypeStruct((3,), "float32"))
    >>> print(lamina.export.deserialize(exported.serialize()).in_avals)
    (ShapedArray(float32[3]),)
    """
    data = bytes(blob)
    if not data.startswith(_MAGIC):
        raise ValueError(f"not what {library}.export's Exported.serialize gives (JAX's are not read)")
    text, _, rest = data[len(_MAGIC) :].partition(b"\n")
    try:
        header = json.loads(text)
        size = header["module_bytes"]
        if not 0 <= size <= len(rest) or len(rest) != size + header["vjp_bytes"]:
            raise ValueError(f"{len(rest)} bytes follow its header")
        name = header["fun_name"]
        if not isinstance(name, str):
            raise ValueError(f"{name!r} is not a function's name")
        in_avals = tuple(map(_aval_from_json, header["in_avals"]))
        out_avals = tuple(map(_aval_from_json, header["out_avals"]))
        platforms = tuple(map(str, header["platforms"]))
        structures = header["in_tree"], header["out_tree"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ValueError("what Exported.serialize gave was cut or changed") from e
    in_tree, out_tree = map(from_json, structures)
    if (in_tree.num_leaves, out_tree.num_leaves) != (len(in_avals), len(out_avals)):
        raise ValueError("what Exported.serialize gave was cut or changed")
    vjp = rest[size:]
    return Exported(
        name,
        in_tree,
        in_avals,
        out_tree,
        out_avals,
        platforms,
        rest[:size],
        (lambda: deserialize(vjp)) if vjp else None,
        _is_foreign=True,
    )


def export(
    fun_jit: Any,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[Any] = (),
) -> Callable[..., Exported]:
    """A function of types that gives a jitted function exported for these: its StableHLO, which can
    be stored and called elsewhere.

    fun_jit          what jit gives.
    platforms        names of platforms, kept for those who read them: modules are for all
                     platforms.
    disabled_checks  without effect.

    The function takes ShapeDtypeStructs or arrays and gives an Exported. Raises ValueError where
    fun_jit is not what jit gives; the function NotImplementedError for programs that call Python.

    >>> double = lamina.jit(lambda x: 2 * x)
    >>> exported = lamina.export.export(double)(lamina.ShapeDtypeStruct((3,), "float32"))
    >>> print(exported.call(jnp.ones(3)))
    [2. 2. 2.]
    """
    if not hasattr(fun_jit, "_jit_options"):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")

    def export_for(*args: Any, **kwargs: Any) -> Exported:
        from lamina.dialects import serialize
        from lamina.interpreters.lowering import lower_module

        traced = fun_jit.trace(*args, **kwargs)
        closed, name = traced.jaxpr, traced.fun_name
        callbacks: list[Any] = []
        module = lower_module(
            closed, f"jit_{name}", arg_names=arg_names(fun_jit, args, kwargs), callbacks=callbacks
        )
        if callbacks:
            raise NotImplementedError(
                f"[export] {name} calls Python functions (callbacks), which can't be stored"
            )
        in_avals, out_avals = (
            tuple(a.update(weak_type=False) for a in avals)
            for avals in (closed.in_avals, closed.out_avals)
        )
        return Exported(
            name,
            traced.in_tree,
            in_avals,
            traced.out_tree,
            out_avals,
            tuple(platforms or (default_export_platform(),)),
            serialize.to_portable_artifact(module, debug_info=False),
            lambda: _vjp_of(fun_jit, traced.in_tree, in_avals, out_avals),
            disabled_safety_checks=tuple(disabled_checks),
        )

    return export_for


def _vjp_of(fun: Any, in_tree: Any, in_avals: Sequence[Any], out_avals: Sequence[Any]) -> Exported:
    from lamina.api import ShapeDtypeStruct, jit, vjp

    count = len(in_avals)
    smooth_in = [_has_tangent(a) for a in in_avals]
    smooth_out = [_has_tangent(a) for a in out_avals]

    def backward(*leaves: Any) -> list[Any]:
        primals, cts = leaves[:count], leaves[count:]

        def of_smooth(*smooth: Any) -> list[Any]:
            left = iter(smooth)
            full = [next(left) if s else p for p, s in zip(primals, smooth_in, strict=True)]
            args, kwargs = tree.unflatten(in_tree, full)
            outs = tree.leaves(fun(*args, **kwargs))
            return [out for out, s in zip(outs, smooth_out, strict=True) if s]

        _, pull = vjp(of_smooth, *(p for p, s in zip(primals, smooth_in, strict=True) if s))
        return list(pull(list(cts)))

    cotangents = [a for a, s in zip(out_avals, smooth_out, strict=True) if s]
    specs = [ShapeDtypeStruct(a.shape, a.dtype) for a in (*in_avals, *cotangents)]
    return export(jit(backward))(*specs)


def _has_tangent(aval: ShapedArray) -> bool:
    return dtypes.is_inexact(aval.dtype)


def _aval_to_json(aval: ShapedArray) -> Any:
    return [list(aval.shape), aval.dtype.name]


def _aval_from_json(stored: Any) -> ShapedArray:
    shape, name = stored
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"{shape} is no shape")
    return ShapedArray(tuple(shape), dtypes.KEYS_BY_NAME.get(name) or dtypes.canonicalize(name))


def default_export_platform() -> str:
    """The platform of the first device, for which functions are exported by default.

    >>> lamina.export.default_export_platform() in ("cpu", "cuda")
    True
    """
    from lamina.devices import default_backend

    return default_backend()


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is symbolic: none is, for lamina's programs have static sizes.

    p  a size.

    >>> lamina.export.is_symbolic_dim(3)
    False
    """
    return False


def symbolic_shape(shape_spec: str | None, **options: Any) -> Any:
    """Not here: sizes are static. Raises NotImplementedError.

    shape_spec  a text such as "n, 3".

    >>> lamina.export.symbolic_shape("n, 3")
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        f"[symbolic_shape] {shape_spec!r}: sizes are static in {library.name}. Export for each size"
    )


def symbolic_args_specs(args: Any, shapes_specs: Any, *rest: Any, **options: Any) -> Any:
    """Not here: sizes are static. Raises NotImplementedError.

    args          a pytree of arrays or types.
    shapes_specs  texts such as "n, 3" for them.
    rest          further positional arguments of JAX's function.

    >>> lamina.export.symbolic_args_specs(jnp.ones(3), "n")
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    return symbolic_shape(str(shapes_specs))
