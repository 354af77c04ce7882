"""What the programs of `triton_kernels.py` are given and must give: a program is a kernel with its types."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

TYPES: dict[str, Any] = {
    "fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp64": np.float64,
    "fp8e5": ml_dtypes.float8_e5m2, "fp8e4nv": ml_dtypes.float8_e4m3fn, "i8": np.int8, "i16": np.int16,
    "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
    "u64": np.uint64,
}  # fmt: skip
Arrays = list[Any]


@dataclass(frozen=True)
class Program:
    """A kernel of Triton's with types and constants, its arguments, and what NumPy makes of them."""

    name: str
    kernel: str
    signature: dict[str, str]
    constants: dict[str, Any]
    grid: tuple[int, ...]
    arguments: Callable[[np.random.Generator], Arrays]
    wanted: Callable[[Arrays], Any]
    """The last array's contents at the end."""
    tolerance: float = 0.0
    warps: int = 4
    stages: int = 3
    architectures: Sequence[int] = (80, 90)
    boxes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of parameters that are descriptors."""

    def random(self) -> np.random.Generator:
        return np.random.default_rng(zlib.crc32(self.name.encode()))

    def file(self, arch: int) -> str:
        """Where its PTX is kept."""
        return f"{self.name.replace(' ', '_')}-sm_{arch}.ptx"


PROGRAMS: list[Program] = []


def _dtype(name: str) -> Any:
    return np.dtype(TYPES[name])


def _draw(random: np.random.Generator, kind: str, *shape: int) -> np.ndarray:
    dtype = _dtype(kind)
    if dtype.kind in "iu":
        least = 0 if dtype.kind == "u" else -100
        return random.integers(least, 100, shape).astype(dtype)
    return random.normal(size=shape).astype(np.float32).astype(dtype)


# ---- element by element --------------------------------------------------------------------------
_ELEMENTWISE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "fma": lambda a, b: a * b + a,
    "divide": lambda a, b: a / b,
    "remainder": np.fmod,
    "floor divide": lambda a, b: np.trunc(a / b),
    "minimum": np.fmin,
    "maximum nan": np.maximum,
    "minimum nan": np.minimum,
    "select": lambda a, b: np.where(a < b, a, b * 2),
    "exp": lambda a, b: np.exp(a) + b,
    "exact exp": lambda a, b: np.exp(a) + b,
    "transcendental": lambda a, b: (
        np.sin(a) * np.cos(b) + np.log(abs(a) + 1) + np.sqrt(abs(b)) + 1 / np.sqrt(b * b + 1)
    ),
    "erf": lambda a, b: np.vectorize(math.erf)(a) * np.exp2(b) + np.log2(abs(a) + 1),
    "rounding": lambda a, b: np.floor(a) + np.ceil(b),
    "bits": lambda a, b: ((a << 3) ^ (b >> 2)) | (a & ~b),
    "absolute": lambda a, b: abs(a),
    "seventh": lambda a, b: a // 7,
    "field": lambda a, b: ((a << 8) >> 40) + b,
    "order": lambda a, b: (a <= b) * 1 + (a >= b) * 2 + (a == b) * 4,
    "nan": lambda a, b: np.where(np.isnan(a), b, a),
    "high product": lambda a, b: (a.astype(np.uint64) * b.astype(np.uint64)) >> 32,
}


def _elementwise(kind: str, type_: str, warps: int = 4, n: int = 1900, tolerance: float = 0.0) -> None:
    def arguments(random: np.random.Generator) -> Arrays:
        x, y = (_draw(random, type_, n) for _ in range(2))
        if _dtype(type_).kind in "iu":
            y[y == 0] = 7
            if kind == "high product":
                x, y = (random.integers(0, 1 << 32, n, dtype=np.uint32) for _ in range(2))
            if kind == "order":
                y[::3] = x[::3]
        elif kind in ("minimum", "maximum nan", "minimum nan", "nan"):
            x[::7], y[3::11] = np.nan, np.nan
        return [x, y, np.zeros(n, _dtype(type_)), n]

    def wanted(given: Arrays) -> Any:
        x, y = given[:2]
        wide = np.float64 if x.dtype.kind not in "iu" else x.dtype
        if kind == "floor divide":
            wide = np.float64
        return _ELEMENTWISE[kind](x.astype(wide), y.astype(wide))

    PROGRAMS.append(Program(
        f"{kind} {type_} {warps}", "elementwise", {"x": f"*{type_}", "y": f"*{type_}", "out": f"*{type_}", "n": "i32"},
        {"KIND": kind, "BLOCK": 1024}, (math.ceil(n / 1024),), arguments, wanted, tolerance, warps,
    ))  # fmt: skip


for _type, _tolerance in (("fp32", 1e-6), ("fp16", 2e-3), ("bf16", 1.6e-2), ("fp64", 1e-14)):
    for _kind in ("add", "fma", "divide", "minimum", "maximum nan", "minimum nan", "select"):
        _elementwise(_kind, _type, tolerance=_tolerance)
for _type in ("i8", "i16", "i32", "i64"):
    for _kind in ("add", "fma", "remainder", "floor divide", "bits", "select"):
        _elementwise(_kind, _type)
for _type in ("i8", "i16", "u16", "u64", "fp16"):
    _elementwise("order", _type)
for _type in ("i8", "i16"):
    _elementwise("absolute", _type)
_elementwise("seventh", "u16")
_elementwise("field", "i64")
_elementwise("nan", "fp32")
_elementwise("nan", "fp16")
_elementwise("high product", "u32")
for _kind in ("exp", "transcendental", "erf", "rounding", "remainder"):
    _elementwise(_kind, "fp32", warps=8, tolerance=2e-6)
_elementwise("transcendental", "fp64", tolerance=1e-13)
_elementwise("exact exp", "fp32", tolerance=3e-7)


def _convert(source: str, target: str, n: int = 3000) -> None:
    def arguments(random: np.random.Generator) -> Arrays:
        x = _draw(random, source, n)
        if _dtype(source).kind not in "iu" and _dtype(target).kind not in "iu":
            x[:4] = np.array([0, -0.0, 1e-6, -1e-5]).astype(x.dtype)
        return [x, np.zeros(n, _dtype(target)), n]

    PROGRAMS.append(Program(
        f"convert {source} {target}", "convert", {"x": f"*{source}", "out": f"*{target}", "n": "i32"}, {"BLOCK": 1024},
        (math.ceil(n / 1024),), arguments, lambda given: given[0].astype(np.float32 if _dtype(source).kind not in "iuf"
        else given[0].dtype).astype(_dtype(target)), architectures=(90,) if "8e4" in source + target else (80, 90),
    ))  # fmt: skip


for _source, _target in (
    ("fp32", "fp16"), ("fp32", "bf16"), ("fp32", "fp8e5"), ("fp32", "fp8e4nv"), ("fp16", "fp32"), ("bf16", "fp32"),
    ("fp8e5", "fp16"), ("fp8e4nv", "fp16"), ("fp8e4nv", "fp32"), ("fp32", "i32"), ("fp32", "i8"), ("i32", "fp32"), ("i64", "fp32"),
    ("i8", "fp16"), ("i8", "bf16"), ("i16", "i64"), ("i64", "i8"), ("fp64", "fp32"), ("fp32", "fp64"), ("fp64", "i64"), ("u8", "fp32"), ("fp16", "fp64"),
    ("u32", "fp64"), ("i64", "fp64"),
):  # fmt: skip
    _convert(_source, _target)


# ---- along rows and columns ----------------------------------------------------------------------
def _softmax(type_: str, columns: int, warps: int, tolerance: float) -> None:
    def wanted(given: Arrays) -> Any:
        e = given[0].astype(np.float64)
        e = np.exp(e - e.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    PROGRAMS.append(Program(
        f"softmax {type_} {columns} {warps}", "softmax", {"x": f"*{type_}", "out": f"*{type_}", "columns": "i32"},
        {"BLOCK": 1 << (columns - 1).bit_length()}, (5,),
        lambda random: [_draw(random, type_, 5, columns), np.zeros((5, columns), _dtype(type_)), columns],
        wanted, tolerance, warps,
    ))  # fmt: skip


for _warps in (4, 8):
    _softmax("fp32", 1000, _warps, 2e-6)
    _softmax("fp16", 2048, _warps, 1e-3)


def _layer_norm(type_: str, columns: int, warps: int, tolerance: float) -> None:
    def wanted(given: Arrays) -> Any:
        x, w, b = (a.astype(np.float64) for a in given[:3])
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w + b

    names = ("x", "weight", "bias", "out")
    PROGRAMS.append(Program(
        f"layer norm {type_} {columns} {warps}", "layer_norm",
        {name: f"*{type_}" for name in names} | {"columns": "i32", "eps": "fp32"},
        {"BLOCK": 1 << (columns - 1).bit_length()}, (4,),
        lambda random: [_draw(random, type_, 4, columns), _draw(random, type_, columns), _draw(random, type_, columns),
                        np.zeros((4, columns), _dtype(type_)), columns, 1e-5],
        wanted, tolerance, warps,
    ))  # fmt: skip


for _warps in (4, 8):
    _layer_norm("fp32", 768, _warps, 1e-5)
    _layer_norm("bf16", 1500, _warps, 3e-2)


def _columns(rows: int, columns: int, warps: int) -> None:
    PROGRAMS.append(Program(
        f"sum of columns {warps}", "reduce_columns", {"x": "*fp32", "out": "*fp32", "rows": "i32", "columns": "i32"},
        {"KIND": "sum", "ROWS": 16, "COLUMNS": 64}, (math.ceil(columns / 64),),
        lambda random: [_draw(random, "fp32", rows, columns), np.zeros(columns, np.float32), rows, columns],
        lambda given: given[0].astype(np.float64).sum(0), 2e-5, warps,
    ))  # fmt: skip


_columns(100, 150, 4)
_columns(130, 90, 8)


def _rows(kernel: str, kind: str, type_: str, out: str, wanted: Callable, warps: int, tolerance: float = 0.0) -> None:
    shape = (8, 256)
    PROGRAMS.append(Program(
        f"{kernel} {kind} {type_} {warps}".replace("_", " "), kernel, {"x": f"*{type_}", "out": f"*{out}"},
        {"KIND": kind, "ROWS": 4, "COLUMNS": 256}, (2,),
        lambda random: [(1 + _draw(random, type_, *shape) / 100).astype(_dtype(type_)) if kind == "product"
                        else _draw(random, type_, *shape),
                        np.zeros(shape if kernel == "scan_rows" else shape[:1], _dtype(out))],
        lambda given: wanted(given[0]), tolerance, warps,
    ))  # fmt: skip


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) if x.dtype.kind not in "iu" else x


for _warps in (4, 8):
    _rows("scan_rows", "sum", "fp32", "fp32", lambda x: np.cumsum(_wide(x), 1), _warps, 3e-5)
    _rows("scan_rows", "sort", "fp32", "fp32", lambda x: np.sort(x, 1), _warps)
    _rows("reduce_rows", "argmax", "fp32", "i32", lambda x: x.argmax(1), _warps)
_rows("scan_rows", "reversed sum", "i32", "i32", lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1], 4)
_rows("scan_rows", "product", "fp32", "fp32", lambda x: np.cumprod(_wide(x), 1), 4, 3e-5)
_rows("scan_rows", "sort", "i32", "i32", lambda x: np.sort(x, 1), 4)
_rows("scan_rows", "sort", "i16", "i16", lambda x: np.sort(x, 1), 4)
_rows("reduce_rows", "xor", "i32", "i32", lambda x: np.bitwise_xor.reduce(x, 1), 4)
_rows("reduce_rows", "minimum", "fp16", "fp16", lambda x: x.min(1), 4)
_rows("reduce_rows", "sum", "i32", "i32", lambda x: x.sum(1), 4)
_rows("reduce_rows", "sum", "fp64", "fp64", lambda x: x.sum(1), 4, 1e-14)


def _transpose(type_: str, rows: int, columns: int) -> None:
    PROGRAMS.append(Program(
        f"transpose {type_}", "transpose", {"x": f"*{type_}", "out": f"*{type_}", "rows": "i32", "columns": "i32"},
        {"SIDE": 64}, (math.ceil(rows / 64), math.ceil(columns / 64)),
        lambda random: [_draw(random, type_, rows, columns), np.zeros((columns, rows), _dtype(type_)), rows, columns],
        lambda given: given[0].T,
    ))  # fmt: skip


for _type in ("fp32", "fp16", "i8"):
    _transpose(_type, 100, 72)

# ---- several threads, one place ------------------------------------------------------------------
PROGRAMS.append(Program(
    "histogram", "histogram", {"x": "*i32", "out": "*i32", "n": "i32"}, {"BINS": 64, "BLOCK": 1024}, (2,),
    lambda random: [random.integers(0, 64, 2048).astype(np.int32), np.zeros(64, np.int32), 2048],
    lambda given: np.bincount(given[0], minlength=64),
))  # fmt: skip


def _atomics(kind: str, type_: str, wanted: Callable, tolerance: float = 0.0) -> None:
    n = 1500

    def at_places(given: Arrays) -> Any:
        out = np.zeros(40, np.float64 if _dtype(type_).kind not in "iu" else np.int64)
        for place in range(40):
            out[place] = wanted(given[0][given[1] == place].astype(out.dtype))
        return out

    PROGRAMS.append(Program(
        f"atomic {kind} {type_}", "atomics", {"x": f"*{type_}", "place": "*i32", "out": f"*{type_}", "n": "i32"},
        {"KIND": kind, "BLOCK": 512}, (3,),
        lambda random: [_draw(random, type_, n), random.integers(0, 40, n).astype(np.int32), np.zeros(40, _dtype(type_)), n],
        at_places, tolerance, architectures=(90,) if type_ == "bf16" else (80, 90),
    ))  # fmt: skip


_atomics("add", "fp32", np.sum, 1e-4)
_atomics("add", "fp16", np.sum, 3e-2)
_atomics("add", "bf16", np.sum, 2e-1)
_atomics("add", "fp64", np.sum, 1e-13)
_atomics("add", "i32", np.sum)
_atomics("add", "i64", np.sum)
_atomics("max", "i32", lambda x: max(0, *x))
_atomics("max", "fp32", lambda x: max(0, *x))
_atomics("and", "i32", lambda x: 0)
PROGRAMS.append(Program(
    "locked sum", "locked_sum", {"x": "*fp32", "lock": "*i32", "out": "*fp32"}, {"BLOCK": 256}, (6,),
    lambda random: [_draw(random, "fp32", 6 * 256), np.zeros(1, np.int32), np.zeros(256, np.float32)],
    lambda given: given[0].astype(np.float64).reshape(6, 256).sum(0), 1e-5,
))  # fmt: skip

# ---- products ------------------------------------------------------------------------------------
_ROUNDING = {"fp16": 2e-3, "bf16": 1.6e-2, "fp32": 4e-3, "i8": 0.0, "fp8e5": 2e-3, "fp8e4nv": 2e-3, "fp64": 1e-12}


def _matmul(
    type_: str, out: str, block: tuple[int, int, int], kind: str = "", *, warps: int = 4, stages: int = 3,
    shape: tuple[int, int, int] = (128, 128, 128), tolerance: float | None = None,
    architectures: Sequence[int] = (80, 90),
) -> None:  # fmt: skip
    m, n, k = shape

    def arguments(random: np.random.Generator) -> Arrays:
        b = (n, k) if kind == "transposed" else (k, n)
        return [_draw(random, type_, m, k), _draw(random, type_, *b), np.zeros((m, n), _dtype(out)), m, n, k]

    def wanted(given: Arrays) -> Any:
        wide = np.int64 if type_ == "i8" else np.float64
        a, b = (x.astype(wide) for x in given[:2])
        return a @ (b.T if kind == "transposed" else b)

    bm, bn, bk = block
    PROGRAMS.append(Program(
        f"matmul {type_} {out} {kind} {bm}x{bn}x{bk} {warps} {stages}".replace("  ", " "), "matmul",
        {"a": f"*{type_}", "b": f"*{type_}", "c": f"*{out}", "M": "i32", "N": "i32", "K": "i32"},
        {"KIND": {"i8": f"integer {kind}".strip(), "fp64": "double"}.get(type_, kind), "BM": bm, "BN": bn, "BK": bk}, (m // bm, n // bn), arguments, wanted,
        _ROUNDING[type_] * math.sqrt(k) / 2 if tolerance is None else tolerance, warps, stages, architectures,
    ))  # fmt: skip


for _type in ("fp16", "bf16"):
    _matmul(_type, _type, (64, 64, 32))
    _matmul(_type, "fp32", (128, 64, 64), warps=8, stages=4)
    _matmul(_type, "fp32", (64, 128, 32), "transposed", stages=2)
_matmul("fp16", "fp16", (128, 128, 64), warps=8)
_matmul("fp32", "fp32", (64, 64, 32), tolerance=5e-2)
_matmul("fp32", "fp32", (64, 64, 32), "transposed", tolerance=5e-2)
_matmul("fp32", "fp32", (32, 32, 32), "ieee", tolerance=1e-4)
_matmul("fp32", "fp32", (64, 32, 32), "three", tolerance=1e-4)
_matmul("i8", "i32", (64, 64, 64))
_matmul("i8", "i32", (64, 64, 64), "transposed")
_matmul("fp64", "fp64", (32, 32, 16))
for _type in ("fp8e5", "fp8e4nv"):
    _matmul(_type, "fp32", (64, 64, 64), "transposed", architectures=(90,))
_matmul("fp8e5", "fp32", (64, 64, 64))
_matmul("fp16", "fp32", (16, 16, 32), shape=(32, 32, 64), stages=2, warps=1)
_matmul("fp16", "fp32", (16, 8, 32), "transposed", shape=(32, 16, 64), stages=2, warps=1)
PROGRAMS.append(Program(
    "split matmul", "split_matmul", {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"},
    {"PART": 64, "BM": 64, "BN": 64, "BK": 32}, (1, 1, 3),
    lambda random: [_draw(random, "fp16", 64, 192), _draw(random, "fp16", 192, 64), np.zeros((64, 64), np.float32), 64, 64, 192],
    lambda given: given[0].astype(np.float64) @ given[1].astype(np.float64), 1e-3,
))  # fmt: skip


def _descriptor_matmul(type_: str, block: tuple[int, int, int], warps: int, stages: int) -> None:
    m, n, k = 256, 128, 192
    bm, bn, bk = block
    PROGRAMS.append(Program(
        f"descriptor matmul {type_} {bm}x{bn}x{bk} {warps} {stages}", "descriptor_matmul",
        {"a": f"tensordesc<{type_}[{bm},{bk}]>", "b": f"tensordesc<{type_}[{bk},{bn}]>",
         "c": f"tensordesc<{type_}[{bm},{bn}]>", "K": "i32"},
        {"BM": bm, "BN": bn, "BK": bk}, (m // bm, n // bn),
        lambda random: [_draw(random, type_, m, k), _draw(random, type_, k, n), np.zeros((m, n), _dtype(type_)), k],
        lambda given: given[0].astype(np.float64) @ given[1].astype(np.float64), _ROUNDING[type_] * 8, warps, stages, (90,),
        {"a": (bm, bk), "b": (bk, bn), "c": (bm, bn)},
    ))  # fmt: skip


for _type in ("fp16", "bf16"):
    _descriptor_matmul(_type, (128, 128, 64), 4, 3)
    _descriptor_matmul(_type, (64, 64, 64), 4, 4)
    _descriptor_matmul(_type, (128, 64, 32), 8, 2)


def _attention(type_: str, causal: bool, warps: int) -> None:
    n, d, heads = 128, 64, 2

    def wanted(given: Arrays) -> Any:
        q, k, v = (a.astype(np.float64) for a in given[:3])
        s = q @ k.swapaxes(1, 2) / 8
        if causal:
            s = np.where(np.tri(n, dtype=bool), s, -np.inf)
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True) @ v

    PROGRAMS.append(Program(
        f"attention {type_} {'causal ' if causal else ''}{warps}", "attention",
        {name: f"*{type_}" for name in ("q", "k", "v", "out")} | {"n": "i32", "scale": "fp32"},
        {"CAUSAL": causal, "BM": 64, "BN": 64, "D": d}, (n // 64, heads),
        lambda random: [*(_draw(random, type_, heads, n, d) for _ in range(3)), np.zeros((heads, n, d), _dtype(type_)), n, 1 / 8],
        wanted, _ROUNDING[type_] * 3, warps,
    ))  # fmt: skip


_attention("fp16", False, 4)
_attention("fp16", True, 4)
_attention("bf16", True, 8)


def _fast_attention(type_: str, block: tuple[int, int], warps: int) -> None:
    like = next(p for p in PROGRAMS if p.name == f"attention {type_} 4")
    PROGRAMS.append(replace(
        like, name=f"fast attention {type_} {block[0]}x{block[1]} {warps}", kernel="fast_attention",
        constants={"BM": block[0], "BN": block[1], "D": 64}, grid=(128 // block[0], 2), warps=warps,
    ))  # fmt: skip


def _attention_gradient(type_: str, warps: int) -> None:
    n, d, heads, scale = 128, 64, 2, 1 / 8

    def arguments(random: np.random.Generator) -> Arrays:
        q, k, v, d_out = (_draw(random, type_, heads, n, d) for _ in range(4))
        _, scores, weights, total = _softmax_of(q, k, v)
        logs = (scores.max(-1) + np.log(np.exp(scores - scores.max(-1, keepdims=True)).sum(-1))).astype(np.float32)
        products = (total * d_out.astype(np.float64)).sum(-1).astype(np.float32)
        return [q, k, v, d_out, logs, products, np.zeros((3, heads, n, d), np.float32), n, scale]

    def _softmax_of(q: Any, k: Any, v: Any) -> Arrays:
        q, k, v = (a.astype(np.float64) for a in (q, k, v))
        scores = q @ k.swapaxes(1, 2) * scale
        e = np.exp(scores - scores.max(-1, keepdims=True))
        weights = e / e.sum(-1, keepdims=True)
        return [q, scores, weights, weights @ v]

    def wanted(given: Arrays) -> Any:
        q, k, v, d_out = (a.astype(np.float64) for a in given[:4])
        weights, total = _softmax_of(q, k, v)[2:]
        d_weights = d_out @ v.swapaxes(1, 2)
        d_scores = weights * (d_weights - (total * d_out).sum(-1, keepdims=True)) * scale
        return np.stack([d_scores @ k, d_scores.swapaxes(1, 2) @ q, weights.swapaxes(1, 2) @ d_out])

    PROGRAMS.append(Program(
        f"attention gradient {type_} {warps}", "attention_gradient",
        {name: f"*{type_}" for name in ("q", "k", "v", "d_out")}
        | {"weights": "*fp32", "products": "*fp32", "out": "*fp32", "n": "i32", "scale": "fp32"},
        {"BM": 64, "BN": 64, "D": d}, (n // 64, heads), arguments, wanted, _ROUNDING[type_] * 3, warps,
    ))  # fmt: skip


_attention_gradient("fp16", 4)
_attention_gradient("bf16", 8)
_fast_attention("fp16", (64, 64), 4)
_fast_attention("fp16", (128, 64), 8)
PROGRAMS.append(Program(
    "chain fp32", "chain", {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 1024}, (3,),
    lambda random: [*(_draw(random, "fp32", 2900) for _ in range(2)), np.zeros(2900, np.float32), 2900],
    lambda given: np.exp(-given[0].astype(np.float64) ** 2) * given[1] + given[0], 2e-6,
))  # fmt: skip
PROGRAMS.append(Program(
    "sum of rows", "sum_rows", {"x": "*fp32", "out": "*fp32", "columns": "i32"}, {"BLOCK": 1024}, (5,),
    lambda random: [_draw(random, "fp32", 5, 1000), np.zeros(5, np.float32), 1000],
    lambda given: given[0].astype(np.float64).sum(1), 3e-5, 1,
))  # fmt: skip
# As wide as tensor cores of sm_90 multiply at once, and f8 on sm_89, whose warps multiply it.
for _type, _depth in (("fp16", 64), ("bf16", 64), ("fp32", 32), ("fp8e4nv", 128), ("fp8e5", 128), ("i8", 128)):
    for _columns_ in (128, 256):
        _matmul(_type, "i32" if _type == "i8" else "fp32", (64, _columns_, _depth), "transposed", shape=(64, 256, 128),
                stages=2, architectures=(90,), tolerance=5e-2 if _type == "fp32" else None)  # fmt: skip
_matmul("fp8e4nv", "fp32", (64, 64, 64), architectures=(89,))
_matmul("fp8e4nv", "fp32", (64, 32, 64), "transposed", architectures=(89,))
