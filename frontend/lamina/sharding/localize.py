"""From a program with shard_maps to the program that every device runs.

What is outside of any shard_map is done by each device on whole arrays; a shard_map is its body on
blocks. Blocks are cut from wholes and put together to wholes only where that is needed: an argument
that goes to shard_maps alone comes in blocks, and a block that is a result stays one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from lamina.control_flow.jit_call import jit_p
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, all_equations
from lamina.core.source_info import at_places
from lamina.core.trace import get_aval
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.sharding.mesh import Mesh
from lamina.sharding.on_mesh import (
    cut_block,
    join_blocks,
    on_mesh,
    on_mesh_p,
    shard_map_p,
    whole_mesh,
)
from lamina.sharding.spec import PartitionSpec

WHOLE = PartitionSpec()


@dataclasses.dataclass(frozen=True)
class Localized:
    """A program on blocks; specs say of what each input and each result is a block."""

    closed: ClosedJaxpr
    mesh: Mesh
    in_specs: tuple[PartitionSpec, ...]
    out_specs: tuple[PartitionSpec, ...]


def localize(closed: ClosedJaxpr) -> Localized | None:
    """The program for each device; None for a program that runs on one.

    Raises ValueError where parts of it run on different devices.
    """
    meshes = {
        e.primitive.mesh(e.params): None
        for e in all_equations(closed.jaxpr)
        if e.primitive.mesh is not None
    }
    if not meshes:
        return None
    first, *others = meshes
    for other in others:
        if other.device_list != first.device_list:
            raise ValueError(
                "shard_maps of one program run on the same devices in the same order; got "
                f"{first} on {first.device_list} and {other} on {other.device_list}"
            )
    in_specs = _argument_specs(closed.jaxpr, first)
    on = whole_mesh(first)
    avals = [on.block_type(v.aval, s) for v, s in zip(closed.jaxpr.invars, in_specs)]
    out_specs: list[PartitionSpec] = []

    def per_device(*args: Any) -> list[Any]:
        values = [_Value(x, first, s) for x, s in zip(args, in_specs, strict=True)]
        consts = [_Value(c, first, WHOLE) for c in closed.consts]
        outs = _evaluate(closed.jaxpr, first, consts, values)
        out_specs[:] = [out.made_as if out.mesh == first else WHOLE for out in outs]
        return [out.block(spec) for out, spec in zip(outs, out_specs, strict=True)]

    local = trace_to_jaxpr(per_device, avals, closed.jaxpr.debug_info)
    return Localized(local, first, tuple(in_specs), tuple(out_specs))


def _argument_specs(jaxpr: Jaxpr, mesh: Mesh) -> list[PartitionSpec]:
    uses: dict[Var, set[PartitionSpec]] = {v: set() for v in jaxpr.invars}

    def look(inside: Jaxpr, outer: dict[Any, Var]) -> None:
        for eqn in inside.eqns:
            specs: Sequence[PartitionSpec] = (WHOLE,) * len(eqn.invars)
            if eqn.primitive is shard_map_p and eqn.params["on"].mesh == mesh:
                specs = [s.trimmed() for s in eqn.params["in_specs"]]
            elif _is_call(eqn):
                body = eqn.params["jaxpr"].jaxpr
                given = zip(body.invars, eqn.invars, strict=True)
                look(body, {b: outer[v] for b, v in given if type(v) is Var and v in outer})
                continue
            for v, spec in zip(eqn.invars, specs, strict=True):
                if type(v) is not Literal and v in outer:
                    uses[outer[v]].add(spec)

    look(jaxpr, {v: v for v in jaxpr.invars})
    return [next(iter(found)) if len(found) == 1 else WHOLE for found in uses.values()]


def _is_call(eqn: Any) -> bool:
    """A jit with a shard_map in it is written out: its operands may come in blocks."""
    return eqn.primitive is jit_p and any(
        e.primitive.mesh is not None for e in all_equations(eqn.params["jaxpr"].jaxpr)
    )


class _Value:
    """A value of the program on a device: whole, or as blocks, whichever was asked for so far."""

    def __init__(self, x: Any, mesh: Mesh, spec: PartitionSpec) -> None:
        self.mesh, self.made_as = mesh, spec.trimmed()
        self.forms = {self.made_as: x}

    def block(self, spec: PartitionSpec) -> Any:
        """This device's block."""
        spec = spec.trimmed()
        if spec not in self.forms:
            whole, mesh = self.whole(), self.mesh
            self.forms[spec] = on_mesh(
                mesh, lambda x: [cut_block(x, whole_mesh(mesh), spec)], whole
            )[0]
        return self.forms[spec]

    def whole(self) -> Any:
        """All of it."""
        if WHOLE not in self.forms:
            block, mesh, spec = self.forms[self.made_as], self.mesh, self.made_as
            self.forms[WHOLE] = on_mesh(mesh, lambda x: [join_blocks(x, spec)], block)[0]
        return self.forms[WHOLE]


def _evaluate(
    jaxpr: Jaxpr, mesh: Mesh, consts: Sequence[_Value], args: Sequence[_Value]
) -> list[_Value]:
    env: dict[Var, _Value] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(v: Any) -> _Value:
        return _Value(v.val, mesh, WHOLE) if type(v) is Literal else env[v]

    with at_places() as at:
        for eqn in jaxpr.eqns:
            at(eqn.source_info)
            values = [read(v) for v in eqn.invars]
            if eqn.primitive is shard_map_p:
                outs = _shard_map(eqn, values)
            elif _is_call(eqn):
                outs = _evaluate(eqn.params["jaxpr"].jaxpr, mesh, (), values)
            else:
                out = eqn.primitive.bind(*(v.whole() for v in values), **eqn.params)
                out = out if eqn.primitive.multiple_results else [out]
                outs = [_Value(x, mesh, WHOLE) for x in out]
            env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _shard_map(eqn: Any, values: Sequence[_Value]) -> list[_Value]:
    params = eqn.params
    on = params["on"]
    mesh = on.mesh
    blocks = []
    for value, spec, aval in zip(values, params["in_specs"], params["jaxpr"].in_avals, strict=True):
        if value.mesh != mesh:
            value = _Value(value.whole(), mesh, WHOLE)
        block = value.block(spec)
        assert get_aval(block).shape == aval.shape
        blocks.append(block)
    outs = on_mesh_p.bind(*blocks, jaxpr=params["jaxpr"], on=on)
    return [_Value(x, mesh, s) for x, s in zip(outs, params["out_specs"], strict=True)]
