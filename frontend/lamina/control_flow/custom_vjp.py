"""custom_vjp: a function whose reverse derivative the user gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from lamina import errors
from lamina.control_flow.custom_rule import (
    Call,
    CustomRule,
    P,
    R,
    SymbolicZero,
    name_of,
    place_of,
    run_rule,
    shapes_of,
)
from lamina.control_flow.custom_vjp_rules import Backward, Forward, custom_vjp_call_p
from lamina.control_flow.mutation import keeping_refs
from lamina.control_flow.tracing import refuse_refs
from lamina.core import dtypes, refs, tree
from lamina.core import tree as pytrees
from lamina.core.avals import ShapedArray, same_type
from lamina.core.library import library
from lamina.core.tangents import Zero
from lamina.core.trace import Tracer, get_aval, is_evaluating
from lamina.core.tracebacks import api_boundary
from lamina.core.wrapping import function_name, wraps
from lamina.interpreters.accumulators import NullAccum, ValAccum
from lamina.interpreters.backward_logs import log
from lamina.interpreters.tangents import instantiate_zero


@dataclasses.dataclass
class CustomVJPPrimal:
    """What a fwd rule with symbolic_zeros=True takes in place of each array.

    value      the array.
    perturbed  whether the function is being differentiated by it.
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """What the forward rule of a custom_vjp with symbolic_zeros=True is given, without the marks
    that say what is perturbed.

    tree  a tree of CustomVJPPrimal.

    >>> f = lamina.custom_vjp(lambda x: x * x)
    >>> def forward(x):
    ...     value = lamina.custom_derivatives.custom_vjp_primal_tree_values(x)
    ...     return value * value, value
    >>> f.defvjp(forward, lambda value, cotangent: (2 * value * cotangent,), symbolic_zeros=True)
    >>> print(lamina.grad(f)(3.0))
    6.0
    """
    return pytrees.map(lambda leaf: leaf.value, tree)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangents of a tree of arrays.

    val             a tree of arrays.
    symbolic_zeros  gives SymbolicZero leaves; otherwise arrays, float0 ones for integers.

    >>> print(lamina.custom_derivatives.zero_from_primal(jnp.ones(2)))
    [0. 0.]
    """

    def zero(x: Any) -> Any:
        aval = get_aval(x).to_tangent_aval()
        return SymbolicZero(aval) if symbolic_zeros else instantiate_zero(Zero(aval))

    return tree.map(zero, val)


class custom_vjp(CustomRule[P, R]):
    """Wraps a function so that `defvjp` says how to differentiate it in reverse.

        @custom_vjp
        def f(x, y): return sin(x) * y

        def f_fwd(x, y): return f(x, y), (cos(x), sin(x), y)

        def f_bwd(res, g):
            cos_x, sin_x, y = res
            return cos_x * g * y, sin_x * g

        f.defvjp(f_fwd, f_bwd)

    nondiff_argnums, nondiff_argnames  arguments that are static Python values; bwd takes them first.
    Raises AttributeError when called without rules; TypeError for forward-mode differentiation.
    """

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False
        self.optimize_remat = False
        self.with_logs = False
        self.with_accums = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Sets the rules.

        fwd  takes the function's arguments; gives (result, residuals).
        bwd  takes (residuals, the result's cotangent); gives a tuple of cotangents, one for each
             argument that is not static. None stands for zeros.
        symbolic_zeros  fwd takes CustomVJPPrimal leaves, bwd SymbolicZero for zero cotangents.
        optimize_remat  where residuals turn out not to be needed, as in the first pass over a
             `checkpoint`, the function runs and not fwd. (Of fwd itself, what computes residuals
             alone is dropped in any case.)
        generic_batching  accepted for JAX's programs: all results of a batched call are batched.
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros
        self.optimize_remat = optimize_remat
        self.with_logs = self.with_accums = False

    def defvjp_with_logs(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Sets the rules as defvjp does, where bwd gives (cotangents, logs): logs is None, or a dict of
        pytrees that `vjp_function.with_logs(cotangent)` gives back.

        Entries from a scan are stacked, those from a batch have its axis first. Keys are unique
        within a backward pass; ValueError, where it runs, for one that is there twice.

            @custom_vjp
            def f(x): return x

            f.defvjp_with_logs(lambda x: (x, None), lambda _, g: ((g,), {"cotangent": g}))
            _, f_vjp = lamina.vjp(f, 1.0)
            (x_bar,), logs = f_vjp.with_logs(2.0)
        """
        self.defvjp(fwd, bwd, symbolic_zeros, optimize_remat, generic_batching)
        self.with_logs = True

    def defvjp_with_accums(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Sets the rules as defvjp does, where bwd takes (residuals, cotangent, *places), a
        `hijax.GradAccum` for each array of each argument, to whose `accum` it gives what it finds. It
        gives None, or a dict of logs (see defvjp_with_logs)."""
        self.defvjp(fwd, bwd, symbolic_zeros, optimize_remat, generic_batching)
        self.with_accums = True

    def defremat(
        self,
        fwd: Callable[..., Any],
        rem: Callable[..., Any],
        bwd: Callable[..., Any],
        generic_batching: bool = False,
    ) -> None:
        """Sets rules in three parts, where no others are set.

        fwd  as in defvjp.
        rem  takes (fwd's residuals, *arguments); gives (result, residuals of bwd). It runs right
             after fwd; under `checkpoint` both run again in the backward pass.
        bwd  as in defvjp, on what rem gave.
        """
        if self.fwd is None:
            self.defvjp(_in_two_steps(fwd, rem), bwd, generic_batching=generic_batching)

    def defremat_with_logs(
        self,
        fwd: Callable[..., Any],
        rem: Callable[..., Any],
        bwd: Callable[..., Any],
        generic_batching: bool = False,
    ) -> None:
        """Sets rules as defremat does, where bwd gives (cotangents, logs) as in defvjp_with_logs."""
        if self.fwd is None:
            self.defvjp_with_logs(_in_two_steps(fwd, rem), bwd, generic_batching=generic_batching)

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {self.__name__} using defvjp."
            )
        call = Call(self, args, kwargs)
        for x in tree.leaves(list(call.static.values())):
            if isinstance(x, Tracer):
                raise errors.UnexpectedTracerError(
                    f"Found a {library.name} Tracer object passed as an argument to a custom_vjp function in "
                    "a position indicated by nondiff_argnums as non-differentiable. Tracers cannot "
                    "be passed as non-differentiable arguments to custom_vjp functions; instead, "
                    "nondiff_argnums should only be used for arguments that can't be or contain "
                    "tracers, e.g. function-valued arguments. In particular, array-valued arguments "
                    "should typically not be indicated as nondiff_argnums."
                )
        if is_evaluating():
            result = self.fun(*call.merged(call.dynamic))  # type: ignore[call-arg]
            if refs.alive:
                refuse_refs(tree.leaves(result), self.__name__, "custom_vjp")
            return result
        run, types, consts = call.prepared("custom_vjp")
        values = [*consts, *call.leaves]
        call.forget_values()
        outs = custom_vjp_call_p.bind(
            *values,
            call_jaxpr=run,
            fwd=_flat_forward(self, call, types),
            num_consts=len(consts),
            name=self.__name__,
            optimize_remat=self.optimize_remat,
        )
        return tree.unflatten(call.out_tree, outs)


def _in_two_steps(fwd: Callable[..., Any], rem: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fwd)
    def both(*args: Any) -> Any:
        _, residuals = fwd(*args)
        return rem(residuals, *args)

    return both


def _flat_forward(
    custom: custom_vjp[..., Any], call: Call, out_avals: Sequence[ShapedArray] | None
) -> Forward:
    fwd = custom.fwd
    assert fwd is not None
    name = custom.__name__
    pair = (
        f"Custom VJP fwd rule {function_name(fwd)} for function {name} must produce a pair (list or tuple "
        "of length two) where the first element represents the primal output (equal to the output "
        f"of the custom_vjp-decorated function {name}) and the second element represents residuals "
        "(i.e. values stored from the forward pass for use on the backward pass), but instead "
    )

    def forward(primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
        given: list[Any] = list(primals)
        if custom.symbolic_zeros:
            given = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
        before = list(refs.alive)
        result = run_rule(fwd, *call.merged(tree.unflatten(call.in_tree, given)))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(f"{pair}of a pair the fwd rule produced {result}.{place_of(fwd)}")
        outs, tree_out = tree.flatten(result[0])
        out_tree = call.out_tree = call.out_tree or tree_out
        if tree_out != out_tree:
            raise TypeError(
                f"{pair}the fwd rule output's first element had container/pytree structure:\n"
                f"    {tree_out}\nwhile the custom_vjp-decorated function {name} had output "
                f"container/pytree structure:\n    {out_tree}.{place_of(fwd)}"
            )
        if out_avals is not None and not all(
            same_type(get_aval(o), a) for o, a in zip(outs, out_avals, strict=True)
        ):
            raise TypeError(
                f"{pair}the fwd rule output's first element had shapes/dtypes of:\n"
                f"    {shapes_of(outs)}\nwhile the custom_vjp-decorated function {name} had output "
                f"shapes/dtypes of:\n    {', '.join(a.str_long() for a in out_avals)}{place_of(fwd)}"
            )
        refuse_refs(outs, function_name(fwd), "custom_vjp")
        if refs.alive:
            _check_residuals(fwd, result[1], before)
        residuals, res_tree = tree.flatten(keeping_refs(result[1]) if refs.alive else result[1])
        in_avals = [get_aval(x) for x in primals]
        backward = _flat_backward(custom, call, out_tree, res_tree, in_avals, perturbed)
        return outs, residuals, backward

    return forward


def _check_residuals(fwd: Callable[..., Any], residuals: Any, before: Sequence[refs.Ref]) -> None:
    """Raises ValueError where a forward rule keeps a ref that it made: nobody else could see what is written
    there. The others were there before."""
    for x in tree.leaves(residuals):
        if isinstance(x, refs.Ref) and not any(x is ref for ref in before):
            raise ValueError(
                f"custom_vjp fwd function {function_name(fwd)} returned a mutable array reference of type {x.aval} "
                f"as a residual that is none of its arguments: it {x.origin()}. Return what is in it: ref[...]."
            )


def _flat_backward(
    custom: custom_vjp[..., Any],
    call: Call,
    out_tree: Any,
    res_tree: Any,
    in_avals: Sequence[ShapedArray],
    perturbed: Sequence[bool],
) -> Backward:
    bwd = custom.bwd
    assert bwd is not None

    def backward(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        cts = [
            ct
            if type(ct) is not Zero
            else SymbolicZero(ct.aval)
            if custom.symbolic_zeros
            else instantiate_zero(ct)
            for ct in cotangents
        ]
        res = tree.unflatten(res_tree, residuals)
        before = [*call.static.values(), res, tree.unflatten(out_tree, cts)]
        if custom.with_accums:
            places = [
                (ValAccum if p else NullAccum)(a.to_cotangent_aval())
                for a, p in zip(in_avals, perturbed, strict=True)
            ]
            log(_checked_logs(run_rule(bwd, *before, *tree.unflatten(call.in_tree, places))))
            return [place.freeze() for place in places]
        given = run_rule(bwd, *before)
        if custom.with_logs:
            if not isinstance(given, (tuple, list)) or len(given) != 2:
                raise TypeError(
                    "Custom VJP bwd rule was registered with defvjp_with_logs and so must produce a "
                    f"pair (in_cts, logs), but got {given}."
                )
            given, entries = given
            log(_checked_logs(entries))
        return _cotangents(bwd, given, call.in_tree, in_avals)

    return backward


def _checked_logs(entries: Any) -> Any:
    if entries is not None and type(entries) is not dict:
        raise TypeError(
            "the logs of a Custom VJP bwd rule must be None or a dict of backward-pass log entries, "
            f"but got {type(entries).__name__}."
        )
    return entries


_ABSENT = object()


def _cotangents(bwd: Any, given: Any, in_tree: Any, in_avals: Sequence[ShapedArray]) -> list[Any]:
    """What bwd gave, for each leaf of the arguments; None stands for zeros of a whole subtree."""
    if isinstance(given, list) and len(given) == in_tree.num_children:
        given = tuple(given)
    marked = tree.map(lambda x: _ABSENT if x is None else x, given, is_leaf=lambda x: x is None)
    example = tree.unflatten(in_tree, list(range(len(in_avals))))
    if refs.alive:  # of which nobody asks for cotangents
        example = tree.map(lambda x: None if isinstance(x, refs.Ref) else x, example)
    try:
        spread = _spread(None if given is None else marked, example)
    except ValueError:
        raise TypeError(
            "Custom VJP bwd rule must produce an output with the same container (pytree) structure "
            "as the args tuple of the primal function, and in particular must produce a tuple of "
            "length equal to the number of arguments to the primal function, but got bwd output "
            f"structure {tree.structure(given)} for primal input structure {in_tree}."
        ) from None
    paths = tree.paths(example)
    out = []
    for i, (ct, aval) in enumerate(zip(spread, in_avals, strict=True)):
        want = aval.to_tangent_aval()
        if ct is _ABSENT or want.dtype == dtypes.float0 or isinstance(ct, SymbolicZero):
            out.append(Zero(want))
            continue
        got = get_aval(ct)
        if got.shape != want.shape or got.dtype != want.dtype:
            raise ValueError(
                "Custom VJP bwd rule must produce an output with the same shape/dtypes as the args "
                f"tuple of the primal function, but at output{paths[i]} the bwd rule "
                f"{name_of(bwd)} produced an output of shape/dtype {got.str_short()} corresponding "
                f"to an input of shape/dtype {want.str_short()}."
            )
        if not got.vma <= aval.vma:
            extra = tuple(sorted(got.vma - aval.vma, key=str))
            raise ValueError(
                "Custom VJP bwd rule must produce an output with the same type as the args tuple of "
                f"the primal function, but at output{paths[i]} the bwd rule {name_of(bwd)} produced "
                f"an output of type {got.str_long()} corresponding to an input of type "
                f"{aval.str_long()}, so the manual axis types do not match. This might be fixed by "
                f"`{library}.lax.psum(..., {extra})` of that output."
            )
        out.append(ct)
    return out


def _spread(prefix: Any, full: Any) -> list[Any]:
    """As tree.broadcast_prefix, where only _ABSENT may stand for more than a leaf.

    Raises ValueError where the structures differ otherwise.
    """
    given, shape = tree.flatten(prefix)
    parts = tree.flatten_up_to(shape, full)
    out: list[Any] = []
    for x, part in zip(given, parts, strict=True):
        leaves, below = tree.flatten(part)
        if x is not _ABSENT and below != tree.structure(0):
            raise ValueError
        out += [x] * len(leaves)
    return out
