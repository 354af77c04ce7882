"""vmap: a function on examples becomes a function on batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, ParamSpec, TypeVar

import numpy as np

from lamina import config
from lamina.control_flow.mutation import SetAside, values_of, write_all
from lamina.control_flow.tracing import arg_names, check_callable, check_outputs
from lamina.core import refs, tree
from lamina.core.axes import Axis
from lamina.core.trace import get_aval
from lamina.core.tracebacks import api_boundary
from lamina.core.wrapping import named_place, update_wrapper
from lamina.interpreters.batching import batch_flat, move_batch
from lamina.interpreters.mapped_types import Element, from_element, is_spec, is_vmappable
from lamina.sharding.constraint import spread_batch
from lamina.sharding.mesh import get_abstract_mesh

P = ParamSpec("P")
R = TypeVar("R")


def _is_none(x: Any) -> bool:
    return x is None


@api_boundary
def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    lanes: str | None = None,
) -> Callable[P, R]:
    """fun over a batch dimension of its arguments, as one vectorised program.

    in_axes    for each positional argument the axis to map over, or None; a pytree prefix of the
               arguments. Keyword arguments are mapped over axis 0.
    out_axes   where the batch dimension stands in the results; a pytree prefix; None for results
               that are the same for the whole batch.
    axis_name  a name for the batch, for collectives (lax.psum, ...) in fun.
    axis_size  the size of the batch, where no argument tells it.
    lanes      how a `while_loop` or `cond` whose predicate is batched is done: "select": all lanes do
               what any does; "branch": each goes its own way, in a loop over lanes whose steps
               threads share; "auto": what costs less. Results are the same. By default what
               `config.lanes` says.
    spmd_axis_name  the mesh axes that the batch is spread over, for shard_map in fun.
    Raises ValueError where sizes differ (listing each), where an axis is out of range, or where
    out_axes is None for a result that differs from lane to lane.

    >>> lamina.vmap(jnp.dot, in_axes=(0, None))(jnp.eye(2), jnp.array([3.0, 4.0])).tolist()
    [3.0, 4.0]
    """
    check_callable(fun)
    in_axes = _checked_in_axes(in_axes)
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        _check_axes(what, axes)
    if lanes not in (None, "auto", "branch", "select"):
        raise ValueError(f'vmap lanes must be "auto", "branch" or "select", but got {lanes!r}')
    spmd = spmd_axis_name if isinstance(spmd_axis_name, tuple) else (spmd_axis_name,)
    spmd = () if spmd_axis_name is None else spmd

    @api_boundary
    def vmap_f(*args: Any, **kwargs: Any) -> Any:
        if refs.alive and (aside := SetAside(fun, "vmap", args, kwargs)).refs:
            return over_refs(aside, args, kwargs)
        leaves, in_tree = tree.flatten((args, kwargs), is_vmappable)
        axes = _axes_of_leaves(in_axes, args, kwargs)
        dims, size = mapped_sizes(
            "vmap", leaves, axes, lambda: names_of_leaves(fun, args, kwargs), axis_size
        )
        out_tree: list[Any] = []
        explicit = _explicit_axes(leaves, dims)
        along = _spread_over(explicit, spmd)

        def flat(*values: Any) -> list[Any]:
            a, k = tree.unflatten(in_tree, values)
            out, treedef = tree.flatten(fun(*a, **k), is_vmappable)
            check_outputs([x for x in out if not is_vmappable(x)], named_place(fun), "vmap")
            out_tree.append(treedef)
            return out

        with nullcontext() if lanes is None else config.lanes(lanes):
            outs, out_dims = batch_flat(flat, leaves, dims, Axis(axis_name, size, along))
        wanted = _axes_of_results(out_axes, out_tree[0], len(outs))
        where = (fun, axis_name)
        placed = [
            _place(x, d, w, size, where, explicit) for x, d, w in zip(outs, out_dims, wanted, strict=True)
        ]
        return tree.unflatten(out_tree[0], placed)

    def over_refs(aside: SetAside, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that is given refs: of those that are mapped each example sees its part."""
        axes = _axes_of_leaves(in_axes, args, kwargs)
        of_refs = [axes[i] for i in aside.places]
        pure = aside.pure([axis is not None for axis in of_refs])
        mapped = [r for r, axis in zip(aside.refs, of_refs, strict=True) if axis is not None]
        at = [axis for axis in of_refs if axis is not None]
        positional = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        over = vmap(pure, (at, *positional), (out_axes, at), axis_name, axis_size, spmd_axis_name, lanes)
        result, values = over(values_of(mapped), *aside.args, **aside.kwargs)
        write_all(mapped, values)
        return result

    return update_wrapper(vmap_f, fun)


