"""The kernels of a program: each compiled once, ever, for a target.

Kernels are content-addressed: equal ones in one program, in two programs or in yesterday's run are
one object in the store. Editing one layer of a model compiles the kernels of that layer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future

from lamina.backends import llvm_thread
from lamina.backends.cpu.kernel import KernelObject, emit_kernel, lower_kernels
from lamina.backends.cpu.products import is_shared, shared_object
from lamina.backends.kernel_source import symbol_of, text_without_name
from lamina.backends.planned import is_scalar
from lamina.backends.target import Target
from lamina.backends.versions import versions
from lamina.backends.workers import Batch
from lamina.dialects.attributes import MAY_ALIAS
from lamina.dialects.interrupts import let_interrupts_in
from lamina.dialects.vendors import ir
from lamina.passes.framework import instrumentation
from lamina.records import Record
from lamina.runtime.store import Store

_KIND = "kernel"
TOGETHER = 4
"""Kernels that are lowered together."""
_UNFINISHED = 2
"""Kernels that wait for LLVM or are in its hands while others are lowered; more would be a worker's."""


class Kernel(Record):
    """A kernel function, the symbol of its code and the text that decides it."""

    function: ir.Operation
    symbol: str
    source: str


class Kernels:
    """The kernels of one program on their way to objects. Inside, workers may have some of them."""

    def __init__(self, target: Target, store: Store | None, *, anew: bool = False) -> None:
        """With `anew` those in the store are replaced."""
        self._target, self._store, self._anew = target, store, anew
        is_watched = instrumentation.current("kernels").wants_every_pass
        self._together = 1 if is_watched else TOGETHER  # what is shown goes kernel by kernel
        self._batch = Batch(target, alone=is_watched)
        self._offered: dict[str, tuple[str, str]] = {}
        self._objects: dict[str, KernelObject | None] = {}

    def __enter__(self) -> Kernels:
        self._batch.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._batch.__exit__(*exc)

    def offer(self, fused: ir.Module) -> None:
        """Let workers begin with those kernels of a fused module that planning leaves as they are."""
        for view in fused.body.operations:
            function = view.operation
            name = function.attributes["sym_name"].value
            if name != "main" and not is_scalar(function) and not _has_wishes(function):
                self._offered[name] = self._named(function)
        self._look_up(self._offered.values())

    def distinct(self, functions: Mapping[str, ir.Operation]) -> dict[str, Kernel]:
        """Name -> kernel for each function of a planned module that is code of its own."""
        return {
            name: Kernel(function, *(self._offered.get(name) or self._named(function)))
            for name, function in functions.items()
            if not is_scalar(function)
        }

    def compiled(self, kernels: Iterable[Kernel]) -> dict[str, KernelObject]:
        """Symbol -> object for each of these, from the store where it is there.

        MLIR holds the interpreter's lock and LLVM does not: while LLVM makes machine code of some
        kernels in its thread, this one lowers the next. Raises CompileError naming the op that can't be
        compiled.
        """
        distinct = {kernel.symbol: kernel for kernel in kernels}
        self._look_up((kernel.symbol, kernel.source) for kernel in distinct.values())
        objects = {symbol: self._objects[symbol] for symbol in distinct}
        missing = [symbol for symbol, found in objects.items() if found is None]

        made: dict[str, Future[KernelObject]] = {}

        def make(symbols: Sequence[str]) -> None:
            functions = [(distinct[s].function, s, distinct[s].source) for s in symbols]
            for lowered in lower_kernels(functions, self._target) if functions else ():
                made[lowered.symbol] = llvm_thread.submit(emit_kernel, lowered, self._target)

        while mine := self._batch.take(self._together):
            let_interrupts_in()
            make([symbol for symbol in mine if symbol in distinct])  # of others planning found no call
            if len(made) > _UNFINISHED:  # what LLVM is far from is better left to workers
                list(made.values())[-1 - _UNFINISHED].exception()
        for symbol in missing:
            let_interrupts_in()
            found = None if symbol in made else self._batch.result(symbol)
            if found is not None:
                objects[symbol] = _from_bytes(found)
                continue
            if symbol not in made:
                make([symbol])
            objects[symbol] = made[symbol].result()
        if self._store is not None:
            for symbol in missing:
                self._store.put(_KIND, _key(symbol), to_bytes(objects[symbol]))  # type: ignore[arg-type]
        own = {symbol: found for symbol, found in objects.items() if found is not None}
        return own | self._shared(own.values())

    def _shared(self, kernels: Iterable[KernelObject]) -> dict[str, KernelObject]:
        """The functions that these kernels share, from the store where they are there."""
        symbols = {name for kernel in kernels for name in kernel.imports if is_shared(name)}
        found: dict[str, KernelObject] = {}
        for symbol in sorted(symbols):
            stored = None if self._anew else _stored(self._store, symbol)
            if stored is None:
                stored = KernelObject(symbol, shared_object(symbol, self._target), 0, ())
                if self._store is not None:
                    self._store.put(_KIND, _key(symbol), to_bytes(stored))
            found[symbol] = stored
        return found

    def _named(self, function: ir.Operation) -> tuple[str, str]:
        return symbol_of(function, self._target), text_without_name(function)

    def _look_up(self, kernels: Iterable[tuple[str, str]]) -> None:
        """See which of these, symbols and texts, the store has, and offer the others to workers."""
        new = {symbol: source for symbol, source in kernels if symbol not in self._objects}
        store = None if self._anew else self._store
        self._objects |= {symbol: _stored(store, symbol) for symbol in new}
        self._batch.add({s: source for s, source in new.items() if self._objects[s] is None})


def _has_wishes(function: ir.Operation) -> bool:
    """Whether planning may make another function of a kernel: one that overwrites an operand."""
    attributes = function.attributes
    given = attributes["arg_attrs"] if "arg_attrs" in attributes else ()
    return any(MAY_ALIAS in each for each in given)


def _stored(store: Store | None, symbol: str) -> KernelObject | None:
    data = store.get(_KIND, _key(symbol)) if store is not None else None
    if data is None:
        return None
    try:
        found = _from_bytes(data)
    except (ValueError, TypeError, KeyError, RecursionError):  # compiled again, and replaced
        return None
    return found if found.symbol == symbol else None


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
    symbol, size, imports = fields["symbol"], fields["scratch_bytes"], tuple(fields["imports"])
    if type(size) is not int or size < 0 or not all(isinstance(name, str) for name in imports):
        raise ValueError("not a kernel's header")
    return KernelObject(symbol, code, size, imports)
