"""Lowering: a jaxpr becomes a StableHLO module.

`@main` holds the program. Each inner jit becomes one private function, and equal ones share it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import field
from types import CodeType
from typing import Any

import numpy as np

from lamina import config
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from lamina.core.primitive import OWED
from lamina.core.source_info import UNKNOWN, SourceInfo, frame_at
from lamina.core.trace import physical
from lamina.dialects import context as mlir_context
from lamina.dialects import stablehlo as hlo
from lamina.dialects import types
from lamina.dialects.attributes import LANES_TOGETHER, MATRIX_PRODUCTS
from lamina.dialects.interrupts import let_interrupts_in, uninterrupted
from lamina.dialects.vendors import ir
from lamina.interpreters.spreads import Spreads
from lamina.records import Record


class ModuleContext(Record, frozen=False):
    """What lowering one module shares: its symbols and its locations."""

    module: ir.Module
    functions: dict[Any, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    locations: dict[Any, ir.Location] = field(default_factory=dict)
    stacks: dict[int, ir.Location] = field(default_factory=dict)
    frames: dict[tuple[int, int], ir.Location] = field(default_factory=dict)
    keep_alive: list[Any] = field(default_factory=list)
    callbacks: list[Any] = field(default_factory=list)
    mesh_axes: tuple[tuple[Any, int], ...] = ()  # names and sizes, where devices meet
    annotations: Any = None  # what writes shardings, where the module is to be partitioned
    manual_axes: frozenset[Any] = frozenset()  # those of them that are mapped over by hand here
    spreads: Spreads = field(default_factory=Spreads)

    def fresh_name(self, base: str) -> str:
        """A symbol that is not taken: base, base_0, base_1, ..."""
        base = "".join(c if c.isalnum() or c in "_.$" else "_" for c in base) or "f"
        name, n = base, 0
        while name in self.names:
            name, n = f"{base}_{n}", n + 1
        self.names.add(name)
        return name

    def location(self, primitive: str, source: SourceInfo) -> ir.Location:
        """A location with the user's call stack, innermost frame first."""
        key = (primitive, id(source))
        loc = self.locations.get(key)
        if loc is None:
            stack = self.stacks.get(id(source))
            if stack is None:
                stack = self.stacks[id(source)] = self._stack(source)
                self.keep_alive.append(source)
            loc = self.locations[key] = ir.Location.name(source.scope + primitive, stack)
        return loc

    def callback_index(self, callback: Any) -> int:
        """The number under which the program's code calls a (function, inputs, outputs, where)."""
        self.callbacks.append(callback)
        return len(self.callbacks) - 1

    def _stack(self, source: SourceInfo) -> ir.Location:
        key = tuple([(id(code), lasti) for code, lasti in source.raw])  # code hashes slowly
        loc = self.locations.get(key)
        if loc is not None:
            return loc
        frames = [self._frame(*raw) for raw in source.raw]
        loc = frames[0] if frames else ir.Location.unknown()
        if len(frames) > 1:
            loc = ir.Location.callsite(frames[0], frames[1:])
        self.locations[key] = loc
        return loc

    def _frame(self, code: CodeType, lasti: int) -> ir.Location:
        """The location of one frame: outer ones are those of many stacks."""
        key = (id(code), lasti)
        loc = self.frames.get(key)
        if loc is None:
            at = frame_at(code, lasti)
            place = ir.Location.file(at.file, at.line, at.column)
            loc = self.frames[key] = ir.Location.name(at.function, place)
        return loc


