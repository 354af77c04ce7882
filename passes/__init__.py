"""Passes: a file holds one pass over a module, and is named as the pass is: `<level>/.../<name>.py`.

The levels are the IRs that passes rewrite: stablehlo, linalg, memref, llvm for CPUs, gpu for GPUs, and math,
which defines functions. `planning` is the buffer planner, apart from MLIR. The files here are the framework:
what a pass is (base), where it is found (registry), how passes are run (pipeline, options, instrumentation),
and what several levels emit IR with (loops, copies, scalars, find).
"""