def _checked_in_axes(in_axes: Any) -> Any:
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (
        isinstance(in_axes, (int, tuple, type(None)))
        or hasattr(in_axes, "__index__")
        or is_spec(in_axes)
    ):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional "
            f"arguments passed to the function, but got {in_axes}."
        )
    return in_axes


def _check_axes(what: str, axes: Any) -> None:
    """Raises TypeError where an axis is no integer; an array may not be one, since its value is no part of
    the program."""
    for axis in tree.leaves(axes, is_spec):
        if is_spec(axis) or isinstance(axis, (int, np.integer)) and not isinstance(axis, bool):
            continue
        raise TypeError(
            f"vmap {what} must be an int, None, or (nested) container with those types as leaves, but "
            f"got {axes}."
        )


def _axes_of_leaves(in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The axis of each leaf of the arguments."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        note = f". Those given by name ({', '.join(kwargs)}) are mapped over axis 0" if kwargs else ""
        raise ValueError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {len(in_axes)=}, {len(args)=}{note}"
        )
    try:
        return tree.broadcast_prefix((in_axes, 0), (args, kwargs), _is_none, is_vmappable)
    except ValueError as e:
        raise ValueError(
            "vmap in_axes specification must be a tree prefix of the corresponding value, got "
            f"specification {in_axes} for value tree {tree.structure(args)}: {e}"
        ) from None


def _axes_of_results(out_axes: Any, out_tree: Any, count: int) -> list[Any]:
    """The axis of each leaf of the results."""
    result = tree.unflatten(out_tree, list(range(count)))
    try:
        return tree.broadcast_prefix(out_axes, result, _is_none)
    except ValueError as e:
        raise ValueError(
            f"vmap out_axes specification must be a tree prefix of the corresponding value, got "
            f"specification {out_axes} for value tree {out_tree}: {e}"
        ) from None


def _explicit_axes(leaves: list[Any], dims: list[Any]) -> tuple[Any, ...]:
    """The mesh axes over which types say that the mapped dimension is split."""
    found: tuple[Any, ...] = ()
    for x, dim in zip(leaves, dims, strict=True):
        if dim is None or is_vmappable(x):
            continue
        placed = get_aval(x).placed
        names = () if placed is None else placed.dims[dim]
        if found and names != found:
            raise ValueError(
                "Mapped away dimension of inputs passed to vmap should be sharded the same. Got inconsistent axis "
                f"specs: {found} and {names or None}. reshard puts one as the other"
            )
        found = names
    return found


def _spread_over(explicit: tuple[Any, ...], spmd: tuple[Any, ...]) -> tuple[Any, ...]:
    """The mesh axes of a batch, which types and spmd_axis_name may both say."""
    if not explicit or not spmd:
        return explicit or spmd
    sizes = get_abstract_mesh().shape
    said = spmd
    if config.remove_size_one_mesh_axis_from_type.value:
        said = tuple(name for name in spmd if sizes.get(name) != 1)
    if said != explicit:
        raise ValueError(
            "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed. Got "
            f"spmd_axis_name={spmd}, and arrays that are split over {explicit} along the mapped dimension"
        )
    return explicit


