"""What the machine can do, measured in the same run: the rates that others are held against."""

from __future__ import annotations

import os
import platform
import time
from typing import Any


def measure_limits() -> dict[str, float]:
    """`copy`: bytes per second read and written by a copy of 64 MB on all threads. `matmul`: flops
    per second of OpenBLAS' product of two 2048x2048 f32 matrices. `matmul bfloat16` and `matmul int8`:
    of our own kernels' of two 1024x1024 matrices, which no library does. The best of several."""
    import numpy as np

    import lamina
    from lamina import lax

    x = lamina.numpy.asarray(np.ones(1 << 24, np.float32))
    copy = lamina.jit(lambda x: -x, donate_argnums=())
    a = lamina.numpy.asarray(np.ones((2048, 2048), np.float32))
    product = lamina.jit(lambda a: a @ a, compiler_options={"matrix_products": "library"})

    def narrow(dtype: str, result: str) -> float:
        a = lamina.numpy.ones((1024, 1024), dtype)
        numbers = (((1,), (0,)), ((), ()))
        multiply = lamina.jit(lambda a: lax.dot_general(a, a, numbers, preferred_element_type=result))
        return 2.0 * 1024**3 / _best(lambda: multiply(a).block_until_ready(), 10)

    return {
        "copy": 2.0 * x.nbytes / _best(lambda: copy(x).block_until_ready(), 10),
        "matmul": 2.0 * 2048**3 / _best(lambda: product(a).block_until_ready(), 5),
        "matmul bfloat16": narrow("bfloat16", "float32"),
        "matmul int8": narrow("int8", "int32"),
    }


def describe_machine() -> dict[str, Any]:
    """The processor, its cores that we may use, and the versions that were measured."""
    from importlib.metadata import PackageNotFoundError, version

    def of(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: of(name) for name in ("lamina", "jax", "torch", "numba") if of(name)},
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _best(call: Any, times: int) -> float:
    call()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)
