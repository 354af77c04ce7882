"""sparsify: functions of arrays as functions of sparse arrays.

    sparsify(lambda m, v: (2 * m) @ v)(BCOO.fromdense(x), v)

The function is traced for dense arrays; its operations are then done on sparse ones, by a rule for
each: those that keep zeros go to the values, sums and products are those of BCOO.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from lamina import lax
from lamina.control_flow.checkpoint import checkpoint_p
from lamina.control_flow.cond import cond_p
from lamina.control_flow.custom_jvp import custom_jvp_call_p
from lamina.control_flow.custom_vjp import custom_vjp_call_p
from lamina.control_flow.jit_call import jit_p
from lamina.control_flow.scan import scan_p
from lamina.control_flow.while_loop import while_p
from lamina.core import tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, Literal
from lamina.core.trace import get_aval
from lamina.experimental.sparse import sparsify_control as control
from lamina.experimental.sparse.base import is_sparse
from lamina.experimental.sparse.bcoo import BCOO, bcoo_transpose
from lamina.experimental.sparse.bcsr import BCSR
from lamina.experimental.sparse.convolution import bcoo_conv_general_dilated
from lamina.experimental.sparse.densify import todense_p
from lamina.experimental.sparse.operations import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dot_general,
    bcoo_dynamic_slice,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
)
from lamina.interpreters.staging import trace_to_jaxpr


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A function like f that also takes sparse arrays, and gives them where its results are.

    f           a function of pytrees of arrays.
    use_tracer  without effect.

    The function raises NotImplementedError where an operation has no rule for sparse arrays. Functions with derivatives
    of their own have those of what they do.

    >>> sparse = lamina.experimental.sparse
    >>> double = sparse.sparsify(lambda x: 2 * x)
    >>> print(double(sparse.eye(2)).todense())
    [[2. 0.]
     [0. 2.]]
    """

    @functools.wraps(f)
    def sparsified(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs), is_leaf=is_sparse)
        values = [x if isinstance(x, BCSR) else control.as_bcoo(x) for x in leaves]
        out_tree: Any = None

        def flat(*dense: Any) -> list[Any]:
            nonlocal out_tree
            given, named = tree.unflatten(structure, dense)
            out, out_tree = tree.flatten(f(*given, **named))
            return out

        types = [
            ShapedArray(x.shape, x.dtype) if is_sparse(x) else get_aval(x) for x in values
        ]
        closed = trace_to_jaxpr(flat, types)
        return tree.unflatten(out_tree, _run(closed, values))

    return sparsified


