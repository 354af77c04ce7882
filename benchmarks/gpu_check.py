"""What this machine's GPU does with lamina: the samples, the demo, and rates beside the limits.

    python benchmarks/gpu_check.py out/gpu.json [rates] [demo] [samples]

Times programs, runs the digits demo, and test/end_to_end with the GPU as default device; by default
all three. Rates are of the same run: bytes a second beside those of a plain copy, products beside
cuBLAS and attention beside torch's, where torch is there. Ends with an error where there is no GPU:
nothing is written then. `benchmarks/pack_for_gpu.py` is for a machine without a network.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import random

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
    found["matmul_bf16"] = _matmul()
    found["attention_bf16"] = _attention()
    return found


def _matmul() -> dict[str, Any]:
    """A large product by our own kernel, and by cuBLAS where torch is there."""
    # Random: a GPU is faster on zeros and ones.
    a, b = (random.normal(key, (_SIDE, _SIDE), jnp.bfloat16) for key in random.split(random.key(0)))
    product = lamina.jit(jnp.matmul)
    kernels = product.lower(a, b).compile().as_text("gpu")
    flops = 2 * _SIDE**3 / _seconds(lambda: product(a, b), 5)
    by_torch = _by_torch((_SIDE, _SIDE), 2, lambda torch, a, b: a @ b)
    library = by_torch and 2 * _SIDE**3 / by_torch
    tiling = re.search(r'lamina.tiling = "([^"]*)', kernels)
    return _beside({"flops_per_second": flops, "tiling": tiling and tiling[1]}, "cublas", library)


def _attention() -> dict[str, Any]:
    """Causal attention forward, and torch's."""
    batch, length, heads, width = shape = (4, 4096, 16, 128)
    q, k, v = (random.normal(key, shape, jnp.bfloat16) for key in random.split(random.key(1), 3))
    attend = lamina.jit(lambda *x: lamina.nn.dot_product_attention(*x, is_causal=True))
    work = 4 * batch * heads * length * length * width / 2

    def torch_s(torch: Any, *x: Any) -> Any:
        x = tuple(each.transpose(1, 2) for each in x)
        return torch.nn.functional.scaled_dot_product_attention(*x, is_causal=True)

    seconds = _by_torch(shape, 3, torch_s)
    ours = work / _seconds(lambda: attend(q, k, v), 5)
    return _beside({"flops_per_second": ours}, "torch", seconds and work / seconds)


def _beside(found: dict[str, Any], name: str, rate: float | None) -> dict[str, Any]:
    ratio = rate and found["flops_per_second"] / rate
    return {**found, f"{name}_flops_per_second": rate, f"of_{name}": ratio}


def _by_torch(shape: tuple[int, ...], count: int, run: Callable[..., Any]) -> float | None:
    """Seconds of a program of torch's on random arrays; None where it is not there."""
    try:
        import torch
    except ImportError:
        return None
    arrays = [torch.randn(shape, dtype=torch.bfloat16, device="cuda") for _ in range(count)]
    best = float("inf")
    for _ in range(4):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(5):
            run(torch, *arrays)
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - began) / 5)
    return best


def _samples() -> dict[str, Any]:
    """What of test/end_to_end passes with the GPU as default device; names what does not."""
    words = ["-m", "pytest", "-q", "-n", str(min(8, os.cpu_count() or 1)), "-rf", "test/end_to_end"]
    ended = subprocess.run([sys.executable, *words], env=_ENVIRONMENT, check=False,
                           capture_output=True, text=True)  # fmt: skip
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", ended.stdout[-400:])}
    failures = re.findall(r"^FAILED (\S+)", ended.stdout, re.MULTILINE)
    return {**counts, "failures": failures, "exit": ended.returncode}


def _demo() -> dict[str, Any]:
    """The digits demo, unchanged but for the device."""
    words = ["examples/digits.py", "--device", "cuda", "--epochs", "5"]
    ended = subprocess.run([sys.executable, *words], env=_ENVIRONMENT, check=False,
                           capture_output=True, text=True)  # fmt: skip
    return {"exit": ended.returncode, "output": (ended.stdout + ended.stderr)[-2000:]}


_ENVIRONMENT = os.environ | {"LAMINA_PLATFORMS": "cuda,cpu"}
STAGES: dict[str, Callable[[], dict[str, Any]]] = {
    "rates": _rates, "demo": _demo, "samples": _samples
}  # fmt: skip


def main() -> None:
    """Checks, measures, writes one JSON after each stage."""
    gpu = lamina.devices("cuda")[0]  # raises, and says what is missing
    path, *wanted = sys.argv[1:]
    found: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "device": gpu.device_kind,
                             "capability": gpu.compute_capability, "numpy": np.__version__}  # fmt: skip
    with lamina.default_device(gpu):
        for stage in wanted or STAGES:
            found[stage] = STAGES[stage]()
            with open(path, "w") as file:
                json.dump(found, file, indent=2)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
