"""HiPrim: an operation on arrays of any pytrees whose rules are methods of a class.

An instance says the types of its arguments and of its result, and how it is done (`expand`); methods
say how it is differentiated and batched. It is one equation of a jaxpr until it is lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lamina.core import dtypes, tree
from lamina.core.avals import ShapedArray
from lamina.core.axes import batching as batching_axis
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero, is_undefined_primal
from lamina.core.trace import get_aval
from lamina.interpreters.accumulators import NullAccum, ValAccum
from lamina.interpreters.backward_logs import log
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import instantiate_zero, zeros_like_aval


class HiPrim:
    """An operation. A subclass sets `in_avals` (a tuple of pytrees of types), `out_aval` and `params`
    (a dict, hashable) in its constructor, calls `super().__init__()`, and defines `expand`; an
    instance is called with the arguments.

    expand(*args)                 the result, of other operations.
    jvp(primals, tangents)        (result, its tangent); zero tangents are Zero.
    vjp_fwd(nonzero, *args)       (result, residuals); nonzero is a tree of bools.
    vjp_bwd_retval(residuals, ct) a tuple of cotangents; or
    vjp_bwd(residuals, ct, *places) puts them into GradAccum places, and gives None or a dict of logs.
    lin(nonzero, *args)           (result, residuals), and linearized(residuals, *tangents) the tangent.
    batch(axis, args, dims)       (result, its batch axes); axis has `size` and `name`.
    transpose(ct, *places)        where it is linear in arguments: for those, places of cotangents.

    Each that is missing raises NotImplementedError where it is asked for. `vjp_fwd, vjp_bwd_retval =
    vjp_from_jvp` and their like make rules of other ones. Raises AttributeError for a constructor
    that leaves something out.

        class Double(HiPrim):
            def __init__(self, aval):
                self.in_avals, self.out_aval, self.params = (aval,), aval, {}
                super().__init__()

            def expand(self, x): return 2 * x
            def vjp_fwd(self, nonzero, x): return self(x), None
            def vjp_bwd_retval(self, res, g): return (2 * g,)
            def batch(self, axis, args, dims):
                (x,), (d,) = args, dims
                return Double(lamina.typeof(x))(x), d
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        self.in_avals_flat, self.in_tree = tree.flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = tree.flatten(self.out_aval)
        vars(self).update(self.params)
        self.check(*self.in_avals)

    def __call__(self, *args: Any) -> Any:
        given, structure = tree.flatten(args)
        if structure != self.in_tree:
            raise TypeError(f"{self} takes arguments of structure {self.in_tree}, not {structure}")
        for aval in (*self.in_avals_flat, *self.out_avals_flat):
            if not isinstance(aval, ShapedArray):
                raise NotImplementedError(f"{self} is of a type of its own, {aval}: arrays only")
        return tree.unflatten(self.out_tree, hi_primitive_p.bind(*given, prim=self))

    def check(self, *in_avals: Any) -> None:
        """May raise where the types of the arguments do not fit."""

    def expand(self, *args: Any) -> Any:
        raise self._lacks("expand")

    def jvp(self, primals: Any, tangents: Any) -> Any:
        raise self._lacks("jvp")

    def vjp_fwd(self, nonzero: Any, /, *args: Any) -> Any:
        raise self._lacks("vjp_fwd")

    def vjp_bwd(self, residuals: Any, ct: Any, /, *places: Any) -> Any:
        given = self.vjp_bwd_retval(residuals, ct)
        flat, structure = tree.flatten(places)
        for place, x in zip(flat, tree.flatten_up_to(structure, tuple(given)), strict=True):
            place.accum(x)

    def vjp_bwd_retval(self, residuals: Any, ct: Any, /) -> Any:
        raise self._lacks("vjp_bwd_retval")

    def lin(self, nonzero: Any, *args: Any) -> Any:
        raise self._lacks("lin")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        raise self._lacks("linearized")

    def batch(self, axis: Any, args: Any, dims: Any) -> Any:
        raise self._lacks("batch")

    def transpose(self, ct: Any, *places: Any) -> Any:
        raise self._lacks("transpose")

    def _lacks(self, rule: str) -> NotImplementedError:
        return NotImplementedError(f"subclass {type(self)} must implement `{rule}`")

    def has(self, rule: str) -> bool:
        """Whether the class defines a rule."""
        return getattr(type(self), rule) is not getattr(HiPrim, rule)

    def __repr__(self) -> str:
        shown = " ".join(f"{k}={v}" for k, v in self.params.items() if not k.startswith("_"))
        return f"{type(self).__name__}[{shown}]" if shown else type(self).__name__

    def __hash__(self) -> int:
        return hash((type(self), *self.params.items(), *self.in_avals_flat))

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, HiPrim)
            and self.params == other.params
            and self.in_avals_flat == other.in_avals_flat
        )


# ---- rules of other rules ----------------------------------------------------------------------
class RulePair(NamedTuple):
    """Two rules that go together."""

    forward: Callable[..., Any]
    backward: Callable[..., Any]


