"""Control flow of sparsified functions: loops and branches whose operands and carries are sparse.

A BCOO or a BCSR is a pytree, so the public functions take it; what these need besides is that values which take turns
say the same of themselves (whether places are in order, and unique), and that steps of a scan are batch elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import lamina
from lamina import lax
from lamina.core import tree
from lamina.core.jaxpr import ClosedJaxpr
from lamina.experimental.sparse.base import is_sparse
from lamina.experimental.sparse.bcoo import BCOO
from lamina.experimental.sparse.layouts import spread

Run = Callable[[ClosedJaxpr, Sequence[Any]], list[Any]]
"""What a program gives for operands that may be sparse."""


def as_bcoo(x: Any) -> Any:
    """A sparse array of any format as a BCOO; a dense one as it is."""
    return x.to_bcoo() if is_sparse(x) and not isinstance(x, BCOO) else x


def cond(run: Run, index: Any, *operands: Any, branches: Sequence[ClosedJaxpr]) -> list[Any]:
    """A branch by an index, which is dense. TypeError where results of one branch alone are sparse."""
    given = [as_bcoo(x) for x in operands]
    wanted = [lamina.eval_shape(lambda *xs, b=b: run(b, xs), *given) for b in branches]
    names = ["false_fun", "true_fun"] if len(branches) == 2 else [f"branch {i}" for i in range(len(branches))]
    for name, outs in zip(names, wanted, strict=True):
        kinds = [[type(x) if is_sparse(x) else None for x in one] for one in (outs, wanted[0])]
        if kinds[0] != kinds[1]:
            raise TypeError(
                f"sparsified {name} output must have same type structure as sparsified {names[0]} output: "
                f"{list(outs)} and {list(wanted[0])}"
            )
    told = _told_by_all(wanted)
    return lax.switch(index, [lambda *xs, b=b: _telling(run(b, xs), told) for b in branches], *given)


def while_loop(
    run: Run, *operands: Any, cond_nconsts: int, cond_jaxpr: ClosedJaxpr, body_nconsts: int, body_jaxpr: ClosedJaxpr
) -> list[Any]:
    """A loop whose carry and constants may be sparse."""
    given = [as_bcoo(x) for x in operands]
    consts, given = given[:cond_nconsts], given[cond_nconsts:]
    body_consts, init = given[:body_nconsts], given[body_nconsts:]
    init, step = _settled(init, lambda carry: run(body_jaxpr, [*body_consts, *carry]))
    return lax.while_loop(lambda carry: run(cond_jaxpr, [*consts, *carry])[0], step, init)


def scan(
    run: Run, *operands: Any, jaxpr: ClosedJaxpr, length: int, reverse: bool, num_consts: int, num_carry: int,
    unroll: int,
) -> list[Any]:  # fmt: skip
    """A scan over arrays of which sparse ones have a batch axis first; sparse results get one."""
    given = [as_bcoo(x) for x in operands]
    consts, given = given[:num_consts], given[num_consts:]
    init, xs = given[:num_carry], given[num_carry:]
    if any(is_sparse(x) and not x.n_batch for x in xs):
        raise NotImplementedError("scan over a sparse array without a batch axis: BCOO.fromdense(..., n_batch=1)")
    arrays = [spread(x) if is_sparse(x) else x for x in xs]

    def of_step(parts: Sequence[Any]) -> list[Any]:
        return [
            BCOO(part, shape=x.shape[1:], indices_sorted=x.indices_sorted, unique_indices=x.unique_indices)
            if is_sparse(x) else part
            for x, part in zip(xs, parts, strict=True)
        ]  # fmt: skip

    def both(carry: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
        return run(jaxpr, [*consts, *carry, *of_step(parts)])

    first = tree.map(lambda x: lamina.ShapeDtypeStruct(x.shape[1:], x.dtype), arrays)
    init, _ = _settled(init, lambda carry, parts: both(carry, parts)[:num_carry], first)
    told = _told_by_all([init])

    def step(carry: Sequence[Any], parts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs = both(carry, parts)
        return _telling(outs[:num_carry], told), outs[num_carry:]

    last, ys = lax.scan(step, init, arrays, length=length, reverse=reverse, unroll=unroll)
    return [*last, *(_of_all(y, length) if is_sparse(y) else y for y in ys)]


def _of_all(y: Any, length: int) -> BCOO:
    """A sparse result of a scan: its arrays have an axis more than its shape says."""
    return BCOO(
        (y.data, y.indices), shape=(length, *y.shape), indices_sorted=y.indices_sorted,
        unique_indices=y.unique_indices,
    )  # fmt: skip


def _tells(x: Any) -> tuple[bool, bool] | None:
    """What a sparse array says of its places: whether they are in order, and unique."""
    return (x.indices_sorted, x.unique_indices) if is_sparse(x) else None


def _told_by_all(rows: Sequence[Sequence[Any]]) -> list[tuple[bool, bool] | None]:
    """What all that stand at one place say of themselves."""
    found = []
    for column in zip(*rows, strict=True):
        told = [_tells(x) for x in column]
        known = [t for t in told if t is not None]  # where others are dense, who compares their types says so
        found.append((all(s for s, _ in known), all(u for _, u in known)) if known else None)
    return found


def _telling(values: Sequence[Any], told: Sequence[tuple[bool, bool] | None]) -> list[Any]:
    """The same values, those that are sparse saying no more than that of their places."""
    made = []
    for x, said in zip(values, told, strict=True):
        x = as_bcoo(x)
        if is_sparse(x) and said is not None:
            (arrays, (shape, *_)) = x.tree_flatten()
            x = BCOO.tree_unflatten((shape, *said), arrays)
        made.append(x)
    return made


def _settled(
    init: Sequence[Any], step: Callable[..., list[Any]], *more: Any
) -> tuple[list[Any], Callable[..., list[Any]]]:
    """A carry and a step that say the same of the places of what is sparse."""
    carry = list(init)
    told = _told_by_all([carry])
    while (less := _told_by_all([carry, lamina.eval_shape(step, carry, *more)])) != told:
        # Each round takes back what a step no longer says.
        carry, told = _telling(carry, less), less
    return carry, lambda *xs: _telling(step(*xs), told)
