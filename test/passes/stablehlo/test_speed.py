"""The StableHLO passes take a bounded time an op, also on large programs."""

import importlib.util
import time
from functools import partial
from pathlib import Path

from lamina.backends.pipelines import STABLEHLO_FUSE, STABLEHLO_OPTIMIZE, STABLEHLO_PLAN
from lamina.dialects.context import make_context
from lamina.dialects.vendors import ir
from lamina.passes.framework.pipeline import Pipeline

HERE = Path(__file__).parent
PIPELINE = Pipeline.of(*STABLEHLO_OPTIMIZE, *STABLEHLO_FUSE, *STABLEHLO_PLAN)
# How often the bindings could be asked for all that an op says of itself in the time that all passes
# take for it: 12, on a busy machine, too.
MOST_LOOKS = 18


def _program(size):
    spec = importlib.util.spec_from_file_location("random_programs", HERE / "random_programs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Program(7, size).module()


def _look(module):
    """What a pass that looks at every op reads of it: name, operands, makers, types, attributes."""

    def visit(op):
        makers = [owner.name for v in op.operands if not isinstance(owner := v.owner, ir.Block)]
        types = [v.type for v in op.results]
        seen.append((op.name, makers, types, [op.attributes[name] for name in op.attributes]))
        return ir.WalkResult.ADVANCE

    seen = []
    module.operation.walk(visit)
    return len(seen)


def _seconds(run, times):
    """Processor time that each of some runs takes."""
    for _ in range(times):
        begin = time.process_time()
        run()
        yield time.process_time() - begin


def test_time_grows_with_the_number_of_ops():
    best = {}
    for _ in range(4):  # the least of several: others share the machine
        for size in (500, 3000):
            with make_context(), ir.Location.unknown():
                module = _program(size)
                looks = min(_seconds(partial(_look, module), 3))
                copies = iter([ir.Module.parse(str(module)) for _ in range(3)])
                passes = min(_seconds(lambda copies=copies: PIPELINE.run(next(copies)), 3))
                found = passes / looks, passes / _look(module)
                best[size] = tuple(map(min, found, best.get(size, found)))
        # six times as long for an op, where time grows with the square
        if best[3000][0] < MOST_LOOKS and best[3000][1] < 4 * best[500][1]:
            return
    raise AssertionError(f"{best}: times of a look, and seconds for an op")
