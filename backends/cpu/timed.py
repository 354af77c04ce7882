"""A program's entry once more, with a time for each kernel that it calls: what runs while a profiler records.

The entry's object calls kernels by their symbols. It is linked against functions of these names that ask
for the time, call the kernel and keep how long it took, so that programs are compiled as ever, and those
that are loaded already can be timed, too. Kernels that are written into their callers have no time of
their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lamina.backends.cpu.entry import ENTRY_SYMBOL
from lamina.backends.llvm_codegen import CodegenOptions, TargetMachine, emit
from lamina.backends.target import Target
from lamina.runtime.artifact import Artifact
from lamina.runtime.executable import Code
from lamina.runtime.recording import KEEP_TIME, TIME_BEFORE, number_of

_DECLARATIONS = f"""declare i64 @{TIME_BEFORE}()
declare void @{KEEP_TIME}(i64, i64)"""

_SHOWN = ("kind", "scope", "reason")


def timed_code(artifact: Artifact) -> Code:
    """The linked code whose `entry` is to be called instead of the program's own. Raises LoadError as loading does."""
    rows = {row["symbol"]: row for row in artifact.manifest["kernels"] if _has_code(row, artifact)}
    entry = f"{ENTRY_SYMBOL}.o"
    kernels = {name: data for name, data in artifact.objects.items() if name != entry}
    code = Code(artifact, kernels, tuple(rows))
    program = artifact.manifest["name"]
    stubs = [
        _stub(symbol, code.addresses[symbol], row, program) for symbol, row in rows.items()
    ]
    target = Target.host()
    machine = TargetMachine(target.triple, target.cpu, target.features)
    text = "\n".join([_DECLARATIONS, *stubs])
    timing = emit(text, machine, CodegenOptions(level=0, passes=(), select_fast=True)).object
    objects = {entry: artifact.objects[entry], "timing.o": timing}
    return Code(artifact, objects, (ENTRY_SYMBOL,), (TIME_BEFORE, KEEP_TIME), code)


def _has_code(row: Mapping[str, Any], artifact: Artifact) -> bool:
    return bool(row.get("buffers")) and f"{row['symbol']}.o" in artifact.objects


def _stub(symbol: str, address: int, row: Mapping[str, Any], program: str) -> str:
    """A function of a kernel's name that calls the kernel and keeps when."""
    details = [("program", program), ("ops", " ".join(row["ops"]))]
    details += [(word, str(row[word])) for word in _SHOWN if word in row]
    name = number_of(row["name"], details)
    names = [f"ptr %p{number}" for number in range(row["buffers"] + 1)]  # the last is scratch memory
    given = ", ".join(names)
    return f"""define void @{symbol}({given}) nounwind {{
  %begin = call i64 @{TIME_BEFORE}()
  call void inttoptr (i64 {address} to ptr)({given})
  call void @{KEEP_TIME}(i64 {name}, i64 %begin)
  ret void
}}"""
