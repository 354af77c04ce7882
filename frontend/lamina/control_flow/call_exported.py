"""call_exported: a StableHLO module as one operation of a program."""

from __future__ import annotations

import hashlib
from typing import Any

from lamina.core.avals import ShapedArray
from lamina.core.primitive import Primitive
from lamina.interpreters.foreign_programs import foreign_program


class ExportedModule:
    """A StableHLO portable artifact as a parameter: equal to another of the same bytes."""

    __slots__ = ("content", "digest", "is_foreign")

    def __init__(self, content: bytes, *, is_foreign: bool = False) -> None:
        """`is_foreign` is for bytes that this process has not made itself."""
        self.content, self.digest = content, hashlib.sha256(content).hexdigest()
        self.is_foreign = is_foreign

    def parse(self) -> Any:
        """The MLIR module. Raises ParseError for foreign bytes that are none."""
        if self.is_foreign:
            return foreign_program(self.content, "<exported>")
        from lamina.dialects import context

        return context.parse(self.content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExportedModule) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"exported:{self.digest}"


def _lowering(
    ctx: Any, *args: Any, module: ExportedModule, name: str, out_avals: tuple[ShapedArray, ...]
) -> Any:
    from lamina.dialects import stablehlo
    from lamina.dialects.vendors import ir
    from lamina.interpreters.lowering import tensor_type

    symbol = ctx.module.functions.get(module)
    if symbol is None:
        parsed = module.parse()
        functions = [op.operation for op in parsed.body.operations]
        if module.is_foreign:
            types = [[x.type for x in args], [tensor_type(a) for a in out_avals]]
            _check_functions(functions, types, name)
        for function in functions:
            old = function.attributes["sym_name"].value
            new = ctx.module.fresh_name(name if old == "main" else f"{name}_{old}")
            ir.SymbolTable.replace_all_symbol_uses(old, new, parsed.operation)
            ir.SymbolTable.set_symbol_name(function, new)
            ir.SymbolTable.set_visibility(function, "private")
            for what in ("arg_attrs", "res_attrs"):
                if what in function.attributes:
                    del function.attributes[what]
            symbol = new if old == "main" else symbol
        for function in functions:
            function.clone(ip=ir.InsertionPoint(ctx.module.module.body))
        ctx.module.functions[module] = symbol
    return list(stablehlo.call(symbol, list(args), [tensor_type(a) for a in out_avals]))


def _check_functions(functions: list[Any], types: list[list[Any]], name: str) -> None:
    """Raises ValueError where a module from outside is not what its description says."""
    for function in functions:
        if function.name != "func.func" or not function.regions[0].blocks:
            raise ValueError(f"[call_exported] {name} holds more than functions with bodies")
        if function.attributes["sym_name"].value == "main":
            of = function.attributes["function_type"].value
            if [list(of.inputs), list(of.results)] == types:
                return
            raise ValueError(
                f"[call_exported] {name} is a function of type {of}, which is not what was stored "
                "with it: it was cut or changed"
            )
    raise ValueError(f"[call_exported] {name} has no function @main")


def _batching(args: Any, dims: Any, **params: Any) -> Any:
    from lamina import lax

    count = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
    moved = [
        None if d is None else lax.transpose(a, [d, *(i for i in range(a.ndim) if i != d)])
        for a, d in zip(args, dims, strict=True)
    ]

    def one(i: Any) -> Any:
        given = [
            a if m is None else lax.dynamic_index_in_dim(m, i, keepdims=False)
            for a, m in zip(args, moved, strict=True)
        ]
        return call_exported_p.bind(*given, **params)

    outs = lax.map(one, lax.iota("int32", count))
    return outs, [0] * len(outs)


def _jvp(primals: Any, tangents: Any, *, name: str, **_: Any) -> Any:
    raise ValueError(
        f"[call_exported] {name} was exported without its derivative: serialize it with vjp_order=1, "
        "and differentiate in reverse (grad, vjp)"
    )


call_exported_p: Primitive = Primitive(
    "call_exported",
    abstract_eval=lambda *_, out_avals, **__: list(out_avals),
    lowering=_lowering,
    jvp=_jvp,
    batching=_batching,
    multiple_results=True,
)
