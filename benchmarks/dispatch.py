"""What a call costs besides its computation: jit calls, pytrees, the queue, parallel regions.

    python benchmarks/dispatch.py      # microseconds, the best of many; jax beside it if installed
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lamina
from lamina import runtime
from lamina.runtime.artifact import ABI_VERSION, Artifact
from lamina.runtime.executable import load

REGIONS = 1000  # parallel regions in one call of the entry below

_PARALLEL_REGIONS = f"""
declare void @lamina_parallel_for(ptr, ptr, i64, i64)
define void @nothing(ptr %context, i64 %lo, i64 %hi) {{
  ret void
}}
define void @lamina_entry(ptr %args, ptr %results, ptr %arena) {{
start:
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %loop]
  call void @lamina_parallel_for(ptr @nothing, ptr null, i64 1000, i64 1)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {REGIONS}
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


def best_us(call: Callable[[], Any], seconds: float = 0.5) -> float:
    """The quickest of many batches of calls, in microseconds a call."""
    call()
    count, best, end = 1, float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(count):
            call()
        elapsed = time.perf_counter() - start
        best = min(best, elapsed / count)
        if elapsed < 1e-3:
            count *= 2
    return best * 1e6


def parallel_region_us() -> float:
    """One empty parallel region on awake threads."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    manifest = {
        "abi_version": ABI_VERSION,
        "name": "regions",
        "entry": "lamina_entry",
        "inputs": [],
        "outputs": [],
        "arena_bytes": 0,
        "imports": ["lamina_parallel_for"],
    }
    code = machine.emit_object(llvm.parse_assembly(_PARALLEL_REGIONS))
    executable = load(Artifact(manifest, {"code": code}))

    def call() -> None:
        executable([])
        runtime.wait_all()

    return best_us(call) / REGIONS


def calls(jit: Any, array: Any) -> dict[str, Callable[[], Any]]:
    """The calls to measure, for a jit and its way to make an array."""
    scalar, small = array(np.float32(1)), array(np.ones(4, np.float32))
    tree = {f"layer{i}": {"w": small, "b": scalar} for i in range(50)}
    large = array(np.ones((512, 512), np.float32))
    add = jit(lambda x: x + 1)
    many = jit(lambda t: t["layer0"]["b"] + t["layer49"]["b"])
    update = jit(lambda t: {k: {"w": v["w"] + 1, "b": v["b"] + 1} for k, v in t.items()})
    product = jit(lambda x: x @ x)
    return {
        "scalar add": lambda: add(scalar),
        "scalar add of a Python float": lambda: add(1.0),
        "scalar add of an ndarray": lambda: add(np.float32(1)),
        "scalar add and wait": lambda: add(scalar).block_until_ready(),
        "dict of 100 leaves in": lambda: many(tree),
        "dict of 100 leaves in and out": lambda: update(tree),
        "512x512 matmul and wait": lambda: product(large).block_until_ready(),
    }


def main() -> None:
    """Prints the table."""
    columns = {"lamina": calls(lamina.jit, runtime.to_array)}
    try:
        jax = importlib.import_module("jax")
    except ImportError:
        print("jax is not installed: nothing to compare with")
    else:
        columns["jax"] = calls(jax.jit, jax.numpy.asarray)
    print(f"{'microseconds a call':34}" + "".join(f"{name:>10}" for name in columns))
    for what in columns["lamina"]:
        row = [best_us(column[what]) for column in columns.values()]
        print(f"{what:34}" + "".join(f"{time_us:10.2f}" for time_us in row))
    threads = runtime.get_num_threads()
    print(f"{f'parallel region, {threads} threads':34}{parallel_region_us():10.2f}")


if __name__ == "__main__":
    main()
