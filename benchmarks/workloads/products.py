"""Matrix products, dense layers, attention, small solves."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.peers import by_torch
from benchmarks.suite import Library, Workload, arrays


def _matmul(n: int, bar: float) -> Workload:
    return Workload(
        f"matmul {n}", "products", lambda m: m.np.matmul, lambda: arrays((n, n), (n, n)), bar,
        flops=2.0 * n**3, others=by_torch(lambda torch, a, b: a @ b),
    )  # fmt: skip


def _narrow(n: int, dtype: str, result: str, bar: float | None) -> Workload:
    def inputs() -> tuple[Any, ...]:
        return tuple((x * 50).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
                     for x in arrays((n, n), (n, n)))  # fmt: skip

    def make(m: Library) -> Any:
        numbers = (((1,), (0,)), ((), ()))
        return lambda a, b: m.lax.dot_general(a, b, numbers, preferred_element_type=result)

    limit = "matmul bfloat16" if dtype == "bfloat16" else "matmul int8"
    return Workload(f"matmul {n}, {dtype}", "products", make, inputs, bar, flops=2.0 * n**3, limit=limit)


def _mlp(m: Library) -> Any:
    def f(weights: Any, x: Any) -> Any:
        for w in weights[:-1]:
            x = m.nn.relu(x @ w)
        return x @ weights[-1]

    return f


def _mlp_gradient(m: Library) -> Any:
    return m.grad(lambda weights, x: m.np.sum(_mlp(m)(weights, x) ** 2))


def _mlp_inputs() -> tuple[Any, ...]:
    weights = arrays((784, 512), (512, 512), (512, 10))
    return [w * 0.05 for w in weights], arrays((128, 784), seed=1)[0]


def attention(m: Library) -> Any:
    def f(q: Any, k: Any, v: Any) -> Any:
        scores = m.np.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
        return m.np.einsum("bhqk,bhkd->bhqd", m.nn.softmax(scores, -1), v)

    return f


def _attention_gradient(m: Library) -> Any:
    def loss(*operands: Any) -> Any:
        return m.np.sum(attention(m)(*operands).astype("float32") ** 2)

    return m.grad(loss, (0, 1, 2))


def _attention(
    shape: tuple[int, int, int, int], bar: float | None, *, gradient: bool = False,
    dtype: str = "float32",
) -> Workload:  # fmt: skip
    b, h, n, d = shape
    name = f"attention{', gradient' * gradient} {b}x{h}x{n}x{d}"
    name += f", {dtype}" * (dtype != "float32")

    def inputs() -> tuple[Any, ...]:
        return tuple(x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
                     for x in arrays(*[shape] * 3))  # fmt: skip

    products = 6 if gradient else 2  # computing scores twice is none of the work
    flops = 2.0 * products * b * h * n * n * d
    make = _attention_gradient if gradient else attention
    limit = "matmul" if dtype == "float32" else f"matmul {dtype}"
    others = by_torch(_torch_attention) if make is attention and dtype == "float32" else {}
    return Workload(name, "products", make, inputs, bar, flops=flops, limit=limit, others=others)


def _torch_attention(torch: Any, *operands: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(*operands)


def _solves() -> tuple[Any, ...]:
    a, b = arrays((86_000, 3, 3), (86_000, 3, 1))
    return a + 3 * np.eye(3, dtype=np.float32), b


def _small(count: int, n: int, *, vectors: bool = False) -> Workload:
    """So many products of n x n matrices, with one another or with a vector each."""
    shape = (count, n) if vectors else (count, n, n)
    what = "matrices by vectors" if vectors else "products"
    return Workload(
        f"{count:,} {n}x{n} {what}", "products",
        lambda m: lambda a, b: m.np.einsum("bij,bj->bi" if vectors else "bij,bjk->bik", a, b),
        lambda: arrays((count, n, n), shape), 1.0, flops=2.0 * count * n ** (2 if vectors else 3),
    )  # fmt: skip


_MLP_FLOPS = 2.0 * 128 * (784 * 512 + 512 * 512 + 512 * 10)
_MLP_GRADIENT_FLOPS = 3 * _MLP_FLOPS - 2.0 * 128 * 784 * 512  # none with respect to the input

WORKLOADS = [
    *(_matmul(n, bar) for n, bar in ((64, 4), (256, 1.5), (512, 1.05), (1024, 1.0), (2048, 1.0))),
    _narrow(512, "int8", "int32", 1.0),
    _narrow(512, "uint8", "int32", None),
    _narrow(512, "bfloat16", "float32", 1.0),
    Workload("matmul + bias + relu 1024", "products",
             lambda m: lambda a, b, c: m.nn.relu(a @ b + c),
             lambda: arrays((1024, 1024), (1024, 1024), (1024,)), 1.03, flops=2.0 * 1024**3,
             others=by_torch(lambda torch, a, b, c: torch.relu(a @ b + c))),
    Workload("MLP 128x784-512-512-10", "products", _mlp, _mlp_inputs, 1.3, flops=_MLP_FLOPS),
    Workload("MLP, gradient", "products", _mlp_gradient, _mlp_inputs, 1.2, flops=_MLP_GRADIENT_FLOPS),
    _attention((4, 8, 256, 64), 1.2),
    _attention((1, 8, 2048, 64), 1.5),
    _attention((4, 8, 256, 64), None, gradient=True),
    _attention((1, 8, 2048, 64), None, gradient=True),
    _attention((1, 8, 2048, 64), None, dtype="bfloat16"),
    _attention((1, 8, 2048, 64), None, gradient=True, dtype="bfloat16"),
    Workload("dot of 100K", "products", lambda m: m.np.dot,
             lambda: arrays((100_000,), (100_000,)), bytes=8e5),
    Workload("86,000 3x3 solves", "products", lambda m: m.np.linalg.solve, _solves, 2.5),
    _small(86_000, 3),
    _small(86_000, 4),
    _small(10_000, 16),
    _small(86_000, 4, vectors=True),
    _small(10_000, 16, vectors=True),
    Workload("86,000 cross products", "products", lambda m: m.np.cross,
             lambda: arrays((86_000, 3), (86_000, 3)), 1.0),
]  # fmt: skip
