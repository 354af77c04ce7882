"""pallas_call: a kernel called for each place of a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from lamina import lax
from lamina import numpy as jnp
from lamina.core import tree
from lamina.core.refs import Ref
from lamina.experimental.pallas.blocks import BlockSpec, Cut, GridSpec, no_block_spec
from lamina.experimental.pallas.grid import at
from lamina.experimental.pallas.memory import ref_for, unwritten
from lamina.jit.function import jit


def pallas_call(
    kernel: Callable[..., Any],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: dict[int, int] | None = None,
    debug: bool = False,
    interpret: Any = True,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    backend: Any = None,
    metadata: Any = None,
) -> Callable[..., Any]:
    """A function of arrays that calls a kernel for each place of a grid. Kernels run as plain
    programs: what pallas calls interpret mode.

    kernel                is given a ref for each argument, result and piece of scratch memory, in
                          this order (a container of refs where there is one of arrays), and returns
                          nothing.
    out_shape             types of the results, a pytree of what has `shape` and `dtype`.
    grid                  the sizes of the grid, an integer or several, of which the last varies
                          fastest.
    in_specs              a BlockSpec for each argument; without them kernels see whole arrays.
    out_specs             the same for the results. Blocks that are never written hold NaN (the
                          least integer, False).
    scratch_shapes        memory that is kept from place to place.
    grid_spec             a GridSpec of these four together.
    input_output_aliases  {number of an argument: number of the result that takes its memory}.
    name                  the kernel's name, and debug, interpret, compiler_params, cost_estimate,
                          backend and metadata: without effect.

    Raises ValueError where specs do not fit the arrays or the kernel returns something.

    >>> pallas = lamina.experimental.pallas
    >>> def double(x_ref, out_ref):
    ...     out_ref[...] = 2 * x_ref[...]
    >>> x = jnp.arange(4.0)
    >>> block = pallas.BlockSpec((2,), lambda i: (i,))
    >>> print(pallas.pallas_call(double, x, grid=2, in_specs=[block], out_specs=block)(x))
    [0. 2. 4. 6.]
    """
    if grid_spec is not None:
        if grid != () or in_specs is not no_block_spec or out_specs is not no_block_spec:
            raise ValueError(
                "If `grid_spec` is specified, then `grid`, `in_specs`, and `out_specs` must not be "
                "specified."
            )
        grid, scratch_shapes = grid_spec.grid, grid_spec.scratch_shapes
        in_specs, out_specs = grid_spec.in_specs, grid_spec.out_specs
    sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    called: str = name or str(getattr(kernel, "__name__", "kernel"))

    def call(*args: Any) -> Any:
        arguments = [jnp.asarray(x) for x in tree.leaves(args)]
        results, out_tree = tree.flatten(out_shape)
        arrays = _Arrays(
            called,
            [
                *_cuts("args", in_specs, args, arguments),
                *_cuts("outputs", out_specs, out_shape, results),
            ],
            [x.shape for x in (*arguments, *results)],
            {i: len(arguments) + o for i, o in (input_output_aliases or {}).items()},
        )
        filled = [unwritten(tuple(r.shape), r.dtype) for r in results]
        held = arrays.padded([*arguments, *filled])
        scratch = [ref_for(m).read() for m in tree.leaves(scratch_shapes)]
        structures = (tree.structure(args), out_tree, tree.structure(scratch_shapes))

        def step(k: Any, carry: Any) -> Any:
            place = _place(k, sizes)
            with at(place, sizes):
                return _step(kernel, called, structures, arrays, place, *carry)

        held, _ = lax.fori_loop(0, _count(sizes), step, (held, scratch))
        return tree.unflatten(out_tree, arrays.results(held)[len(arguments) :])

    call.__name__ = call.__qualname__ = called
    return jit(call)


def _count(sizes: Sequence[Any]) -> Any:
    if all(isinstance(n, int) for n in sizes):
        return math.prod(sizes)
    return jnp.prod(jnp.stack([jnp.asarray(n, jnp.int32) for n in sizes]))


def _place(k: Any, sizes: Sequence[Any]) -> list[Any]:
    """The k-th place of a grid, whose last axis varies fastest."""
    place: list[Any] = []
    for size in reversed(sizes):
        place.insert(0, jnp.asarray(k % size, jnp.int32))
        k = k // size
    return place


def _cuts(what: str, specs: Any, value: Any, leaves: Sequence[Any]) -> list[tuple[str, Cut]]:
    """How each array is cut, under its name."""
    names = [f"{what}[{i}]" for i in range(len(leaves))]
    if specs is no_block_spec or specs is None:
        flat: list[Any] = [BlockSpec()] * len(leaves)
    else:
        def is_spec(x: Any) -> bool:
            return isinstance(x, BlockSpec) or x is no_block_spec

        flat = tree.leaves(specs, is_leaf=is_spec)
        if len(flat) == 1 and len(leaves) > 1 and is_spec(specs):
            flat *= len(leaves)
    if len(flat) != len(leaves):
        raise ValueError(
            f"pallas_call takes a BlockSpec for each of {what}: there are {len(flat)} for "
            f"{len(leaves)} arrays"
        )
    flat = [BlockSpec() if spec is no_block_spec else spec for spec in flat]
    return [
        (name, spec.cut(name, tuple(leaf.shape)))
        for name, spec, leaf in zip(names, flat, leaves, strict=True)
    ]


class _Arrays:
    """The arguments and results of a call. What an argument shares with a result is held once."""

    def __init__(
        self, called: str, cuts: list[tuple[str, Cut]], shapes: list[Any], aliases: dict[int, int]
    ) -> None:
        self.called, self.cuts, self.aliases = called, cuts, aliases
        self.shapes = [tuple(shape) for shape in shapes]
        self.paddings = [cut.padding(s) for (_, cut), s in zip(cuts, self.shapes, strict=True)]
        for i, o in aliases.items():
            if self.shapes[i] != self.shapes[o] or self.paddings[i] != self.paddings[o]:
                raise ValueError(
                    f"{called}: {cuts[i][0]} and {cuts[o][0]} share memory, so that they must have "
                    f"one shape, and be cut into blocks of one shape: {self.shapes[i]}, {self.shapes[o]}"
                )

    def padded(self, values: list[Any]) -> list[Any]:
        """Arrays that are cut into whole blocks, with the arguments in the results' places that they
        share; in their own an empty array."""
        for i, o in self.aliases.items():
            if values[i].dtype != values[o].dtype:
                raise ValueError(
                    f"{self.called}: {self.cuts[i][0]} is {values[i].dtype}, and the result that "
                    f"takes its memory {values[o].dtype}"
                )
            values[o] = values[i]
        return [
            jnp.zeros(0, x.dtype) if i in self.aliases else _pad(x, padding)
            for i, (x, padding) in enumerate(zip(values, self.paddings, strict=True))
        ]

    def results(self, held: Sequence[Any]) -> list[Any]:
        """The arrays without what was added."""
        return [
            x if i in self.aliases else _unpad(x, padding, shape)
            for i, (x, padding, shape) in enumerate(zip(held, self.paddings, self.shapes, strict=True))
        ]

    def home(self, i: int) -> int:
        """Where an array is held."""
        return self.aliases.get(i, i)


def _pad(x: Any, padding: list[tuple[int, int, int]]) -> Any:
    if not any(map(any, padding)):
        return x
    return lax.pad(x, unwritten((), x.dtype), padding)


def _unpad(x: Any, padding: list[tuple[int, int, int]], shape: tuple[int, ...]) -> Any:
    if x.shape == shape:
        return x
    starts = [before for before, _, _ in padding]
    return lax.slice(x, starts, [s + n for s, n in zip(starts, shape, strict=True)])


def _step(
    kernel: Callable[..., Any],
    called: str,
    structures: tuple[Any, Any, Any],
    arrays: _Arrays,
    place: Sequence[Any],
    held: list[Any],
    scratch: list[Any],
) -> tuple[list[Any], list[Any]]:
    """The arrays and the scratch memory after the kernel was called at a place."""
    starts = [cut.starts(name, place) for name, cut in arrays.cuts]
    refs: list[Ref] = []
    for i, ((_, cut), first) in enumerate(zip(arrays.cuts, starts, strict=True)):
        block = lax.dynamic_slice(held[arrays.home(i)], first, cut.sizes)
        refs.append(Ref(lax.squeeze(block, cut.dropped)))
    before = [ref.read() for ref in refs]
    own = [Ref(x) for x in scratch]
    n = structures[0].num_leaves
    args = tree.unflatten(structures[0], refs[:n])
    out = tree.unflatten(structures[1], refs[n:])
    more = tree.unflatten(structures[2], own)
    outs = out if isinstance(out, (tuple, list)) else (out,)
    more_args, more_named = ((), more) if isinstance(more, dict) else (_several(more), {})
    result = kernel(*args, *outs, *more_args, **more_named)
    if result is not None:
        raise ValueError(
            f"The kernel function {called} in the pallas_call should return None. It returns: "
            f"{tree.structure(result)}"
        )
    held = list(held)
    for i, (ref, old, first) in enumerate(zip(refs, before, starts, strict=True)):
        new = ref.read()
        if new is not old:  # else nobody has written it
            home, (_, cut) = arrays.home(i), arrays.cuts[i]
            held[home] = lax.dynamic_update_slice(held[home], new.reshape(cut.sizes), first)
    return held, [ref.read() for ref in own]


def _several(x: Any) -> Sequence[Any]:
    return x if isinstance(x, (tuple, list)) else (x,)
