"""Where compiling spends its time without LLVM: `python -m benchmarks.passes [PROGRAM] [RUNS]`.

Processor time of each phase and pass, the least of several runs, in microseconds for each op of the
StableHLO that the program is lowered to; the last line is what of all this MLIR's own passes and its
translation to LLVM IR take. PROGRAM is transformer (a training step, the default) or a number of
unrolled steps whose gradient is taken.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from benchmarks.suite import Library, lamina_library
from benchmarks.workloads.compile_times import _square, _unrolled
from benchmarks.workloads.programs import transformer_inputs, transformer_step
from lamina.backends.cpu import generate
from lamina.backends.cpu.entry import entry_text
from lamina.backends.cpu.kernel import lower_kernels
from lamina.backends.kernel_source import symbol_of, text_without_name
from lamina.backends.kernels import TOGETHER
from lamina.backends.planned import is_scalar, kernels_of
from lamina.backends.stages import make_ready, run_fuse, run_optimize, run_plan, spelled_ops
from lamina.backends.target import Target
from lamina.backends.workers import Batch
from lamina.core import garbage
from lamina.dialects.serialize import to_bytecode
from lamina.dialects.vendors import ir
from lamina.jit.program_key import program_key
from lamina.jit.program_plan import plan_program
from lamina.passes.framework import instrumentation, pipeline
from lamina.passes.framework.machine_attribute import write_machine
from lamina.passes.framework.pipeline import unchecked

Times = dict[str, float]
_OF_MLIR = " of it MLIR's own passes and translation"


def measure(fun: Callable[..., Any], args: tuple[Any, ...], m: Library) -> tuple[int, Times]:
    """How many ops a function is lowered to, and the seconds of each phase of one compilation."""
    times: Times = {}

    @contextmanager
    def phase(name: str) -> Any:
        begin = time.process_time()
        yield
        times[name] = time.process_time() - begin

    watch = instrumentation.Instrumentation(timing=True, clock=time.process_time)
    target = Target.host()
    of_mlir = 0.0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            nonlocal of_mlir
            begin = time.process_time()
            result = function(*args)
            of_mlir += time.process_time() - begin
            return result

        return run

    with ExitStack() as stack:
        for held in (garbage.held_off(), instrumentation.use(watch), unchecked()):
            stack.enter_context(held)
        for place, name in ((pipeline, "run_upstream"), (generate, "translate_to_llvm_ir")):
            stack.enter_context(mock.patch.object(place, name, timed(getattr(place, name))))
        with phase("trace"):
            closed = m.jit(lambda *leaves: fun(*leaves)).trace(*args).jaxpr
        with phase("drop what is dead, pair donations"):
            plan = plan_program(closed, "f")
        with phase("name in the store"):
            program_key(plan)
        with phase("lower to StableHLO"):
            module = plan.lower()
        with phase("keep as bytecode"):
            to_bytecode(module)
        ops = _count(module)
        with phase("see which ops there are"):
            make_ready(module)
            text = spelled_ops(module)
        write_machine(module, Target.host().machine)
        for name, run in (("optimise", run_optimize), ("fuse", run_fuse), ("plan", run_plan)):
            with phase(f"{name}, in all"):
                run(module, watch, "cpu", *((text,) if run is run_optimize else ()))
            for record in watch.runs:
                label = f"  {record.name}"
                times[label] = times.get(label, 0.0) + record.seconds
            watch.runs.clear()
        kernels = {n: k for n, k in kernels_of(module).items() if not is_scalar(k)}
        with phase("kernels: names"):
            sources = {name: text_without_name(kernel) for name, kernel in kernels.items()}
            symbols = {name: symbol_of(kernel, target) for name, kernel in kernels.items()}
        distinct = {symbol: name for name, symbol in symbols.items()}
        with phase("kernels: lower to LLVM IR"), instrumentation.off():
            scratch = 0
            waiting = Batch(target, alone=True)
            waiting.add({symbol: sources[name] for symbol, name in distinct.items()})
            while several := waiting.take(TOGETHER):
                named = [(kernels[distinct[s]], s, sources[distinct[s]]) for s in several]
                for lowered in lower_kernels(named, target):
                    scratch = max(scratch, lowered.scratch_bytes)
        with phase("entry as LLVM IR"):
            entry_text(module, symbols, scratch)
    times[_OF_MLIR] = of_mlir
    return ops, times


def _count(module: ir.Module) -> int:
    ops = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal ops
        ops += op.name.startswith(("stablehlo.", "chlo."))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return ops


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="?", default="transformer")
    parser.add_argument("runs", nargs="?", type=int, default=5)
    given = parser.parse_args()
    m = lamina_library()
    if given.program == "transformer":
        fun, args = transformer_step(m), transformer_inputs()
    else:
        fun, args = _unrolled(int(given.program))(m), _square()
    runs = [measure(fun, args, m) for _ in range(given.runs)]
    ops = runs[0][0]
    least = {name: min(times[name] for _, times in runs) for name in runs[0][1]}
    total = sum(seconds for name, seconds in least.items() if not name.startswith(" "))
    print(f"{given.program}: {ops} ops\n{'ms':>9} {'us/op':>7}")
    of_mlir = least.pop(_OF_MLIR)
    for name, seconds in [*least.items(), ("all", total), (_OF_MLIR, of_mlir)]:
        print(f"{seconds * 1e3:9.2f} {seconds / ops * 1e6:7.2f}  {name}")


if __name__ == "__main__":
    main()
