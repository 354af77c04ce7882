"""From a jaxpr to what the compiler is given: what is read, passed through, donated, written into it."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, Literal, all_equations, dce_jaxpr
from lamina.core.trace import Tracer, get_aval, has_no_value, physical
from lamina.records import Record

# Constants above this many bytes are passed to the program instead of being written into it.
HOIST_BYTES = 16 * 1024
_MOST_ELEMENTS = 1 << 56


class Plan(Record, frozen=False):
    """A jaxpr made ready for the compiler: what it reads, what it passes through, what it donates."""

    closed: ClosedJaxpr  # only the inputs in `kept`, only the results that are computed
    name: str
    kept: tuple[int, ...]
    outputs: tuple[int, ...]  # for each result: which computed one, or ~i for input i as it is
    weak_types: tuple[bool, ...]
    hoisted: tuple[bool, ...]
    aliases: dict[int, int]
    donors: tuple[int, ...]
    arg_names: tuple[str, ...]
    result_paths: tuple[str, ...]
    callbacks: tuple[Any, ...] = ()  # known once it is lowered
    logical_out: tuple[Any, ...] = ()  # dtypes of results that programs hold as others, else None
    physical_in: bool = False  # whether they hold some arguments as others
    local: Any = None  # a sharding.localize.Localized where several devices run the program
    requested: Any = None  # the sharding.requested.RequestedShardings of one that is to be partitioned

    @property
    def const_args(self) -> list[Any]:
        return [c for c, h in zip(self.closed.consts, self.hoisted, strict=True) if h]

    @property
    def computes(self) -> bool:
        """Whether it has anything to do."""
        return bool(self.closed.jaxpr.outvars or self.closed.effects)

    def lower(self) -> Any:
        """The StableHLO module: with Shardy's annotations, where it is to be partitioned."""
        from lamina.interpreters.lowering import lower_module

        callbacks: list[Any] = []
        lower = functools.partial(
            lower_module,
            self.closed,
            f"jit_{self.name}",
            consts_as_args=self.hoisted,
            aliases=self.aliases,
            donors=self.donors,
            arg_names=self.arg_names,
            result_paths=self.result_paths,
            callbacks=callbacks,
        )
        if self.requested is not None:
            from lamina.partitioning.annotations import Annotations

            annotations = Annotations(self.requested)
            module = lower(num_partitions=self.requested.mesh.size, annotations=annotations)
        else:
            module = lower(num_partitions=1 if self.local is None else self.local.mesh.size)
        self.callbacks = tuple(callbacks)
        return module


def plan_program(
    closed: ClosedJaxpr,
    name: str,
    donated: Sequence[bool] = (),
    keep_unused: bool = False,
    arg_names: Sequence[str] = (),
    result_paths: Sequence[str] = (),
    requested: Any = None,
) -> Plan:
    """Drops dead work and unread inputs, passes plain inputs through, pairs donated buffers."""
    local = _localized(closed) if requested is None else None
    closed = closed if local is None else local.closed
    jaxpr = closed.jaxpr
    donated = list(donated) or [False] * len(jaxpr.invars)
    position = {v: i for i, v in enumerate(jaxpr.invars)}
    outputs: list[int] = []
    computed: list[Any] = []
    paths: list[str] = []
    for i, v in enumerate(jaxpr.outvars):
        at = position.get(v) if type(v) is not Literal else None  # type: ignore[arg-type]
        if at is not None and not donated[at] and (requested is None or requested.keeps(at, i)):
            outputs.append(~at)
            continue
        outputs.append(len(computed))
        computed.append(v)
        paths.append(result_paths[i] if i < len(result_paths) else f"[{i}]")
    slim, read = dce_jaxpr(
        Jaxpr(jaxpr.constvars, jaxpr.invars, computed, jaxpr.eqns, jaxpr.debug_info),
        [True] * len(computed),
    )
    kept = tuple(i for i, r in enumerate(read) if r or keep_unused or donated[i])
    used = {v for e in slim.eqns for v in e.invars if type(v) is not Literal} | {
        v for v in computed if type(v) is not Literal
    }
    live = [(v, c) for v, c in zip(slim.constvars, closed.consts, strict=True) if v in used]
    consts = [_constant_value(c, v.aval) for v, c in live]
    slim = Jaxpr(
        [v for v, _ in live],
        [slim.invars[i] for i in kept],
        slim.outvars,
        slim.eqns,
        slim.debug_info,
    )
    is_donated, no_aliases = [donated[i] for i in kept], dict[int, int]()
    if requested is not None:  # in whose place results come is seen when their parts are known
        requested = requested.of(kept, [i for i, at in enumerate(outputs) if at >= 0])
        aliases, donors = no_aliases, tuple(i for i, d in enumerate(is_donated) if d)
    else:
        aliases, donors = match_donations(
            [_shown_type(slim.invars[i].aval) for i in range(len(kept))],
            [_shown_type(v.aval) for v in computed],
            is_donated,
        )
    return Plan(
        ClosedJaxpr(slim, consts),
        name,
        kept,
        tuple(outputs),
        tuple(v.aval.weak_type for v in jaxpr.outvars),
        tuple(c.nbytes > HOIST_BYTES for c in consts),
        aliases,
        donors,
        tuple(arg_names[i] for i in kept if i < len(arg_names)),
        tuple(paths),
        logical_out=tuple(v.aval.dtype if _is_logical(v) else None for v in jaxpr.outvars),
        physical_in=any(map(_is_logical, jaxpr.invars)),
        local=local,
        requested=requested,
    )