def _instantiated(x: Any) -> Any:
    return tree.map(instantiate_zero, x, is_leaf=lambda v: isinstance(v, Zero))


def _tangents(prim: HiPrim, nonzero: Sequence[bool], given: Sequence[Any]) -> Any:
    each = iter(given)
    return tree.unflatten(prim.in_tree, [
        next(each) if nz else Zero(a.to_tangent_aval())
        for a, nz in zip(prim.in_avals_flat, nonzero, strict=True)
    ])  # fmt: skip


def _transposed(prim: HiPrim, nonzero: Any, tangent_map: Callable[..., Any], ct: Any) -> Any:
    from lamina.autodiff import linear_transpose

    flags = tree.leaves(nonzero)
    avals = [a.to_tangent_aval() for a in prim.in_avals_flat]
    examples = [zeros_like_aval(a) for a, nz in zip(avals, flags, strict=True) if nz]
    found = linear_transpose(
        lambda *ts: _instantiated(tangent_map(_tangents(prim, flags, ts))), *examples
    )(_instantiated(ct))
    return _tangents(prim, flags, found)


def _fwd_from_jvp(self: HiPrim, nonzero: Any, *args: Any) -> Any:
    return self(*args), _Kept((args,), nonzero)


def _bwd_from_jvp(self: HiPrim, kept: _Kept, ct: Any) -> Any:
    (args,) = kept.values
    return _transposed(self, kept.nonzero, lambda ts: self.jvp(args, ts)[1], ct)


def _fwd_from_lin(self: HiPrim, nonzero: Any, *args: Any) -> Any:
    out, residuals = self.lin(nonzero, *args)
    return out, _Kept((residuals,), nonzero)


def _bwd_from_lin(self: HiPrim, kept: _Kept, ct: Any) -> Any:
    (residuals,) = kept.values
    return _transposed(self, kept.nonzero, lambda ts: self.linearized(residuals, *ts), ct)


def _lin_from_jvp(self: HiPrim, nonzero: Any, *args: Any) -> Any:
    return self(*args), args


def _linearized_from_jvp(self: HiPrim, args: Any, *tangents: Any) -> Any:
    return self.jvp(args, tangents)[1]


def jvp_from_lin(self: HiPrim, primals: Any, tangents: Any) -> Any:
    """The jvp of a HiPrim that defines lin and linearized: `jvp = jvp_from_lin` in its class.

    self      the primitive.
    primals   its operands,
    tangents  and theirs.

    >>> from lamina.experimental import hijax
    >>> class Double(hijax.HiPrim):
    ...     def __init__(self, aval):
    ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return 2 * x
    ...     def lin(self, nonzero, x):
    ...         return self(x), ()
    ...     def linearized(self, residuals, tangent):
    ...         return 2 * tangent
    ...     jvp = hijax.jvp_from_lin
    >>> double = Double(lamina.typeof(jnp.float32(1)))
    >>> value, tangent = lamina.jvp(double, (jnp.float32(3),), (jnp.float32(1),))
    >>> print(value, tangent)
    6.0 2.0
    """
    flat = tree.flatten_up_to(self.in_tree, tangents)
    nonzero = tree.unflatten(self.in_tree, [not isinstance(t, Zero) for t in flat])
    out, residuals = self.lin(nonzero, *primals)
    return out, self.linearized(residuals, *tangents)


class _Kept:
    """Residuals, and which arguments are differentiated, which is static."""

    def __init__(self, values: Any, nonzero: Any) -> None:
        self.values, self.nonzero = values, nonzero


tree.register_node(
    _Kept, lambda k: ((k.values,), k.nonzero), lambda nonzero, parts: _Kept(parts[0], nonzero)
)

vjp_from_jvp = RulePair(_fwd_from_jvp, _bwd_from_jvp)
vjp_from_lin = RulePair(_fwd_from_lin, _bwd_from_lin)
linearize_from_jvp = RulePair(_lin_from_jvp, _linearized_from_jvp)


# ---- the primitive -----------------------------------------------------------------------------
def _traced(fun: Callable[..., Any], avals: Sequence[Any]) -> Any:
    return trace_to_jaxpr(lambda *xs: tree.leaves(fun(*xs)), list(avals))


def _abstract_eval(*avals: Any, prim: HiPrim) -> list[Any]:
    for given, wanted in zip(avals, prim.in_avals_flat, strict=True):
        if given.shape != wanted.shape or given.dtype != wanted.dtype:
            raise TypeError(f"{prim} takes {wanted.str_short()}, not {given.str_short()}")
    return list(prim.out_avals_flat)


