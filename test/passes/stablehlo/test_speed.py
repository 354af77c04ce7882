"""The StableHLO passes take a bounded time an op, also on large programs."""

import importlib.util
import time
from pathlib import Path

from lamina.dialects.context import make_context
from lamina.dialects.vendors import ir
from lamina.passes.pipeline import Pipeline

HERE = Path(__file__).parent
PIPELINE = (
    "stablehlo-simplify{fold=true},stablehlo-cse,stablehlo-dce,"
    "stablehlo-lay-out-contractions,stablehlo-place-picks,stablehlo-raise-views,stablehlo-cse,stablehlo-fuse"
)
# About five times what it takes alone on a machine: tests share theirs.
MAX_SECONDS_AN_OP = 750e-6


def _program(size):
    spec = importlib.util.spec_from_file_location("random_programs", HERE / "random_programs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Program(7, size).module()


def test_time_grows_with_the_number_of_ops():
    seconds = {}
    for size in (500, 3000):
        with make_context(), ir.Location.unknown():
            module = _program(size)
            count = sum(1 for _ in module.body.operations[0].regions[0].blocks[0].operations)
            begin = time.process_time()
            Pipeline.parse(PIPELINE).run(module)
            seconds[size] = (time.process_time() - begin) / count
    assert seconds[3000] < MAX_SECONDS_AN_OP
    assert seconds[3000] < 4 * seconds[500]
