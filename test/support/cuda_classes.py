"""Every class of kernel for GPUs that the tests run, and what `make gpu-check` measures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "backends"))

import ml_dtypes
import numpy as np
import test_cuda
import test_cuda_attention
import test_cuda_attention_gradient
import test_cuda_attention_wgmma
import test_cuda_control
import test_cuda_ops
import test_cuda_products
import test_cuda_wgmma

import lamina
import lamina.numpy as jnp
from support.cuda_program import Program

_BF16 = ml_dtypes.bfloat16


@dataclass(frozen=True)
class Class:
    """A class of kernel: a program with at least one."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def program(self, arch: str = "sm_90a") -> Program:
        """Its kernels."""
        small = self.name.startswith("wgmma")
        with test_cuda_wgmma.small_tiles() if small else test_cuda_ops.thresholds(self.name):
            with lamina.enable_x64("f64" in self.name):
                return Program(self.function, *self.arguments, arch=arch)


def _of(dtype: Any, *shape: int) -> Any:
    return lamina.ShapeDtypeStruct(shape, dtype)


def _attend(q, k, v):
    return lamina.nn.dot_product_attention(q, k, v, is_causal=True)


_ROWS = _of(np.float32, 65536, 1024)
# At the sizes that `make gpu-check` measures.
BENCHMARKS: dict[str, tuple[Callable, tuple]] = {
    "elementwise": (lambda x: jnp.tanh(x) * 2 + x, (_ROWS,)),
    "softmax": (lambda x: lamina.nn.softmax(x, axis=1), (_ROWS,)),
    "layernorm": (
        lambda x: (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-5), (_ROWS,)),
    "sum of rows": (lambda x: x.sum(1), (_ROWS,)),
    "sum of columns": (lambda x: x.sum(0), (_ROWS,)),
    "sum": (jnp.sum, (_ROWS,)),
    "matmul bf16": (jnp.matmul, (_of(_BF16, 8192, 8192),) * 2),
    "matmul f8": (jnp.matmul, (_of(ml_dtypes.float8_e4m3fn, 4096, 4096),) * 2),
    "matmul f32": (jnp.matmul, (_of(np.float32, 4096, 4096),) * 2),
    "matmul tf32": (test_cuda_wgmma.tf32, (_of(np.float32, 8192, 8192),) * 2),
    "convolution": (test_cuda_wgmma.convolved, (_of(_BF16, 8, 256, 256, 128), _of(_BF16, 3, 3, 128, 128))),
    "attention": (_attend, (_of(_BF16, 4, 4096, 16, 128),) * 3),
    "attention gradient": (test_cuda_attention_gradient.gradient(_attend),
                           (_of(_BF16, 4, 4096, 16, 128),) * 4),
    "sort": (jnp.sort, (_of(np.float32, 1 << 24),)),
    "cumulative sum": (jnp.cumsum, (_of(np.float32, 1 << 24),)),
}  # fmt: skip


def classes() -> list[Class]:
    """Every class of kernel that the tests run, and the benchmarks."""
    groups: dict[str, dict[str, tuple]] = {
        "loops": test_cuda.KERNELS,
        "ops": test_cuda_ops.OPS,
        "products": {name: row[0] for name, row in test_cuda_products.KERNELS.items()},
        "attention": test_cuda_attention.PROGRAMS,
        "attention wgmma": test_cuda_attention_wgmma.PROGRAMS,
        "control": {
            name: row[:2]
            for name, row in test_cuda_control.PROGRAMS.items()
            if name != "sorted_window"  # which a thread keeps in its local memory
        },
        "attention gradient": test_cuda_attention_gradient.PROGRAMS,
        "wgmma": {name: row[:2] for name, row in test_cuda_wgmma.PRODUCTS.items()},
        "benchmarks": BENCHMARKS,
    }
    return [Class(f"{g}: {n}", *row) for g, rows in groups.items() for n, row in rows.items()]
