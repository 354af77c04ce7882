"""Values in the body of a shard_map that is called outside of any program.

Such a body is traced like any other, and runs as one program. Where Python needs a value meanwhile (`if`, `float`,
`print`), what has been recorded of the body up to there runs on the arguments of the call. The trace is of that call
alone then, and is not remembered.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.control_flow.residuals import hoist_consts
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, jaxpr_as_fun
from lamina.core.trace import Tracer, current_trace
from lamina.interpreters.staging import AtHand, JitTracer, StagingTrace
from lamina.lax.collective_sums import spread
from lamina.sharding.manual import Manual, outside
from lamina.sharding.on_mesh import shard_map_p
from lamina.sharding.spec import PartitionSpec


def body_values(on: Manual, specs: Sequence[PartitionSpec], leaves: Sequence[Any]) -> BodyValues | None:
    """What tells the values of a body that is about to be traced; None where its arguments are not known."""
    around = current_trace()
    if not isinstance(around, StagingTrace) or around.at_hand is None:
        return None
    known = dict(zip(around.invars, around.at_hand.arguments, strict=True))
    given = [known.get(x.variable) if isinstance(x, JitTracer) else x for x in leaves]
    return None if any(x is None for x in given) else BodyValues(around.at_hand, on, specs, given)


class BodyValues(AtHand):
    """Those of one body; `call` is told when Python has asked for one."""

    def __init__(
        self, call: AtHand, on: Manual, specs: Sequence[PartitionSpec], arguments: Sequence[Any]
    ) -> None:
        super().__init__(arguments)
        self._call, self._on, self._specs = call, on, tuple(specs)

    def value(self, x: JitTracer) -> Any:
        """That which all devices have, where types say that they have the same."""
        return self._computed(x, ()) if self._on.checked and not x.aval.vma else None

    def text(self, x: JitTracer) -> str | None:
        """What each device has."""
        on = self._on
        blocks = self._computed(x, on.names)
        if blocks is None:
            return None
        sizes = [on.mesh.shape[name] for name in on.names]
        devices = np.moveaxis(
            on.mesh.devices, [on.mesh.axis_names.index(n) for n in on.names], range(len(sizes))
        ).reshape(*sizes, -1)[..., 0]
        names = f"({', '.join(map(str, on.names))},)"
        positions = itertools.product(*map(range, sizes))
        return "\n".join(
            f"On {devices[at]} at mesh coordinates {names} = {at}:\n{block}\n"
            for at, block in zip(positions, np.asarray(blocks), strict=True)
        )

    def _computed(self, x: JitTracer, along: tuple[Any, ...]) -> Any:
        """The value of x: one for all devices, or those of the devices along some axes, one after the other."""
        trace, on = x._trace, self._on
        if x.aval.placed is not None or any(isinstance(c, Tracer) for c in trace.consts):
            return None
        self._call.was_asked = True
        closed, consts = hoist_consts(_needed(trace, x.variable))

        def body(*blocks: Any) -> list[Any]:
            from lamina import lax

            (out,) = jaxpr_as_fun(closed)(*blocks)
            return [lax.expand_dims(spread(out, along), (0,))] if along else [out]

        with outside():
            whole, more = on.trace(body, closed.in_avals)
            consts = [*more, *consts]
            outs = shard_map_p.bind(
                *consts,
                *self.arguments,
                jaxpr=whole,
                on=on,
                in_specs=(PartitionSpec(),) * len(consts) + self._specs,
                out_specs=(PartitionSpec(along) if along else PartitionSpec(),),
            )
        return outs[0]


def _needed(trace: StagingTrace, result: Var) -> ClosedJaxpr:
    """The part of what has been recorded that a value is computed by."""
    read, eqns = {result}, list[JaxprEqn]()
    for eqn in reversed(trace.eqns):
        if any(v in read for v in eqn.outvars):
            eqns.append(eqn)
            read.update(v for v in eqn.invars if isinstance(v, Var))
    jaxpr = Jaxpr(list(trace.constvars.values()), list(trace.invars), [result], eqns[::-1], trace.debug_info)
    return ClosedJaxpr(jaxpr, list(trace.consts))
