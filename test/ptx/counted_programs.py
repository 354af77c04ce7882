"""What docs/cuda-counts.md counts: an operation at a shape, as Triton has it; lamina's functions are in `counts.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from triton_programs import TYPES, Program

_ROWS = 4096
_EXACT = ", libdevice"
"""Of programs in which Triton takes exp from there, and exact quotients: as exact as lamina's."""


@dataclass(frozen=True)
class Counted:
    """An operation, by which `counts.py` has lamina's function, at a shape; Triton's programs of it, of which the one
    with the fewest instructions counts. Of these the arrays but the last are the function's arguments."""

    operation: str
    name: str
    triton: tuple[Program, ...]


def _normal(kind: str, *shape: int) -> np.ndarray:
    random = np.random.default_rng(7)
    return random.normal(size=shape).astype(np.float32).astype(TYPES[kind])


def _programs(
    name: str, kernel: str, kinds: dict[str, str], inputs: list[tuple[int, ...]], result: tuple[int, ...],
    further: dict[str, tuple[str, Any]], ways: list[tuple[dict[str, Any], tuple[int, ...], int, int]],
) -> tuple[Program, ...]:  # fmt: skip
    """A kernel in several ways: constants, grid, warps and stages."""
    *given, out = kinds.items()

    def arguments(_: np.random.Generator) -> list[Any]:
        arrays = [_normal(kind, *shape) for (_, kind), shape in zip(given, inputs, strict=True)]
        return [*arrays, np.zeros(result, TYPES[out[1]]), *(value for _, value in further.values())]

    return tuple(
        Program(
            f"counted {name} {n}", kernel,
            {name: f"*{kind}" for name, kind in kinds.items()} | {name: kind for name, (kind, _) in further.items()},
            constants, grid, arguments, lambda given: None, 0.0, warps, stages,
        )
        for n, (constants, grid, warps, stages) in enumerate(ways)
    )  # fmt: skip


def _by_rows(kind: str, columns: int) -> list[tuple[dict[str, Any], tuple[int, ...], int, int]]:
    block = 1 << (columns - 1).bit_length()
    return [({"BLOCK": block}, (_ROWS,), warps, 3) for warps in (1, 4, 8)]


def _softmax(kind: str, columns: int, exact: bool = False) -> Counted:
    name = f"softmax {kind}, {_ROWS} x {columns}" + _EXACT * exact
    shape = (_ROWS, columns)
    triton = _programs(name, "softmax_exact" if exact else "softmax", {"x": kind, "out": kind}, [shape], shape, {"columns": ("i32", columns)},
                       _by_rows(kind, columns))  # fmt: skip
    return Counted("softmax", name, triton)


def _layer_norm(kind: str, columns: int) -> Counted:
    name = f"layer norm {kind}, {_ROWS} x {columns}"
    shape = (_ROWS, columns)
    names = ("x", "weight", "bias", "out")
    triton = _programs(
        name, "layer_norm", dict.fromkeys(names, kind), [shape, (columns,), (columns,)], shape,
        {"columns": ("i32", columns), "eps": ("fp32", 1e-5)}, _by_rows(kind, columns),
    )  # fmt: skip
    return Counted("layer norm", name, triton)


def _matmul(kind: str, m: int, n: int, k: int) -> Counted:
    name = f"product {kind}, {m} x {k} by {k} x {n}"
    ways = [
        ({"KIND": "", "BM": bm, "BN": bn, "BK": bk}, (m // bm, n // bn), warps, stages)
        for bm, bn, bk, warps, stages in ((128, 256, 64, 8, 3), (128, 128, 32, 4, 4), (64, 256, 32, 4, 4))
    ]
    triton = _programs(name, "matmul", {"a": kind, "b": kind, "c": kind}, [(m, k), (k, n)], (m, n),
                       {"M": ("i32", m), "N": ("i32", n), "K": ("i32", k)}, ways)  # fmt: skip
    return Counted("product", name, triton)


def _attention(kind: str, heads: int, n: int, d: int) -> Counted:
    name = f"attention {kind}, {heads} heads, {n} x {d}"
    ways = [({"BM": bm, "BN": bn, "D": d}, (n // bm, heads), warps, 3) for bm, bn, warps in ((64, 64, 4), (128, 64, 4), (128, 64, 8))]
    shape = (heads, n, d)
    triton = _programs(name, "fast_attention", {"q": kind, "k": kind, "v": kind, "out": kind}, [shape] * 3, shape,
                       {"n": ("i32", n), "scale": ("fp32", d**-0.5)}, ways)  # fmt: skip
    return Counted("attention", name, triton)


def _chain(kind: str, n: int, exact: bool = False) -> Counted:
    name = f"exp(-x * x) * y + x {kind}, {n}" + _EXACT * exact
    ways = [({"BLOCK": 1024}, (n // 1024,), 4, 3), ({"BLOCK": 2048}, (n // 2048,), 4, 3)]
    triton = _programs(name, "chain_exact" if exact else "chain", dict.fromkeys(("x", "y", "out"), kind), [(n,), (n,)], (n,), {"n": ("i32", n)}, ways)
    return Counted("chain", name, triton)


def _sum_of_rows(kind: str, columns: int) -> Counted:
    name = f"sum of rows {kind}, {_ROWS} x {columns}"
    triton = _programs(name, "sum_rows", {"x": kind, "out": kind}, [(_ROWS, columns)], (_ROWS,), {"columns": ("i32", columns)},
                       _by_rows(kind, columns))  # fmt: skip
    return Counted("sum of rows", name, triton)


def _sum_of_columns(kind: str, rows: int, columns: int) -> Counted:
    name = f"sum of columns {kind}, {rows} x {columns}"
    ways = [({"KIND": "sum", "ROWS": 16, "COLUMNS": 64}, (columns // 64,), warps, 3) for warps in (4, 8)]
    triton = _programs(name, "reduce_columns", {"x": kind, "out": kind}, [(rows, columns)], (columns,),
                       {"rows": ("i32", rows), "columns": ("i32", columns)}, ways)  # fmt: skip
    return Counted("sum of columns", name, triton)


def _transpose(kind: str, rows: int, columns: int) -> Counted:
    name = f"transpose {kind}, {rows} x {columns}"
    ways = [({"SIDE": side}, (rows // side, columns // side), warps, 3) for side, warps in ((64, 4), (32, 4))]
    triton = _programs(name, "transpose", {"x": kind, "out": kind}, [(rows, columns)], (columns, rows),
                       {"rows": ("i32", rows), "columns": ("i32", columns)}, ways)  # fmt: skip
    return Counted("transpose", name, triton)


COUNTED = [
    _chain("fp32", 1 << 20),
    _chain("fp32", 1 << 20, exact=True),
    _chain("bf16", 1 << 20),
    _chain("bf16", 1 << 20, exact=True),
    _softmax("fp32", 1024),
    _softmax("fp32", 1024, exact=True),
    _softmax("fp32", 1000),
    _softmax("fp16", 2048),
    _layer_norm("fp32", 1024),
    _layer_norm("bf16", 1536),
    _sum_of_rows("fp32", 1024),
    _sum_of_rows("fp32", 4096),
    _sum_of_columns("fp32", 4096, 8192),
    _transpose("fp32", 2048, 2048),
    _transpose("fp16", 2048, 2048),
    _matmul("fp16", 2048, 4096, 512),
    _matmul("bf16", 2048, 4096, 512),
    _attention("fp16", 16, 1024, 64),
    _attention("bf16", 16, 1024, 128),
]