def _is_logical(v: Atom) -> bool:
    """Whether programs hold such a value as one of another type: a random key, or nothing (float0)."""
    return v.aval.physical() is not v.aval


def _localized(closed: ClosedJaxpr) -> Any:
    """The program for each device, where several run it."""
    if not any(e.primitive.mesh is not None for e in all_equations(closed.jaxpr)):
        return None
    from lamina.sharding.localize import localize

    return localize(closed)


def _constant_value(value: Any, aval: ShapedArray) -> Any:
    """A constant as NumPy array, or as the Array it is when it is large enough to be passed."""
    if isinstance(value, Tracer):
        raise TypeError(
            "a traced value of an outer transformation is a constant of the function that is to be "
            "compiled: pass it as an argument"
        )
    if has_no_value(value):
        raise TypeError(
            f"A {type(value).__name__} does not have a value and cannot be used as a constant in a "
            "function that is compiled"
        )
    if getattr(value, "nbytes", 0) > HOIST_BYTES and get_aval(value) == aval:
        return value
    aval = aval.physical()
    return np.asarray(physical(value)).astype(aval.dtype, copy=False)


def beyond_memory(closed: ClosedJaxpr) -> MemoryError | None:
    """The error for an operation whose result has more bytes than passes can count; None if there is
    none."""
    for eqn in all_equations(closed.jaxpr):
        for v in eqn.outvars:
            if math.prod(getattr(v.aval, "shape", ())) > _MOST_ELEMENTS:
                return MemoryError(
                    f"[{eqn.primitive}] out of memory: {v.aval.str_short()} has more elements than memory "
                    f"has addresses, at {eqn.source_info.summary()}"
                )
    return None


def _shown_type(aval: ShapedArray) -> str:
    return f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"


def match_donations(
    ins: Sequence[str], outs: Sequence[str], donated: Sequence[bool]
) -> tuple[dict[int, int], tuple[int, ...]]:
    """Which results take the place of which donated arguments, by their types as text, and the donated
    arguments that are left. Warns of these."""
    free: dict[str, list[int]] = {}
    for j, kind in enumerate(outs):
        free.setdefault(kind, []).append(j)
    aliases: dict[int, int] = {}
    unused = []
    for i, (kind, d) in enumerate(zip(ins, donated, strict=True)):
        if not d:
            continue
        places = free.get(kind)
        if places:
            aliases[i] = places.pop(0)
        else:
            unused.append(kind)
    if unused:
        warnings.warn(
            "Some donated buffers were not usable: "
            + ", ".join(unused)
            + ".\nNo result has the same shape and dtype.",
            stacklevel=2,
        )
    donors = tuple(i for i, d in enumerate(donated) if d and i not in aliases)
    return aliases, donors
