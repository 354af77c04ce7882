"""What it costs before a program runs for the first time: processor time of compiling, and the first call.

Nothing is cached: each time the program is a new function. Processor time is of all threads and of
the processes that compile beside this one.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.suite import Library, Workload

_TURNS = 3


def measure(
    row: Workload, inputs: tuple[Any, ...], ours: Library, theirs: Library | None
) -> dict[str, dict[str, float]]:
    """For each library the seconds of both, medians of several, taken by turns."""
    libraries = [library for library in (ours, theirs) if library is not None]
    samples: dict[str, dict[str, list[float]]] = {
        library.name: {"processor": [], "first_call": []} for library in libraries
    }
    for _ in range(_TURNS):
        for library in libraries:
            args = library.tree.tree_map(library.np.asarray, inputs)
            found = samples[library.name]
            found["processor"].append(compiling(row, inputs, library))
            start = time.perf_counter()
            library.block_until_ready(library.jit(_new(row, library))(*args))
            found["first_call"].append(time.perf_counter() - start)
    return {
        name: {what: statistics.median(times) for what, times in found.items()}
        for name, found in samples.items()
    }


def compiling(row: Workload, inputs: tuple[Any, ...], library: Library) -> float:
    """Seconds of processor time that a library takes to compile a row anew."""
    args = library.tree.tree_map(library.np.asarray, inputs)
    gc.collect()  # what was compiled before is not this one's to clear away
    start = _processor_time()
    library.jit(_new(row, library)).lower(*args).compile()
    return _processor_time() - start


def _new(row: Workload, library: Library) -> Any:
    """The program as a function that nobody has seen: JAX knows those of its own that it has compiled."""
    program = row.make(library)
    return lambda *args: program(*args)


def _processor_time() -> float:
    """Of this process and of its children, which /proc lists where there is one."""
    total = time.process_time()
    hertz = os.sysconf("SC_CLK_TCK")
    for listed in Path("/proc/self/task").glob("*/children"):
        for child in listed.read_text().split():
            try:
                after_name = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it ended meanwhile
            total += (int(after_name[11]) + int(after_name[12])) / hertz
    return total
