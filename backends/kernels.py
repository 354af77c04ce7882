"""The kernels of a program: each compiled once, ever, for a target.

Kernels are content-addressed: equal ones in one program, in two programs or in yesterday's run are
one object in the store. Editing one layer of a model compiles the kernels of that layer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from lamina.backends.cpu.kernel import KernelObject, LoweredKernel, emit_kernel, lower_kernel
from lamina.backends.kernel_source import symbol_of, text_without_name
from lamina.backends.planned import is_scalar
from lamina.backends.target import Target
from lamina.backends.versions import versions
from lamina.backends.workers import Batch
from lamina.dialects.vendors import ir
from lamina.passes import instrumentation
from lamina.runtime.store import Store

_KIND = "kernel"
_AHEAD = 1
"""Kernels that wait for LLVM or are in its hands while another is lowered; more would be a worker's."""


@dataclass(frozen=True)
class Kernel:
    """A kernel function, the symbol of its code and the text that decides it."""

    function: ir.Operation
    symbol: str
    source: str


def distinct_kernels(functions: Mapping[str, ir.Operation], target: Target) -> dict[str, Kernel]:
    """Name -> kernel for each function that is code of its own."""
    return {
        name: Kernel(function, symbol_of(function, target), text_without_name(function))
        for name, function in functions.items()
        if not is_scalar(function)
    }


def compiled_kernels(
    kernels: Iterable[Kernel], target: Target, store: Store | None, codegen: Executor
) -> dict[str, KernelObject]:
    """Symbol -> object for each of these, from the store where it is there.

    MLIR holds the interpreter's lock and LLVM does not: while LLVM makes machine code of one kernel
    in `codegen`'s thread, this one lowers the next. Raises CompileError naming the op that can't be
    compiled.
    """
    distinct = {kernel.symbol: kernel for kernel in kernels}
    objects = {symbol: _stored(store, symbol) for symbol in distinct}
    missing = [symbol for symbol, found in objects.items() if found is None]

    def lowered(symbol: str) -> LoweredKernel:
        kernel = distinct[symbol]
        return lower_kernel(kernel.function, symbol, kernel.source, target)

    with Batch(
        [(symbol, distinct[symbol].source) for symbol in missing],
        target,
        alone=instrumentation.current("kernels").wants_every_pass,  # in this process
    ) as batch:
        made: dict[str, Future[KernelObject]] = {}
        while (mine := batch.take()) is not None:
            made[mine] = codegen.submit(emit_kernel, lowered(mine), target)
            if len(made) > _AHEAD:  # what LLVM is far from is better left to workers
                list(made.values())[-1 - _AHEAD].exception()
        for symbol in missing:
            found = None if symbol in made else batch.result(symbol)
            if found is not None:
                objects[symbol] = _from_bytes(found)
                continue
            if symbol not in made:
                made[symbol] = codegen.submit(emit_kernel, lowered(symbol), target)
            objects[symbol] = made[symbol].result()
    if store is not None:
        for symbol in missing:
            store.put(_KIND, _key(symbol), to_bytes(objects[symbol]))  # type: ignore[arg-type]
    return objects  # type: ignore[return-value]


def _stored(store: Store | None, symbol: str) -> KernelObject | None:
    data = store.get(_KIND, _key(symbol)) if store is not None else None
    return None if data is None else _from_bytes(data)


def _key(symbol: str) -> str:
    return f"{symbol}-{versions()['source']}"


def to_bytes(kernel: KernelObject) -> bytes:
    """A compiled kernel, without texts, as the store keeps it."""
    header = {
        "symbol": kernel.symbol,
        "scratch_bytes": kernel.scratch_bytes,
        "imports": kernel.imports,
    }
    return json.dumps(header).encode() + b"\n" + kernel.object


def _from_bytes(data: bytes) -> KernelObject:
    header, _, code = data.partition(b"\n")
    fields = json.loads(header)
    return KernelObject(fields["symbol"], code, fields["scratch_bytes"], tuple(fields["imports"]))
