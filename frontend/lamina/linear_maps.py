"""The linear map of a function at a point: what linearize and vjp find, and apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lamina import runtime
from lamina.array import ArrayImpl
from lamina.control_flow.tracing import check_outputs
from lamina.core import dtypes, tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import eval_jaxpr
from lamina.core.tangents import UndefinedPrimal, Zero
from lamina.core.trace import Tracer, get_aval, is_array_like, is_evaluating
from lamina.core.tree_differences import tree_differences
from lamina.core.wrapping import function_name, named_place
from lamina.interpreters.linearize import linearize_flat
from lamina.interpreters.tangents import instantiate_zero
from lamina.interpreters.transpose import backward_pass
from lamina.lax.convert import convert
from lamina.tuple_trees import mirrored


def as_derivative(x: Any, weak_type: bool) -> Any:
    """A derivative as users get it: an array also where it is zero or a number of theirs, and
    weakly typed where the primal is."""
    x = instantiate_zero(x)
    if tangent_aval(x).dtype == dtypes.float0:
        return x
    if not isinstance(x, (Tracer, ArrayImpl)):
        x = runtime.to_array(x)
    return convert(x, x.dtype, True) if weak_type and not x.weak_type else x


def with_shapes(primals: Sequence[Any]) -> list[Any]:
    """Numbers as arrays, where their values are known: custom rules get them as they are."""
    if not is_evaluating():
        return list(primals)
    return [runtime.to_array(x) if type(x) in (float, complex) else x for x in primals]


def tangent_aval(t: Any) -> Any:
    if getattr(t, "dtype", None) == dtypes.float0:
        return ShapedArray(np.shape(t), dtypes.float0)
    return get_aval(t)


class Out:
    """What a flattened function found out about its results when it ran."""

    tree: Any
    n: int
    _aux_tree: Any
    _aux: list[Any]  # leaves, with None where there is an array

    def keep_aux(self, aux: Any) -> list[Any]:
        """The arrays of an auxiliary result. What else is in it is no business of derivatives."""
        leaves, self._aux_tree = tree.flatten(aux)
        self._aux = [None if is_array_like(x) else x for x in leaves]
        return [x for x in leaves if is_array_like(x)]

    def aux(self, arrays: Sequence[Any]) -> Any:
        """The auxiliary result, with these arrays."""
        given = iter(arrays)
        leaves = [next(given) if x is None else x for x in self._aux]
        return tree.unflatten(self._aux_tree, leaves)


def flat_function(
    fun: Callable[..., Any], in_tree: Any, has_aux: bool
) -> tuple[Callable[..., list[Any]], Out]:
    out = Out()

    def flat(*leaves: Any) -> list[Any]:
        result = fun(*tree.unflatten(in_tree, leaves))
        aux: list[Any] = []
        if has_aux:
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(
                    "expected function with aux output to return a two-element tuple, but got type "
                    f"{type(result)} with value {result!r}"
                )
            result, aux_value = result
            aux = out.keep_aux(aux_value)
        main, out.tree = tree.flatten(result)
        check_outputs(main, named_place(fun))
        out.n = len(main)
        return [*main, *aux]

    return flat, out


class LinearMap:
    """What linearising a function found, without the values: equal to itself alone, so that trees
    that hold it can be arguments and results of jitted functions."""

    def __init__(
        self,
        fun: Callable[..., Any],
        primals: Sequence[Any],
        has_aux: bool,
        active: Sequence[bool] | None = None,
    ) -> None:
        self.name = function_name(fun)
        leaves, self.in_tree = tree.flatten(tuple(primals))
        flat, out = flat_function(fun, self.in_tree, has_aux)
        self.in_avals = [get_aval(x) for x in leaves]
        self.active = [dtypes.is_inexact(a.dtype) for a in self.in_avals]
        if active is not None:
            self.active = [a and b for a, b in zip(self.active, active, strict=True)]
        given = with_shapes(leaves)
        self.outs, linear, self.nonzero = linearize_flat(flat, given, self.active)
        self.jaxpr, self.residuals = linear.jaxpr, linear.consts
        self.out_tree, n = out.tree, out.n
        self.out_avals = [get_aval(x) for x in self.outs[:n]]
        self.main = tree.unflatten(out.tree, self.outs[:n])
        self.aux = out.aux(self.outs[n:]) if has_aux else None

    def give_residuals(self) -> list[Any]:
        """The values that the map reads. It must not keep values alive that are somebody else's, or
        traced."""
        kept = self.residuals
        del self.outs, self.residuals, self.main, self.aux
        return kept

    @property
    def out_nzs(self) -> Any:
        """Which results have a tangent: a tree of bools."""
        return mirrored(self.out_tree, self.nonzero[: len(self.out_avals)])

    def push(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        """The out tangents."""
        ts, t_tree = tree.flatten(tuple(tangents))
        if t_tree != self.in_tree:
            raise TypeError(
                f"the tangents have structure {t_tree}, the linearised function takes {self.in_tree}"
            )
        for aval, t in zip(self.in_avals, ts, strict=True):
            want, got = aval.to_tangent_aval(), tangent_aval(t)
            if want.shape != got.shape or want.dtype != got.dtype:
                raise ValueError(
                    "linearized function called on tangent values inconsistent with the original "
                    f"primal values: got tangent aval {got.str_short()} for primal {want.str_short()}"
                )
        given = iter(
            eval_jaxpr(
                self.jaxpr, residuals, *[t for t, a in zip(ts, self.active, strict=True) if a]
            )
        )
        dots = [
            next(given) if nz else instantiate_zero(Zero(a.to_tangent_aval()))
            for a, nz in zip(self.out_avals, self.nonzero, strict=False)
        ]
        return tree.unflatten(self.out_tree, dots)

    def pull(self, residuals: Sequence[Any], *cotangents: Any) -> list[Any]:
        """The cotangents of the primals, flat."""
        if len(cotangents) != 1:
            raise TypeError(
                f"a function that vjp gives was called with {len(cotangents)} arguments; it takes one, with "
                "the structure of the differentiated function's result: a tuple for a tuple"
            )
        cts, ct_tree = tree.flatten(cotangents[0])
        if ct_tree != self.out_tree:
            raise ValueError(
                "unexpected tree structure.\n\nThe argument of a function that vjp gives must match "
                "the pytree structure of the differentiated function's result, but they differ:\n"
                + "\n".join(
                    f"  * out{path} was {a} in the original output, but {b} here, so {why}"
                    for path, a, b, why in tree_differences(self.out_tree, ct_tree)
                )
            )
        for i, (ct, aval) in enumerate(zip(cts, self.out_avals, strict=True)):
            want, got = aval.to_tangent_aval(), tangent_aval(ct)
            if want.dtype == dtypes.float0 and want.shape == got.shape:
                cts[i] = np.zeros(want.shape, want.dtype)  # whatever is given, an integer has none
                continue
            if want.shape != got.shape or want.dtype != got.dtype:
                raise ValueError(
                    "unexpected type (e.g. shape/dtype) for argument to VJP function: got "
                    f"{got.str_long()}, but expected {want.str_long()} because the corresponding "
                    f"output of the differentiated function had type {aval.str_long()}"
                )
        given = [ct for ct, nz in zip(cts, self.nonzero, strict=False) if nz]
        # Aux results that depend on the primals have no cotangent.
        given += [Zero(v.aval.to_cotangent_aval()) for v in self.jaxpr.outvars[len(given) :]]
        operands = [UndefinedPrimal(v.aval) for v in self.jaxpr.invars]
        back = iter(backward_pass(self.jaxpr, residuals, operands, given))
        return [
            self._cotangent(back, aval, active)
            for aval, active in zip(self.in_avals, self.active, strict=True)
        ]

    def _cotangent(self, back: Iterator[Any], aval: ShapedArray, active: bool) -> Any:
        if active:
            return as_derivative(next(back), aval.weak_type)
        of = aval.to_tangent_aval()
        if of.dtype == dtypes.float0:
            return np.zeros(aval.shape, of.dtype)
        return instantiate_zero(Zero(aval.to_cotangent_aval()))
