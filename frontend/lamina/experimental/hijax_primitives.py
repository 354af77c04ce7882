"""HiPrim: an operation that is defined by a class, with an implementation and rules of derivatives.

    class Cube(HiPrim):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()

        def expand(self, x):
            return x * x * x

        def vjp_fwd(self, nzs_in, x):
            return self(x), x

        def vjp_bwd_retval(self, x, ct):
            return (3 * x * x * ct,)

    Cube(lamina.typeof(x))(x)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from lamina.core import tree
from lamina.core.avals import ShapedArray
from lamina.core.trace import get_aval


class AxisData(NamedTuple):
    """The axis of a vmap, as a batching rule is told."""

    name: Any
    size: int


class HiPrim:
    """An operation on arrays. A subclass's __init__ sets

    in_avals   the type of each argument, or a pytree of types.
    out_aval   the type of the result, or a pytree of types.
    params     what else the operation is told, which become attributes.

    and calls this one; `expand` is what it computes. `vjp_fwd` and `vjp_bwd_retval`, or `jvp`, are its
    derivatives, `batch` what it does under vmap; without them they are those of expand.
    Raises AttributeError where one of the three is missing.
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Hashable]

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        self.in_avals_flat, self.in_tree = tree.flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = tree.flatten(self.out_aval)
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def check(self, *arg_avals: Any) -> None:
        """Raises where the operation does not take such types; by default it takes all."""

    def expand(self, *args: Any) -> Any:
        """What the operation computes."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """The result and its tangent."""
        raise NotImplementedError(f"for jvp support, subclass {type(self)} must implement `jvp`")

    def vjp_fwd(self, nzs_in: Any, *args: Any) -> Any:
        """The result, and what vjp_bwd_retval needs; nzs_in says which arguments have tangents."""
        raise NotImplementedError(f"for grad support, subclass {type(self)} must implement `vjp_fwd`")

    def vjp_bwd_retval(self, res: Any, outgrad: Any) -> Any:
        """A cotangent for each argument."""
        raise NotImplementedError(
            f"for grad support, subclass {type(self)} must implement `vjp_bwd_retval`"
        )

    def batch(self, axis_data: AxisData, args: Any, dims: Any) -> Any:
        """The result for arguments with a batch axis at `dims` (or None), and its own."""
        raise NotImplementedError(f"for vmap support, subclass {type(self)} must implement `batch`")

    def __call__(self, *args: Any) -> Any:
        """Applies the operation.

        Raises TypeError where arguments are not of the types in in_avals, NotImplementedError where
        one of the types is none of arrays.
        """
        leaves, structure = tree.flatten(args)
        if structure != self.in_tree:
            raise TypeError(f"{type(self).__name__} takes {self.in_tree}, got {structure}")
        for aval in (*self.in_avals_flat, *self.out_avals_flat):
            if not isinstance(aval, ShapedArray):
                raise NotImplementedError(
                    f"[hijax] {type(self).__name__} has a type of its own, {aval}: lamina traces "
                    "arrays only"
                )
        for x, aval in zip(leaves, self.in_avals_flat, strict=True):
            have = get_aval(x)
            if (have.shape, have.dtype) != (aval.shape, aval.dtype):
                raise TypeError(
                    f"{type(self).__name__} was made for {aval.str_short()}, got {have.str_short()}"
                )
        return self._with_derivatives(self._with_batching(self.expand))(*args)

    def _defines(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(HiPrim, name)

    def _with_batching(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        if not self._defines("batch"):
            return fun
        from lamina.control_flow.custom_vmap import custom_vmap

        batched = custom_vmap(fun)

        @batched.def_vmap
        def rule(size: int, in_batched: Any, *args: Any) -> Any:
            dims = tree.map(lambda b: 0 if b else None, in_batched)
            out, dim = self.batch(AxisData(None, size), args, tuple(dims))
            from lamina.interpreters.batching import move_batch

            dims_out = tree.map(lambda _: dim, out) if dim is None or isinstance(dim, int) else dim
            moved = tree.map(lambda x, d: move_batch(x, d, size), out, dims_out)
            return moved, tree.map(lambda _: True, moved)

        return batched

    def _with_derivatives(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        from lamina.control_flow import custom_jvp
        from lamina.custom_derivatives import custom_vjp

        if self._defines("vjp_bwd_retval"):
            with_vjp = custom_vjp(fun)
            with_vjp.defvjp(
                lambda *args: self.vjp_fwd(tree.map(lambda _: True, args), *args),
                lambda res, ct: tuple(self.vjp_bwd_retval(res, ct)),
            )
            return with_vjp
        if self._defines("jvp"):
            with_jvp = custom_jvp(fun)
            with_jvp.defjvp(self.jvp)
            return with_jvp
        return fun


VJPHiPrimitive = HiPrim
