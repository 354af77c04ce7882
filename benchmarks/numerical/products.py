"""Products of odd shapes and types, and what is made of a few of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numerical.program import program, rng
from benchmarks.suite import Library


def _product(m: Library) -> Any:
    return lambda a, b: a @ b


def _gemm(m: Library) -> Any:
    return lambda a, b, c: 1.5 * a @ b + 1.2 * c


def _three_products(m: Library) -> Any:
    return lambda a, b, c, d: (a @ b) @ (c @ d)


def _normal_equations(m: Library) -> Any:
    return lambda a, x: (a @ x) @ a


def _covariance(m: Library) -> Any:
    def f(data: Any) -> Any:
        centred = data - m.np.mean(data, axis=0)
        return centred.T @ centred / (data.shape[0] - 1.0)

    return f


def _correlation(m: Library) -> Any:
    """A row at a time, as PolyBench has it."""

    def f(data: Any) -> Any:
        n, k = data.shape
        spread = m.np.std(data, axis=0)
        spread = m.np.where(spread <= 0.1, 1.0, spread)
        data = (data - m.np.mean(data, axis=0)) / (m.np.sqrt(n) * spread)

        def row(i: Any, result: Any) -> Any:
            column = data[:, i] @ data
            return result.at[i].set(m.np.where(m.np.arange(k) >= i, column, 0.0))

        upper = m.lax.fori_loop(0, k, row, m.np.zeros((k, k)))
        return m.np.where(m.np.tri(k, k=-1) > 0, upper.T, upper)

    return f


def _triangular_product(m: Library) -> Any:
    """B := L'B in place, a row at a time."""

    def f(a: Any, b: Any) -> Any:
        n = a.shape[0]

        def row(i: Any, b: Any) -> Any:
            below = m.np.where(m.np.arange(n) > i, a[:, i], 0.0)
            return b.at[i].add(below @ b)

        return m.lax.fori_loop(0, n, row, b)

    return f


def _multiresolution(m: Library) -> Any:
    return lambda a, c: m.np.einsum("rqs,sp->rqp", a, c)


def _normal(*shapes: tuple[int, ...], dtype: Any = np.float64) -> Any:
    return lambda: tuple(rng().standard_normal(shape).astype(dtype) for shape in shapes)


PROGRAMS = [
    program("8x30000 @ 30000x2000, f32", "products", _product,
            _normal((8, 30000), (30000, 2000), dtype=np.float32)),
    program("a row @ 3000x3000", "products", _product, _normal((3000,), (3000, 3000))),
    program("gemm 800", "products", _gemm, _normal(*[(800, 800)] * 3)),
    program("three products, 600 to 750", "products", _three_products,
            _normal((600, 700), (700, 650), (650, 750), (750, 620))),
    program("A'Ax", "products", _normal_equations, _normal((1800, 2200), (2200,))),
    program("covariance", "products", _covariance, _normal((1400, 600))),
    program("correlation by rows", "products", _correlation, _normal((260, 240))),
    program("triangular product by rows", "products", _triangular_product,
            _normal((200, 200), (200, 240))),
    program("multiresolution sums", "products", _multiresolution, _normal((60, 60, 128), (128, 128))),
]  # fmt: skip
