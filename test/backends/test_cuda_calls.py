"""Quotients and roots that `gpu-avoid-calls` writes have IEEE's bits: its code, run by this processor.

What GPUs guess by one instruction is here guessed worse, by up to 2^-14, and differently for each number.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.kernel_runner import link
from support.strategies.effort import examples

from lamina.backends.llvm_codegen import CodegenOptions, TargetMachine, emit
from lamina.backends.lowering import run_pipeline
from lamina.backends.target import Target
from lamina.dialects.context import context, parse
from lamina.dialects.vendors import ir, translate_to_llvm_ir

_AT_ONCE = 1 << 16
_ROUNDS = examples(20)
_WORST = 1 << 6  # steps of 2^-20, of which the high word of an f64 has its fraction
_OPS = {"quotient": "arith.divf %x, %y", "root": "math.sqrt %x"}
_TEXT = """
func.func private @warpgroups() { llvm.inline_asm "wgmma.fence.sync.aligned;", "" : () -> () return }
func.func @%(name)s(%%a: memref<%(n)dxf32>, %%b: memref<%(n)dxf32>, %%off: memref<%(n)dxi64>,
                    %%r: memref<%(n)dxf32>) {
  %%c0 = arith.constant 0 : index
  %%c1 = arith.constant 1 : index
  %%n = arith.constant %(n)d : index
  scf.for %%i = %%c0 to %%n step %%c1 {
    %%x = memref.load %%a[%%i] : memref<%(n)dxf32>
    %%y = memref.load %%b[%%i] : memref<%(n)dxf32>
    %%by = memref.load %%off[%%i] : memref<%(n)dxi64>
    %%z = func.call @of_one(%%x, %%y, %%by) : (f32, f32, i64) -> f32
    memref.store %%z, %%r[%%i] : memref<%(n)dxf32>
  }
  return
}
func.func private @of_one(%%x: f32, %%y: f32, %%by: i64) -> f32 {
  %%z = %(op)s : f32
  return %%z : f32
}
func.func private @rcp(%%x: f64, %%by: i64) -> f64 {
  %%one = arith.constant 1.0 : f64
  %%r = arith.divf %%one, %%x : f64
  %%moved = func.call @moved(%%r, %%by) : (f64, i64) -> f64
  return %%moved : f64
}
func.func private @rsqrt(%%x: f64, %%by: i64) -> f64 {
  %%root = math.sqrt %%x : f64
  %%moved = func.call @rcp(%%root, %%by) : (f64, i64) -> f64
  return %%moved : f64
}
func.func private @moved(%%x: f64, %%by: i64) -> f64 {
  %%high = arith.constant -4294967296 : i64
  %%32 = arith.constant 32 : i64
  %%zero = arith.constant 0.0 : f64
  %%bits = arith.bitcast %%x : f64 to i64
  %%cut = arith.andi %%bits, %%high : i64
  %%step = arith.shli %%by, %%32 : i64
  %%sum = arith.addi %%cut, %%step : i64
  %%moved = arith.bitcast %%sum : i64 to f64
  %%nothing = arith.mulf %%x, %%zero : f64
  %%finite = arith.cmpf oeq, %%nothing, %%zero : f64
  %%nonzero = arith.cmpf une, %%x, %%zero : f64
  %%both = arith.andi %%finite, %%nonzero : i1
  %%r = arith.select %%both, %%moved, %%x : f64
  return %%r : f64
}
"""


@functools.cache
def _compiled(name: str) -> Callable[..., np.ndarray]:
    text = _TEXT % {"name": name, "op": _OPS[name], "n": _AT_ONCE}
    divisions, guesses = text.split("func.func private @rcp")
    with context(), ir.Location.unknown():
        module = parse(divisions)
        run_pipeline(("gpu-avoid-calls",), module)
        written = str(module)
        assert not re.search(r"divf|math.sqrt", written)
        # What the instructions would do, by a function that also knows by how much to be wrong.
        written, count = re.subn(
            r'llvm\.call_intrinsic "llvm\.nvvm\.(rcp|rsqrt)\.approx\.ftz\.d"\((%\w+)\) : \(f64\) -> f64',
            r"func.call @\1(\2, %arg2) : (f64, i64) -> f64", written)  # fmt: skip
        assert count == 1
        written = re.sub(r"llvm\.inline_asm .*", "", written).rstrip().removesuffix("}")
        module = parse(f"{written}\nfunc.func private @rcp{guesses}\n}}")
        run_pipeline((
            "convert-scf-to-cf", "convert-math-to-llvm", "convert-arith-to-llvm", "convert-index-to-llvm",
            "finalize-memref-to-llvm", "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true}",
            "convert-cf-to-llvm", "reconcile-unrealized-casts", "llvm-portable-float-constants",
        ), module)  # fmt: skip
        target = Target.host()
        machine = TargetMachine(target.triple, target.cpu, target.features)
        code = emit(translate_to_llvm_ir(module.operation), machine, CodegenOptions()).object
    library = link(code, name)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(library[name])

    def call(*arrays: np.ndarray) -> np.ndarray:
        result = np.empty(_AT_ONCE, np.float32)
        function(*(array.ctypes.data for array in (*arrays, result)))
        return result

    call.library = library  # type: ignore[attr-defined]
    return call


def _check(name: str, x: Any, y: Any, rng: np.random.Generator) -> None:
    """The bits of as many numbers as there are, each of a NaN being as good as another."""
    x, y = np.broadcast_arrays(np.asarray(x, np.float32), np.asarray(y, np.float32))
    for start in range(0, x.size, _AT_ONCE):
        a, b = (np.resize(part.ravel()[start : start + _AT_ONCE], _AT_ONCE) for part in (x, y))
        off = rng.integers(-_WORST + 2, _WORST - 2, _AT_ONCE)
        found = _compiled(name)(a, b, off)
        with np.errstate(all="ignore"):
            wanted = a / b if name == "quotient" else np.sqrt(a)
        same = (found.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(found) & np.isnan(wanted))
        where = np.flatnonzero(~same)[:3]
        assert same.all(), [(a[i], b[i], off[i], found[i], wanted[i]) for i in where]


def _random(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 1 << 32, _AT_ONCE, dtype=np.uint32).view(np.float32)


_info = np.finfo(np.float32)
_ENDS = np.array([0, 1, 2, 3, 1.5, 1 / 3, _info.eps, 1 + _info.eps, 2 - _info.eps, 1 - _info.epsneg, _info.max,
                  np.sqrt(_info.max), _info.tiny, _info.smallest_subnormal, _info.tiny - _info.smallest_subnormal,
                  3 * _info.smallest_subnormal, 2.0**127, 2.0**-75, np.inf, np.nan], np.float32)  # fmt: skip
_ENDS = np.concatenate([_ENDS, -_ENDS])


@pytest.mark.parametrize("name", _OPS)
def test_any_bits(name: str) -> None:
    rng = np.random.default_rng(1)
    _check(name, *(part.ravel() for part in np.meshgrid(_ENDS, _ENDS)), rng)
    for _ in range(_ROUNDS):
        x, y = _random(rng), _random(rng)
        _check(name, x, y, rng)
        _check(name, x, rng.choice(_ENDS, _AT_ONCE), rng)
        _check(name, rng.choice(_ENDS, _AT_ONCE), y, rng)


def test_quotients_halfway_between_subnormals() -> None:
    """And next to there: (k + 1/2) least subnormals, times short numbers."""
    rng = np.random.default_rng(2)
    for _ in range(_ROUNDS):
        bits = rng.integers(1, 24, _AT_ONCE)
        middle = 2 * rng.integers(0, 1 << bits - 1) + 1
        by = rng.integers(1, 1 << 24 - bits) * np.exp2(rng.integers(0, 60, _AT_ONCE))
        x = (middle * by * 2.0**-150).astype(np.float32)
        y = by.astype(np.float32)
        assert (x.astype(np.float64) / y == middle * 2.0**-150)[x > _info.tiny].all()
        for toward in (-np.inf, np.inf):
            _check("quotient", np.nextafter(x, np.float32(toward)), y, rng)
            _check("quotient", -x, np.nextafter(y, np.float32(toward)), rng)
        _check("quotient", x, y, rng)
        _check("quotient", x, -y, rng)


def test_quotients_as_near_to_halfway_as_any() -> None:
    """x 2^25 = m y +- 1 for an odd m of 25 bits: x / y is nearest to what lies halfway between two f32."""
    rng = np.random.default_rng(3)
    y = rng.integers(1 << 22, 1 << 23, _ROUNDS * 1000) * 2 + 1
    over = np.array([pow(1 << 25, -1, int(one)) for one in y])
    for x in (over, y - over):
        scale = np.exp2(rng.integers(-149, 100, (2, len(y))))
        for by in scale:
            _check("quotient", x, y, rng)
            _check("quotient", x * by, y, rng)
            _check("quotient", x, y * by, rng)


@pytest.mark.parametrize("near", [0, 1])
def test_roots_near_halfway(near: int) -> None:
    """Squares of odd numbers of 25 bits, rounded to f32 either way."""
    rng = np.random.default_rng(4)
    for _ in range(_ROUNDS):
        middle = rng.integers(1 << 23, 1 << 24, _AT_ONCE) * 2 + 1
        x = (middle * middle >> 26) + near
        _check("root", x * np.exp2(2 * rng.integers(-74, 30, _AT_ONCE)), 0, rng)