def _run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    jaxpr = closed.jaxpr
    values: dict[Any, Any] = dict(
        zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *args], strict=True)
    )

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        if not any(map(is_sparse, operands)):
            out = eqn.primitive.bind(*operands, **eqn.params)
        elif eqn.primitive in _CALLS:
            out = _run(eqn.params[_CALLS[eqn.primitive]], operands)
        elif eqn.primitive in _KEEP_ZEROS:
            out = _of_values(eqn.primitive, *operands, **eqn.params)
        else:
            rule = _RULES.get(eqn.primitive)
            if rule is None:
                raise NotImplementedError(_why_not(eqn.primitive))
            out = rule(*map(control.as_bcoo, operands), **eqn.params)
        outs = out if eqn.primitive.multiple_results else [out]
        values.update(zip(eqn.outvars, outs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _why_not(primitive: Any) -> str:
    if primitive in _FILL_ZEROS:
        return (
            f"sparse rule for {primitive} is not implemented because it would result in dense output. Take todense() "
            "of the operand, where that is wanted."
        )
    return f"sparse rule for {primitive} is not implemented."


def _of_values(primitive: Any, x: Any, **params: Any) -> Any:
    """An operation that keeps zeros: done on the values. Of several at one place it takes the sum."""
    if primitive is lax.integer_pow_p and params["y"] <= 0:
        raise NotImplementedError(
            f"sparse rule for integer_pow with non-positive exponent {params['y']}: zeros would not stay zeros"
        )
    if not (x.unique_indices or primitive in _LINEAR):
        x = x.sum_duplicates(x.nse, remove_zeros=False)
    return x._with(primitive.bind(x.data, **params))


def _multiply(x: Any, y: Any, **_: Any) -> Any:
    return x * y if is_sparse(x) else y * x


def _divide(x: Any, y: Any, **_: Any) -> Any:
    if is_sparse(y):
        raise NotImplementedError("division by a sparse array: take todense() of it")
    return x / y


def _add(x: Any, y: Any, **_: Any) -> Any:
    return x + y if is_sparse(x) else y + x


def _subtract(x: Any, y: Any, **_: Any) -> Any:
    return x - y if is_sparse(x) else -y + x


def _product(x: Any, y: Any, *, dimension_numbers: Any, **_: Any) -> Any:
    return bcoo_dot_general(x, y, dimension_numbers=dimension_numbers)


def _sum(x: BCOO, *, axes: Any, **_: Any) -> Any:
    return x.sum() if len(axes) == x.ndim else x.sum(axis=tuple(axes))


def _reshape(x: BCOO, *, new_sizes: Any, dimensions: Any = None, **_: Any) -> BCOO:
    return bcoo_reshape(x, new_sizes=new_sizes, dimensions=dimensions)


def _slice(x: BCOO, *, start_indices: Any, limit_indices: Any, strides: Any) -> BCOO:
    return bcoo_slice(x, start_indices=start_indices, limit_indices=limit_indices, strides=strides)


def _dynamic_slice(x: BCOO, *starts: Any, slice_sizes: Any, **_: Any) -> BCOO:
    return bcoo_dynamic_slice(x, starts, slice_sizes)


def _convolution(x: Any, y: Any, *, precision: Any, preferred_element_type: Any, **params: Any) -> BCOO:
    return bcoo_conv_general_dilated(x, y, **params)


def _concatenate(*operands: Any, dimension: int) -> BCOO:
    if not all(map(is_sparse, operands)):
        raise NotImplementedError("concatenation of sparse arrays with dense ones: take todense() of the others")
    return bcoo_concatenate(operands, dimension=dimension)


_CALLS = {
    jit_p: "jaxpr", checkpoint_p: "jaxpr", custom_jvp_call_p: "call_jaxpr", custom_vjp_call_p: "call_jaxpr",
}  # fmt: skip
"""Operations that are programs, and the parameter that holds them."""
_LINEAR = {
    lax.neg_p, lax.convert_element_type_p, lax.real_p, lax.imag_p, lax.conj_p, lax.copy_p,
}  # fmt: skip
_KEEP_ZEROS = {
    *_LINEAR, lax.abs_p, lax.asin_p, lax.asinh_p, lax.atan_p, lax.atanh_p, lax.bessel_i1e_p, lax.cbrt_p, lax.ceil_p,
    lax.erf_p, lax.erf_inv_p, lax.expm1_p, lax.floor_p, lax.log1p_p, lax.reduce_precision_p, lax.round_p, lax.sign_p,
    lax.sin_p, lax.sinh_p, lax.sqrt_p, lax.tan_p, lax.tanh_p, lax.integer_pow_p, lax.square_p,
}  # fmt: skip
_FILL_ZEROS = {
    lax.acos_p, lax.acosh_p, lax.bessel_i0e_p, lax.cos_p, lax.cosh_p, lax.digamma_p, lax.erfc_p, lax.exp_p,
    lax.exp2_p, lax.is_finite_p, lax.lgamma_p, lax.log_p, lax.logistic_p, lax.not_p, lax.rsqrt_p,
}  # fmt: skip
"""Operations whose result for 0 is another number."""
_RULES: dict[Any, Callable[..., Any]] = {
    todense_p: lambda x: x.todense(),
    lax.mul_p: _multiply,
    lax.div_p: _divide,
    lax.add_p: _add,
    lax.sub_p: _subtract,
    lax.dot_general_p: _product,
    lax.conv_general_dilated_p: _convolution,
    lax.reduce_sum_p: _sum,
    lax.reshape_p: _reshape,
    lax.squeeze_p: bcoo_squeeze,
    lax.transpose_p: bcoo_transpose,
    lax.broadcast_in_dim_p: bcoo_broadcast_in_dim,
    lax.rev_p: bcoo_rev,
    lax.slice_p: _slice,
    lax.dynamic_slice_p: _dynamic_slice,
    lax.concatenate_p: _concatenate,
    cond_p: functools.partial(control.cond, _run),
    while_p: functools.partial(control.while_loop, _run),
    scan_p: functools.partial(control.scan, _run),
}
