"""What passes know of GPUs: sizes that architectures have, and rates that choices between kernels are made by.

The rates are those of an H100, in cycles of a multiprocessor or in seconds; they weigh one way against another.
"""

MULTIPROCESSORS = {75: 40, 80: 108, 86: 84, 87: 16, 89: 128, 90: 132, 100: 148, 103: 148, 120: 170, 121: 48}
"""Of the largest GPU of each compute capability."""
F8_AS_F16 = (90, 100, 103)
"""Compute capabilities whose assembler widens the f8 that warps multiply: only larger units take them as they are."""
FILLING_BLOCKS = 1024
"""Blocks of 256 threads that keep any GPU busy until all end at about the same time."""
FILLING_WARPS = 1024
"""Warps that have something to do for all its schedulers."""

STATIC_SHARED_BYTES = 48 << 10
"""Of shared memory that every GPU grants a block without being asked."""
SHARED_BYTES = 99 << 10
"""The least that any from sm_80 on grants a block that asks."""
SHARED_BYTES_SM_90 = 200 << 10
"""Of the 227 KiB that a block may ask for on sm_90."""
ROWS_HELD = 256
"""Rows of 128 bytes that a warpgroup has registers for."""
ROW_REGISTERS = 40
"""Of a thread, for elements of a row, beside all else."""

BYTES_PER_CYCLE = 48
"""Of global memory and L2, for one multiprocessor."""
SHARED_BYTES_PER_CYCLE = 128
LATENCY_CYCLES = 800
"""Until what is read is there."""
STEP_CYCLES = 60
"""Of a step along a sum that overlap with nothing."""
BLOCK_CYCLES = 1500
"""Of a block's start and end."""
LAUNCH_CYCLES = 5000
ROW_COPY_CYCLES = 2.5
"""In which a warpgroup copies a row of 128 bytes, by 8 of its threads."""
LIBRARY_CALL_CYCLES = 20_000
"""A product of fewer is done before a call of the library would be."""

BYTES_PER_SECOND = 1.5e12
L2_ELEMENTS = 1 << 20
"""Of an array that is still in L2 when it is read again."""
