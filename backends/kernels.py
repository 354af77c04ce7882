"""The kernels of a program: each compiled once, ever, for a target.

Kernels are content-addressed: equal ones in one program, in two programs or in yesterday's run are
one object in the store. Editing one layer of a model compiles the kernels of that layer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from lamina.backends.cpu.kernel import KernelObject, compile_kernel, kernel_symbol
from lamina.backends.target import Target
from lamina.backends.versions import versions
from lamina.dialects.vendors import ir
from lamina.runtime.store import Store

_KIND = "kernel"


def compiled_kernels(
    kernels: Mapping[str, ir.Operation], target: Target, store: Store | None
) -> dict[str, KernelObject]:
    """Name -> object for each kernel function, from the store where it is there.

    Raises CompileError naming the op that can't be compiled.
    """
    by_symbol: dict[str, KernelObject] = {}
    found: dict[str, KernelObject] = {}
    for name, kernel in kernels.items():
        symbol = kernel_symbol(kernel, target)
        if symbol not in by_symbol:
            by_symbol[symbol] = _stored(store, symbol) or _compiled(kernel, target, store)
        found[name] = by_symbol[symbol]
    return found


def _compiled(kernel: ir.Operation, target: Target, store: Store | None) -> KernelObject:
    made = compile_kernel(kernel, target)
    if store is not None:
        store.put(_KIND, _key(made.symbol), _to_bytes(made))
    return made


def _stored(store: Store | None, symbol: str) -> KernelObject | None:
    data = store.get(_KIND, _key(symbol)) if store is not None else None
    return None if data is None else _from_bytes(data)


def _key(symbol: str) -> str:
    return f"{symbol}-{versions()['source']}"


def _to_bytes(kernel: KernelObject) -> bytes:
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
