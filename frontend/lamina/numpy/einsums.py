"""einsum: sums of products named by subscripts, as a sequence of dot_generals.

opt_einsum chooses the order of contractions; each step joins two operands: axes in both and in the
result are batch axes, axes in both alone are contracted, axes in one alone are summed before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core.placed import terms_wanted, undecided
from lamina.core.trace import get_aval
from lamina.lax.convert import convert as convert_weakly
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.diagonals import diagonal
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    check_arraylike,
    promote_dtypes,
    refuse_out,
    requested_dtype,
)  # fmt: skip


def einsum(
    subscripts: Any,
    /,
    *operands: ArrayLike,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Any = lax.dot_general,
    out_sharding: Any = None,
) -> Array:
    """The Einstein summation that subscripts ("ij,jk->ik") or index lists name.

    optimize      what opt_einsum.contract_path takes.
    _dot_general  what multiplies two operands, called as lax.dot_general is.
    Raises ValueError where sizes of an index differ.

    subscripts              the indices of each operand and of the result; or operands and lists
                            of indices in turn
    operands                arrays
    out                     must be None: arrays cannot be written to
    precision               how exact products of floats are, as in lax.dot_general
    preferred_element_type  the dtype to sum in and to give
    out_sharding            how the result is laid out over a mesh

    >>> jnp.einsum("ij,j->i", jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1])).tolist()
    [3, 7]
    """
    refuse_out("einsum", out)
    names, arrays = _parsed(subscripts, operands)
    check_arraylike("einsum", *arrays)
    preferred = (
        None
        if preferred_element_type is None
        else requested_dtype(preferred_element_type, "einsum")
    )
    arrays = [asarray(x) for x in promote_dtypes(*arrays)]
    plan = _path(names, tuple(x.shape for x in arrays), _hashable(optimize))
    of_terms = getattr(getattr(out_sharding, "spec", out_sharding), "unreduced", None)
    with undecided(out_sharding is not None), terms_wanted(bool(of_terms)):
        result = _einsum(
            arrays, plan=plan, precision=precision, preferred=preferred, product=_dot_general
        )
    return result if out_sharding is None else lax.under(result, out_sharding, "einsum")


def einsum_path(subscripts: Any, /, *operands: ArrayLike, optimize: Any = "auto") -> Any:
    """The order of contractions that einsum takes, and opt_einsum's description of it.

    subscripts, operands  those of einsum
    optimize              what opt_einsum.contract_path takes

    >>> jnp.einsum_path("ij,jk->ik", jnp.ones((2, 2)), jnp.ones((2, 2)))[0]
    [(0, 1)]
    """
    import opt_einsum  # when used: it takes as long to load as all of lax

    names, arrays = _parsed(subscripts, operands)
    shapes = [np.shape(x) for x in arrays]
    path, info = opt_einsum.contract_path(
        names, *shapes, shapes=True, optimize=_optimizer(optimize)
    )
    return path, info


def _parsed(subscripts: Any, operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Subscripts without ellipsis or blanks, with an explicit result."""
    import opt_einsum

    given = (subscripts, *operands)
    if isinstance(subscripts, str) and not operands:
        raise ValueError("einsum needs at least one operand beside the subscripts")
    try:
        if isinstance(subscripts, str):
            shapes = [get_aval(x).shape for x in operands]
            inputs, result, _ = opt_einsum.parser.parse_einsum_input(
                (subscripts, *shapes), shapes=True
            )
            return f"{inputs}->{result}", list(operands)
        shapes_and_lists = [
            list(x)
            if isinstance(x, (list, tuple))
            else get_aval(x).shape
            if i % 2 == 0 and i < len(given)
            else x
            for i, x in enumerate(given)
        ]
        inputs, result, _ = opt_einsum.parser.parse_einsum_input(shapes_and_lists, shapes=True)
        count = len(given) // 2
        return f"{inputs}->{result}", [given[2 * i] for i in range(count)]
    except (KeyError, IndexError) as e:
        raise ValueError(f"einsum can't read the subscripts {subscripts!r}: {e}") from None


def _hashable(optimize: Any) -> Any:
    if isinstance(optimize, list):
        return tuple(tuple(step) if isinstance(step, (list, tuple)) else step for step in optimize)
    return optimize


def _optimizer(optimize: Any) -> Any:
    if optimize is True or optimize == "auto":
        return "auto"
    if isinstance(optimize, tuple) and optimize and optimize[0] == "einsum_path":
        optimize = optimize[1:]
    return list(optimize) if isinstance(optimize, tuple) else optimize


Step = tuple[tuple[int, ...], tuple[str, ...], str]


