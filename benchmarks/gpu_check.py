"""What this machine's GPU does with lamina: the samples, the demo, and rates beside the limits.

    python benchmarks/gpu_check.py out/gpu.json

Runs test/end_to_end with the GPU as default device and the digits demo, then times programs. Rates are
of the same run: bytes a second beside those of a plain copy, products beside cuBLAS where torch or
cupy has it. Ends with an error where there is no GPU: nothing is written then.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lamina
import lamina.numpy as jnp

_ELEMENTS = 64 << 20  # f32: 256 MiB
_SIDE = 8192


def _seconds(run: Callable[[], Any], repeats: int = 20) -> float:
    """The least time of a run, of several in a row each."""
    best = float("inf")
    for _ in range(3):
        lamina.block_until_ready(run())
        began = time.perf_counter()
        for _ in range(repeats):
            result = run()
        lamina.block_until_ready(result)
        best = min(best, (time.perf_counter() - began) / repeats)
    return best


def _rates() -> dict[str, Any]:
    x = jnp.ones((_ELEMENTS // 1024, 1024), jnp.float32)
    size = x.nbytes
    copy = _seconds(x.copy)
    layernorm = lamina.jit(lambda x: (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-5))
    moved = {
        "elementwise": (lamina.jit(lambda x: jnp.tanh(x) * 2 + x), 2 * size),
        "softmax": (lamina.jit(lambda x: lamina.nn.softmax(x, axis=1)), 2 * size),
        "layernorm": (layernorm, 2 * size),
        "sum of rows": (lamina.jit(lambda x: x.sum(1)), size),
        "sum of columns": (lamina.jit(lambda x: x.sum(0)), size),
        "sum": (lamina.jit(jnp.sum), size),
    }
    found: dict[str, Any] = {"copy_bytes_per_second": 2 * size / copy}
    for name, (run, traffic) in moved.items():
        rate = traffic / _seconds(lambda run=run: run(x))  # type: ignore[misc]
        found[name] = {"bytes_per_second": rate, "of_copy": rate * copy / (2 * size)}
    small = jnp.ones(4)
    add = lamina.jit(lambda x: x + 1)
    found["launch_seconds"] = _seconds(lambda: add(small), 1000)
    a = jnp.ones((_SIDE, _SIDE), jnp.bfloat16)
    flops = 2 * _SIDE**3 / _seconds(lambda: a @ a, 5)
    found["matmul_bf16"] = {"flops_per_second": flops, "of_cublas": None}
    library = _cublas()
    if library is not None:
        found["matmul_bf16"] |= {"cublas_flops_per_second": library, "of_cublas": flops / library}
    return found


def _cublas() -> float | None:
    try:
        import torch
    except ImportError:
        return None
    a = torch.ones((_SIDE, _SIDE), dtype=torch.bfloat16, device="cuda")
    best = float("inf")
    for _ in range(4):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(5):
            a @ a
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - began) / 5)
    return 2 * _SIDE**3 / best


def main() -> None:
    """Checks, measures, writes one JSON."""
    gpu = lamina.devices("cuda")[0]  # raises, and says what is missing
    environment = os.environ | {"LAMINA_PLATFORMS": "cuda,cpu"}
    passed = {
        name: subprocess.run([sys.executable, *command], env=environment, check=False).returncode == 0
        for name, command in {
            "samples": ["-m", "pytest", "-q", "test/end_to_end"],
            "demo": ["examples/digits.py", "--device", "cuda", "--epochs", "5"],
        }.items()
    }
    with lamina.default_device(gpu):
        rates = _rates()
    found = {"date": time.strftime("%Y-%m-%d"), "device": gpu.device_kind,
             "capability": gpu.compute_capability, "numpy": np.__version__, "passed": passed, **rates}  # fmt: skip
    with open(sys.argv[1], "w") as file:
        json.dump(found, file, indent=2)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
