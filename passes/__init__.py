"""Passes: a file holds one pass over a module, and is named as the pass is: `<level>/.../<name>.py`.

The levels are the IRs that passes rewrite: stablehlo, linalg, memref, llvm; math, which defines functions; cpu and gpu
(both in `kernels`), which write a target's kernels. `schedule` chooses loops, `planning` is the buffer planner, apart
from MLIR. `framework` is what passes stand on, `emit` what several levels emit IR with.
"""