def _lowering(ctx: Any, *args: Any, prim: HiPrim) -> Any:
    traced = _traced(lambda *xs: prim.expand(*tree.unflatten(prim.in_tree, xs)), ctx.avals_in)
    return ctx.lower_jaxpr(traced.jaxpr, traced.consts, args)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, prim: HiPrim) -> Any:
    args = tree.unflatten(prim.in_tree, primals)
    nonzero = tuple(type(t) is not Zero for t in tangents)
    in_reverse = prim.has("vjp_fwd") and (prim.has("vjp_bwd") or prim.has("vjp_bwd_retval"))
    if not in_reverse and (prim.has("jvp") or prim.has("lin") or not prim.has("vjp_fwd")):
        rule = prim.jvp if prim.has("jvp") or not prim.has("lin") else None
        dots = tree.unflatten(prim.in_tree, tangents)
        out, out_dots = rule(args, dots) if rule else jvp_from_lin(prim, args, dots)
        return tree.leaves(out), tree.flatten_up_to(prim.out_tree, out_dots)
    out, residuals, *_ = prim.vjp_fwd(tree.unflatten(prim.in_tree, nonzero), *args)
    kept, res_tree = tree.flatten(residuals)
    given = [t for t in tangents if type(t) is not Zero]
    out_avals = [get_aval(x).to_tangent_aval() for x in tree.leaves(out)]
    dots = iter(hi_linear_p.bind(
        *kept, *(primals if prim.has("jvp") else ()), *given, prim=prim, res_tree=res_tree,
        nonzero=nonzero, out_avals=tuple(out_avals),
    ))  # fmt: skip
    return tree.leaves(out), [Zero(a) if a.dtype == dtypes.float0 else next(dots) for a in out_avals]


def _batching(args: Sequence[Any], dims: Sequence[Any], *, prim: HiPrim) -> Any:
    of_args = tree.unflatten(prim.in_tree, dims)
    out, out_dims = prim.batch(batching_axis(), tree.unflatten(prim.in_tree, args), of_args)
    return tree.leaves(out), tree.flatten_up_to(prim.out_tree, out_dims)


def _transpose(cts: Sequence[Any], *operands: Any, prim: HiPrim) -> list[Any]:
    places = [ValAccum(x.aval) if is_undefined_primal(x) else x for x in operands]
    log(prim.transpose(tree.unflatten(prim.out_tree, cts), *tree.unflatten(prim.in_tree, places)))
    return [x.freeze() if isinstance(x, ValAccum) else None for x in places]


hi_primitive_p = Primitive(
    "hi_primitive",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=_transpose,
    batching=_batching,
    shown=lambda params: {"prim": repr(params["prim"])},
)


# ---- its linear map, whose transpose is vjp_bwd ------------------------------------------------
def _linear_parts(operands: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Of operands: residuals, primals (where jvp needs them), tangents."""
    n, prim = params["res_tree"].num_leaves, params["prim"]
    m = n + (len(prim.in_avals_flat) if prim.has("jvp") else 0)
    return operands[:n], operands[n:m], operands[m:]


def _linear_abstract_eval(*_: Any, out_avals: Any, **__: Any) -> list[Any]:
    return [a for a in out_avals if a.dtype != dtypes.float0]


def _push(*operands: Any, **params: Any) -> list[Any]:
    prim: HiPrim = params["prim"]
    _, primals, given = _linear_parts(operands, params)
    if not prim.has("jvp"):
        raise TypeError(f"{prim} has rules for reverse mode alone: define `jvp` for forward mode")
    dots = _tangents(prim, params["nonzero"], given)
    _, out = prim.jvp(tree.unflatten(prim.in_tree, primals), dots)
    flat = [instantiate_zero(t) for t in tree.flatten_up_to(prim.out_tree, out)]
    return [t for t, a in zip(flat, params["out_avals"], strict=True) if a.dtype != dtypes.float0]


def _linear_lowering(ctx: Any, *args: Any, **params: Any) -> Any:
    traced = _traced(lambda *xs: _push(*xs, **params), ctx.avals_in)
    return ctx.lower_jaxpr(traced.jaxpr, traced.consts, args)


def _linear_batching(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    from lamina.interpreters.batching import batch_flat

    return batch_flat(lambda *xs: _push(*xs, **params), args, dims, batching_axis())


def _pull(cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
    prim: HiPrim = params["prim"]
    kept, primals, _ = _linear_parts(operands, params)
    given = iter(cts)
    full = [Zero(a) if a.dtype == dtypes.float0 else next(given) for a in params["out_avals"]]
    ct = tree.unflatten(prim.out_tree, [instantiate_zero(x) for x in full])
    places = [
        (ValAccum if nz else NullAccum)(a.to_tangent_aval())
        for a, nz in zip(prim.in_avals_flat, params["nonzero"], strict=True)
    ]
    residuals = tree.unflatten(params["res_tree"], kept)
    log(prim.vjp_bwd(residuals, ct, *tree.unflatten(prim.in_tree, places)))
    found = [p.freeze() for p, nz in zip(places, params["nonzero"], strict=True) if nz]
    return [*(None for _ in (*kept, *primals)), *found]


hi_linear_p = Primitive(
    "hi_linear",
    multiple_results=True,
    abstract_eval=_linear_abstract_eval,
    lowering=_linear_lowering,
    jvp=lambda primals, tangents, **params: _second_order(primals, tangents, params),
    transpose=_pull,
    batching=_linear_batching,
    shown=lambda params: {"prim": repr(params["prim"])},
)


def _second_order(primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    from lamina.interpreters.jvp import jvp_flat

    return jvp_flat(lambda *xs: _push(*xs, **params), primals, tangents)