def names_of_leaves(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[str]:
    """What messages call the leaves of the arguments: argument x['w'], kwargs['y']."""
    by_name = [f"kwargs[{key!r}]{path}" for key in sorted(kwargs) for path in tree.paths(kwargs[key])]
    names = arg_names(fun, args, kwargs)
    return [f"argument {name}" for name in names[: len(names) - len(by_name)]] + by_name


def mapped_sizes(
    what: str,
    leaves: list[Any],
    axes: list[Any],
    names: Callable[[], Sequence[str]],
    axis_size: int | None,
) -> tuple[list[Any], int]:
    """The axes as dimensions that are not negative, and the one size that they have. `what` is
    the transformation and `names` gives the leaves' names, for messages."""

    def name(i: int) -> str:
        known = names()
        return known[i] if i < len(known) else f"argument {i}"

    dims: list[Any] = []
    found: list[tuple[int, Any, int, int]] = []
    for i, (x, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            dims.append(None)
            continue
        if is_vmappable(x):
            dims.append(axis)
            shape = getattr(x, "shape", ())
            if isinstance(axis, int) and -len(shape) <= axis < len(shape):
                found.append((i, x, axis, shape[axis]))
            continue
        if isinstance(axis, bool) or not hasattr(axis, "__index__"):
            raise TypeError(
                f"{what} in_axes must be an int, None, or (nested) container with those types "
                f"as leaves, but got {axis!r}"
            )
        aval = get_aval(x)
        if not aval.shape:
            raise ValueError(
                f"{what} was requested to map its argument along axis "
                f"{axis}, which implies that its rank should be at least 1, but is only 0 (its shape is "
                f"()): {name(i)}"
            )
        if not -aval.ndim <= axis < aval.ndim:
            raise ValueError(
                f"{what} was requested to map its argument along axis {axis}, which implies that its rank "
                f"should be at least {axis + 1 if axis >= 0 else -axis}, but is only {aval.ndim} (its "
                f"shape is {aval.shape}): {name(i)}"
            )
        axis = axis % aval.ndim
        dims.append(axis)
        found.append((i, aval, axis, aval.shape[axis]))
    sizes = {n for *_, n in found}
    if axis_size is not None:
        sizes.add(axis_size)
    if not leaves and not sizes:
        raise ValueError(
            f"{what} wrapped function must be passed at least one argument containing an array or axis_size must "
            "be specified"
        )
    if not sizes:
        raise ValueError(f"{what} must have at least one non-None value in in_axes, or axis_size")
    if len(sizes) > 1:
        raise ValueError(
            f"{what} got inconsistent sizes for array axes to be mapped:\n"
            + ";\n".join(_lines_of_sizes(found, axis_size, name))
        )
    return dims, sizes.pop()


def _lines_of_sizes(
    found: Sequence[tuple[int, Any, int, int]], axis_size: int | None, name: Callable[[int], str]
) -> Iterator[str]:
    """For each size the first axis that has it, the most frequent first."""
    if axis_size is not None:
        yield f"  * the `axis_size` argument was {axis_size}"
    groups: dict[int, list[tuple[int, Any, int, int]]] = {}
    for each in found:
        groups.setdefault(each[-1], []).append(each)
    for size, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        position, aval, axis, _ = group[0]
        kind = type(aval).__name__ if is_vmappable(aval) else aval.str_long()
        which = f"axis {axis} of {name(position)} of type {kind}"
        if len(group) == 1:
            yield f"  * one axis had size {size}: {which}"
        else:
            share = "most" if 2 * len(group) > len(found) else "some"
            yield f"  * {share} axes ({len(group)} of them) had size {size}, e.g. {which}"


def _place(x: Any, dim: Any, wanted: Any, size: int, where: tuple[Any, Any], along: Any) -> Any:
    """A result with its batch dimension where it is wanted, which is split over the axes `along` of a mesh, if there
    are any, where it is the same for all of the batch, too. `where` is the function and the batch's name."""
    if isinstance(x, Element):
        return from_element(x, size, wanted, lambda y, d, w: _place(y, d, w, size, where, along))
    if wanted is None:
        if dim is not None:
            fun, axis_name = where
            named = "" if axis_name is None else f" ({axis_name=!s})"
            raise ValueError(
                f"vmap has mapped output{named} but out_axes is None, at vmap out_axes of "
                f"{getattr(fun, '__name__', fun)}: the result of type {get_aval(x).str_long()} differs "
                "from lane to lane"
            )
        return x
    ndim = get_aval(x).ndim + (1 if dim is None else 0)
    if not -ndim <= wanted < ndim:
        raise ValueError(
            f"axis {wanted} is out of bounds for array of dimension {ndim} (vmap out_axes)"
        )
    at = wanted % ndim
    out = move_batch(x, dim, size, to=at)
    return spread_batch(out, at, along) if dim is None else out
