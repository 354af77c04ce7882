"""What compilations leave behind: LLVM and MLIR are called through wheels that do not free everything."""

import ctypes
import gc

import pytest

from lamina.backends.compile import compile_own_module
from lamina.dialects.context import parse
from lamina.dialects.vendors import translate_to_llvm_ir


class _Mallinfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                     "uordblks", "fordblks", "keepcost")
    )  # fmt: skip


def _allocated() -> int:
    """Bytes that are allocated from glibc."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        pytest.skip("this C library has no mallinfo2")
    mallinfo.restype = _Mallinfo
    gc.collect()
    found = mallinfo()
    return found.uordblks + found.hblkhd


def _compile(number: int) -> None:
    module = parse(f"""
func.func public @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {{
  %c = stablehlo.constant dense<{number}.25> : tensor<8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sine = stablehlo.sine %x : tensor<8xf32>
  %product = stablehlo.multiply %sine, %c : tensor<8xf32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %product, %sum : tensor<8xf32>, tensor<f32>
}}""")
    compile_own_module(module, name=f"p{number}", anew=True)


def test_a_compilation_leaves_little():
    for number in range(10):
        _compile(number)
    before = _allocated()
    for number in range(10, 50):
        _compile(number)
    assert (_allocated() - before) / 40 < 12_000  # uniqued attributes, and what LLVM's instrumentation keeps


def test_what_has_no_translation_is_an_error(capfd):
    module = parse("func.func @f(%a: i32) -> i32 { return %a : i32 }")
    with pytest.raises(RuntimeError, match="can't be translated"):
        translate_to_llvm_ir(module.operation)
    assert "func.func" in capfd.readouterr().err