@dataclasses.dataclass(slots=True)
class LoweringContext:
    """What a lowering rule is given beside its operands."""

    module: ModuleContext
    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]
    source: SourceInfo = UNKNOWN

    @property
    def module_context(self) -> ModuleContext:
        """`module`, as JAX's rules call it."""
        return self.module

    @property
    def aval_out(self) -> ShapedArray:
        return self.avals_out[0]

    def lower_jaxpr(
        self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Emits the equations of a jaxpr here; consts are arrays, args are values."""
        return lower_body(self.module, jaxpr, [constant(c) for c in consts], args)

    def call(self, closed: ClosedJaxpr, name: str, args: Sequence[ir.Value]) -> list[ir.Value]:
        """Calls the private function of a jaxpr, making it when it is new. Terms of a sum are computed with here:
        Shardy would add them up where they go into a function."""
        if any(a.placed is not None and a.placed.sums.unreduced for a in (*closed.in_avals, *closed.out_avals)):
            return self.lower_jaxpr(closed.jaxpr, closed.consts, args)
        symbol = private_function(self.module, closed, name)
        results = [tensor_type(a) for a in closed.out_avals]
        return list(hlo.call(symbol, list(args), results))


    def terms(self, x: ir.Value, aval: ShapedArray) -> ir.Value:
        """A value of this type within a rule's ops. Where the type says that devices have terms of a sum, that is said
        of the value: Shardy would add them up."""
        annotations = self.module.annotations
        if annotations is None or aval.placed is None or not aval.placed.sums.unreduced:
            return x
        return annotations.as_typed(self.module, x, aval)


def tensor_type(aval: ShapedArray) -> ir.Type:
    aval = aval.physical()
    return types.tensor_type(aval.shape, aval.dtype)


def constant(value: Any) -> ir.Value:
    """A constant in the program."""
    return hlo.constant(np.asarray(physical(value)))


def lower_body(
    module: ModuleContext, jaxpr: Jaxpr, consts: Sequence[ir.Value], args: Sequence[ir.Value]
) -> list[ir.Value]:
    """Emits a jaxpr's equations at the insertion point; gives the values of its results."""
    env: dict[Var, ir.Value] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    literals: dict[Any, ir.Value] = {}
    mark = module.spreads.mark()

    def read(atom: Any) -> ir.Value:
        if type(atom) is not Literal:
            return env[atom]
        key = atom.key()
        value = literals.get(key)
        if value is None:
            value = literals[key] = module.spreads.literal(physical(atom.array()))
        return value

    for eqn in jaxpr.eqns:
        let_interrupts_in()
        primitive = eqn.primitive
        if primitive.lowering is OWED:
            raise NotImplementedError(
                f"StableHLO lowering for '{primitive}' not implemented, at "
                f"{eqn.source_info.summary()}"
            )
        ctx = LoweringContext(
            module,
            [v.aval.physical() for v in eqn.invars],
            [v.aval.physical() for v in eqn.outvars],
            eqn.source_info,
        )
        with module.location(primitive.name, eqn.source_info):
            out = primitive.lowering(ctx, *map(read, eqn.invars), **eqn.params)
        if module.annotations is not None:
            with module.location(primitive.name, eqn.source_info):
                out = _said_to_lie(module, eqn, out)
        if primitive.multiple_results:
            env.update(zip(eqn.outvars, out, strict=True))
        else:
            env[eqn.outvars[0]] = out
    results = [read(v) for v in jaxpr.outvars]
    module.spreads.drop_unused(mark, results)
    return results


def _said_to_lie(module: ModuleContext, eqn: JaxprEqn, out: Any) -> Any:
    """The results of an equation, which lie as their types say, where these do."""
    if all(v.aval.placed is None for v in eqn.outvars):
        return out
    values = out if eqn.primitive.multiple_results else [out]
    values = [
        x if v.aval.placed is None else module.annotations.as_typed(module, x, v.aval)
        for x, v in zip(values, eqn.outvars, strict=True)
    ]
    return values if eqn.primitive.multiple_results else values[0]


def private_function(module: ModuleContext, closed: ClosedJaxpr, name: str) -> str:
    """The symbol of the private function that computes a jaxpr; equal jaxprs share one."""
    place = (module.mesh_axes, module.manual_axes)
    key = ("id", id(closed.jaxpr), name, place)
    symbol = module.functions.get(key)
    if symbol is not None:
        return symbol
    text_key = ("text", name, str(closed.jaxpr), _consts_key(closed.consts), place)
    symbol = module.functions.get(text_key)
    if symbol is None:
        symbol = module.fresh_name(name)
        with ir.InsertionPoint(module.module.body), ir.Location.unknown():
            _, block = hlo.function(
                symbol,
                [tensor_type(a) for a in closed.in_avals],
                [tensor_type(a) for a in closed.out_avals],
                "private",
            )
        with ir.InsertionPoint(block), ir.Location.unknown():
            consts = [constant(c) for c in closed.consts]
            outs = lower_body(module, closed.jaxpr, consts, list(block.arguments))
            hlo.return_(outs)
        module.functions[text_key] = symbol
    module.functions[key] = symbol
    module.keep_alive.append(closed)
    return symbol


def _consts_key(consts: Sequence[Any]) -> tuple[Any, ...]:
    arrays = [np.asarray(physical(c)) for c in consts]
    return tuple((a.dtype.str, a.shape, a.tobytes()) for a in arrays)


def note_settings(module: ir.Module) -> None:
    """Write into a module the settings that the passes read there, unless it has its own."""
    attributes, products = module.operation.attributes, config.matrix_products.value
    if products != "auto" and MATRIX_PRODUCTS not in attributes:
        attributes[MATRIX_PRODUCTS] = ir.StringAttr.get(products, module.context)
    if config.lanes.value == "select":
        attributes[LANES_TOGETHER] = ir.UnitAttr.get(module.context)


@uninterrupted()
def lower_module(
    closed: ClosedJaxpr,
    name: str,
    *,
    consts_as_args: Sequence[bool] = (),
    aliases: dict[int, int] | None = None,
    donors: Sequence[int] = (),
    arg_names: Sequence[str] = (),
    result_paths: Sequence[str] = (),
    callbacks: list[Any] | None = None,
    num_partitions: int = 1,
    annotations: Any = None,
) -> ir.Module:
    """`module @<name>` with a public `@main` for a jaxpr.

    closed          the program.
    name            of the module.
    consts_as_args  which constants become leading arguments of main; the rest are in the program.
    aliases         argument -> result that may take over its buffer (after leading constants).
    donors          arguments whose buffers may be used for anything.
    callbacks       is given the Python functions that the program calls, in the order of their
                    numbers in it: (function, inputs, outputs), with (dtype, shape) of each value.
    arg_names       what arguments are called, for messages.
    result_paths    where results are in the function's result, likewise.
    num_partitions  the number of devices that run the program together.
    annotations     partitioning.annotations.Annotations of a program that is to be partitioned.

    >>> closed = lamina.make_jaxpr(jnp.sin)(0.0)
    >>> module = lamina.interpreters.mlir.lower_jaxpr_to_module(closed, "jit_sin")
    >>> str(module).splitlines()[0]
    'module @jit_sin {'
    """
    ctx = mlir_context.context_for_program()
    hoisted = list(consts_as_args) or [False] * len(closed.consts)
    with ctx, ir.Location.unknown(), nullcontext() if annotations is None else annotations.allowed(ctx):
        module = ir.Module.create(ir.Location.unknown())
        module.operation.attributes["sym_name"] = ir.StringAttr.get(name)
        if num_partitions > 1:
            i32 = ir.IntegerType.get_signless(32)
            for what, n in (("replicas", 1), ("partitions", num_partitions)):
                module.operation.attributes[f"mhlo.num_{what}"] = ir.IntegerAttr.get(i32, n)
        note_settings(module)
        context = ModuleContext(
            module, callbacks=[] if callbacks is None else callbacks, annotations=annotations
        )
        context.names.add("main")
        if annotations is not None:
            annotations.declare(context)
        const_avals = [v.aval for v, h in zip(closed.jaxpr.constvars, hoisted, strict=True) if h]
        arg_types = [tensor_type(a) for a in const_avals + closed.in_avals]
        with ir.InsertionPoint(module.body):
            function, block = hlo.function(
                "main", arg_types, [tensor_type(a) for a in closed.out_avals], "public"
            )
        _annotate(
            function,
            len(const_avals),
            len(closed.in_avals),
            len(closed.out_avals),
            aliases or {},
            donors,
            arg_names,
            result_paths,
        )
        if annotations is not None:
            ranks = [kind.rank for kind in arg_types]
            _add_attributes(
                function, "arg_attrs", annotations.of_arguments(len(const_avals), ranks)
            )
            ranks = [tensor_type(a).rank for a in closed.out_avals]
            _add_attributes(function, "res_attrs", annotations.of_results(ranks))
        with ir.InsertionPoint(block):
            block_args = iter(block.arguments)
            consts = [
                next(block_args) if h else constant(c)
                for c, h in zip(closed.consts, hoisted, strict=True)
            ]
            outs = lower_body(context, closed.jaxpr, consts, list(block_args))
            hlo.return_(outs)
        if annotations is None:  # else the partitioner does: here symbols are not seen out of its ops' regions
            module.operation.verify()
    return module


def _annotate(
    function: Any,
    n_consts: int,
    n_args: int,
    n_out: int,
    aliases: dict[int, int],
    donors: Sequence[int],
    arg_names: Sequence[str],
    result_paths: Sequence[str],
) -> None:
    i32 = ir.IntegerType.get_signless(32)
    arg_attrs: list[dict[str, ir.Attribute]] = [{} for _ in range(n_consts + n_args)]
    for arg, result in aliases.items():
        arg_attrs[n_consts + arg]["tf.aliasing_output"] = ir.IntegerAttr.get(i32, result)
    for arg in donors:
        arg_attrs[n_consts + arg]["jax.buffer_donor"] = ir.BoolAttr.get(True)
    for i, name in enumerate(arg_names[:n_args]):
        arg_attrs[n_consts + i]["lamina.name"] = ir.StringAttr.get(name)
    if arg_attrs:
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in arg_attrs])
    if n_out:
        paths = list(result_paths) + [""] * (n_out - len(result_paths))
        function.attributes["res_attrs"] = ir.ArrayAttr.get(
            [ir.DictAttr.get({"jax.result_info": ir.StringAttr.get(f"result{p}")}) for p in paths]
        )


def _add_attributes(
    function: Any, which: str, shardings: Sequence[ir.Attribute | None]
) -> None:
    """Let the arguments or the results of a function have these shardings."""
    if not shardings:
        return
    rows = [{entry.name: entry.attr for entry in row} for row in function.attributes[which]]
    for row, sharding in zip(rows, shardings, strict=True):
        if sharding is not None:
            row["sdy.sharding"] = sharding
    function.attributes[which] = ir.ArrayAttr.get([ir.DictAttr.get(row) for row in rows])
