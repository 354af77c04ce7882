"""What compilations leave behind: LLVM and MLIR are called through wheels that do not free everything."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

from lamina.backends.compile import Compilation, compile_own_module
from lamina.dialects import context as contexts
from lamina.dialects.context import context_for_program, parse
from lamina.dialects.vendors import ir, translate_to_llvm_ir
from lamina.runtime import executable


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


def _compile(number: int) -> Compilation:
    context_for_program()
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
    return compile_own_module(module, name=f"p{number}", anew=True)


def test_a_compilation_leaves_little(monkeypatch):
    monkeypatch.setattr(contexts, "_MOST_KEPT_BYTES", 10 * contexts._PROGRAM_BYTES)
    for number in range(11):
        _compile(number)
    before = _allocated()
    for number in range(11, 55):
        _compile(number)
    assert (_allocated() - before) / 44 < 6_000  # of each kernel, what LLVM's instrumentation keeps


def test_a_context_goes_with_its_programs(monkeypatch):
    monkeypatch.setattr(contexts, "_MOST_KEPT_BYTES", 3 * contexts._PROGRAM_BYTES)
    first = weakref.ref(context_for_program())
    for number in range(4):
        _compile(number)
    gc.collect()
    assert first() is None


def test_a_module_outlives_its_threads_context(monkeypatch):
    module = parse("func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }")
    monkeypatch.setattr(contexts, "_MOST_KEPT_BYTES", 0)
    for number in range(2):
        _compile(number)
    assert module.context != contexts.context()
    run = executable.load(compile_own_module(module, name="outlived", anew=True).artifact)
    assert np.asarray(run([np.float32(3)])[0]) == 3
    with context_for_program() as context:
        assert ir.Context.current == context


def test_loading_leaves_nothing(monkeypatch):
    monkeypatch.setattr(executable, "_MOST_LOADED_BYTES", 0)
    monkeypatch.setattr(executable, "_MOST_LINKED", 4)
    artifact = _compile(1).artifact
    held = executable.load(artifact)
    for _ in range(8):
        executable.load(artifact)
    before = _allocated()
    for _ in range(40):
        executable.load(artifact)
    assert (_allocated() - before) / 40 < 1_000
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_allclose(np.asarray(held([x])[0]), np.sin(x) * 1.25, rtol=1e-6)


def test_what_has_no_translation_is_an_error(capfd):
    module = parse("func.func @f(%a: i32) -> i32 { return %a : i32 }")
    with pytest.raises(RuntimeError, match="can't be translated"):
        translate_to_llvm_ir(module.operation)
    assert "func.func" in capfd.readouterr().err