@functools.lru_cache(maxsize=1024)
def _path(names: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> tuple[Step, ...]:
    """The contractions in order: which operands, with which indices, give which indices."""
    inputs, result = names.split("->")
    terms = inputs.split(",")
    sizes: dict[str, int] = {}
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        if len(term) != len(shape):
            raise ValueError(
                f"Einstein sum subscript '{term}' does not contain the correct number of "
                f"indices for operand {i}."
            )
        for name, n in zip(term, shape, strict=True):
            known = sizes.setdefault(name, n)
            if known != n and 1 not in (known, n):
                raise ValueError(
                    f"Size of label '{name}' for operand {i} ({n}) does not match previous "
                    f"terms ({known})."
                )
            sizes[name] = max(known, n)
    if optimize is False or len(terms) <= 2:
        path: Sequence[tuple[int, ...]] = [tuple(range(len(terms)))]
    else:
        import opt_einsum

        full = [tuple(sizes[c] for c in t) for t in terms]
        path, _ = opt_einsum.contract_path(names, *full, shapes=True, optimize=_optimizer(optimize))
    steps: list[Step] = []
    remaining = list(terms)
    for chosen in path:
        group = sorted(chosen)
        while group:  # more than two operands are joined two at a time
            pair = tuple(group[:2])
            picked = tuple(remaining[i] for i in pair)
            rest = [t for i, t in enumerate(remaining) if i not in pair]
            kept = set(result).union(*rest)
            out = (
                "".join(dict.fromkeys(c for t in picked for c in t if c in kept))
                if rest
                else result
            )
            steps.append((pair, picked, out))
            remaining = [*rest, out]
            group = [g - sum(p < g for p in pair) for g in group[2:]]
            if group:
                group.append(len(remaining) - 1)
    return tuple(steps)


@compiled(static=("plan", "precision", "preferred", "product"))
def _einsum(
    operands: list[Any], *, plan: tuple[Step, ...], precision: Any, preferred: Any, product: Any
) -> Array:
    operands = list(operands)
    weak = all(get_aval(x).weak_type for x in operands) and preferred is None
    dtype = preferred or operands[0].dtype
    for pair, terms, out in plan:
        taken = [operands[i] for i in pair]
        operands = [x for i, x in enumerate(operands) if i not in pair]
        reduced = [
            _single(x, t, _needed(terms, i, out))
            for i, (x, t) in enumerate(zip(taken, terms, strict=True))
        ]
        if len(reduced) == 1:
            (x, names) = reduced[0]
            operands.append(_ordered(x, names, out))
        else:
            multiply = functools.partial(
                product, precision=precision, preferred_element_type=dtype
            )
            operands.append(_contract(*reduced[0], *reduced[1], out, multiply))
    return convert_weakly(operands[0], dtype, weak)


def _needed(terms: tuple[str, ...], i: int, out: str) -> set[str]:
    """The indices of a term that something else reads."""
    return set(out).union(*(t for j, t in enumerate(terms) if j != i))


def _single(x: Array, names: str, needed: set[str]) -> tuple[Array, str]:
    """An operand with repeated indices as diagonals and indices that nothing else reads summed."""
    from lamina.numpy.reductions import sum as sum_

    for c in dict.fromkeys(names):
        while names.count(c) > 1:
            first = names.index(c)
            second = names.index(c, first + 1)
            x = diagonal(x, 0, first, second)
            names = "".join(n for k, n in enumerate(names) if k not in (first, second)) + c
    dropped = tuple(k for k, n in enumerate(names) if n not in needed)
    if dropped:
        x = sum_(x, dropped, x.dtype)
        names = "".join(n for n in names if n in needed)
    return x, names


def _contract(
    a: Array, a_names: str, b: Array, b_names: str, out: str, multiply: Callable[..., Array]
) -> Array:
    # An index of size 1 in one operand and more in the other is that of the other alone.
    for c in set(a_names) & set(b_names):
        i, j = a_names.index(c), b_names.index(c)
        if a.shape[i] != b.shape[j]:
            if a.shape[i] == 1:
                a, a_names = lax.squeeze(a, (i,)), a_names.replace(c, "")
            else:
                b, b_names = lax.squeeze(b, (j,)), b_names.replace(c, "")
    a, a_names = _single(a, a_names, set(out) | set(b_names))
    b, b_names = _single(b, b_names, set(out) | set(a_names))
    shared = [c for c in a_names if c in b_names]
    batch = [c for c in shared if c in out]
    summed = [c for c in shared if c not in out]
    a_free = [c for c in a_names if c not in shared]
    b_free = [c for c in b_names if c not in shared]
    if batch + b_free + a_free == list(out) and batch + a_free + b_free != list(out):
        # The other way round no transposition is needed.
        a, b, a_names, b_names, a_free, b_free = b, a, b_names, a_names, b_free, a_free
    dims = (
        (tuple(a_names.index(c) for c in summed), tuple(b_names.index(c) for c in summed)),
        (tuple(a_names.index(c) for c in batch), tuple(b_names.index(c) for c in batch)),
    )
    product = multiply(a, b, dims)
    return _ordered(product, "".join(batch + a_free + b_free), out)


def _ordered(x: Array, names: str, out: str) -> Array:
    order = [names.index(c) for c in out]
    return lax.transpose(x, order) if order != list(range(len(order))) else x
