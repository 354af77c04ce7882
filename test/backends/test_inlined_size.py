"""Programs whose calls, written out, would be billions of operations."""

import time

import numpy as np
import pytest

import lamina
from lamina.backends.inlined_size import check_inlined_size
from lamina.dialects.context import parse
from lamina.passes.framework.base import CompileError


def _bomb(depth, op="func.call @f{}(%x) : (tensor<f32>) -> tensor<f32>"):
    functions = [
        f"func.func {'public @main' if i == 0 else f'private @f{i}'}(%x: tensor<f32>) -> tensor<f32> {{\n"
        f"  %0 = {op.format(i + 1)}\n  %1 = {op.format(i + 1).replace('%x', '%0')}\n"
        "  return %1 : tensor<f32>\n}\n"
        for i in range(depth)
    ]
    last = (
        f"func.func private @f{depth}(%x: tensor<f32>) -> tensor<f32> {{\n"
        "  %0 = stablehlo.sine %x : tensor<f32>\n  return %0 : tensor<f32>\n}\n"
    )
    return "".join(functions) + last


_COMPOSITE = 'stablehlo.composite "a.b" %x {{decomposition = @f{}}} : (tensor<f32>) -> tensor<f32>'


@pytest.mark.parametrize("op", [None, _COMPOSITE])
def test_calls_of_calls_are_counted(op):
    text = _bomb(60, op) if op else _bomb(60)
    begin = time.process_time()
    with pytest.raises(CompileError, match="more than 1000000 operations") as caught:
        lamina.compile_stablehlo(text)
    assert time.process_time() - begin < 5
    assert "raise the setting program_operations" in str(caught.value)


def test_the_limit_is_a_setting():
    check_inlined_size(parse(_bomb(6)), 1000)
    with pytest.raises(CompileError, match="more than 100 operations"):
        check_inlined_size(parse(_bomb(6)), 100)
    with lamina.config.program_operations(100), pytest.raises(CompileError, match="more than 100"):
        lamina.compile_stablehlo(_bomb(6))


def test_many_functions_in_a_row_and_calls_that_lead_back():
    chain = "".join(
        f"func.func private @f{i}(%x: tensor<f32>) -> tensor<f32> {{\n"
        f"  %0 = func.call @f{(i + 1) % 3000}(%x) : (tensor<f32>) -> tensor<f32>\n"
        "  return %0 : tensor<f32>\n}\n"
        for i in range(3000)
    )
    check_inlined_size(parse(chain), 10_000)


def test_nested_jits_are_counted_too():
    f = lamina.jit(lamina.numpy.sin)
    for _ in range(40):
        f = lamina.jit(lambda x, g=f: g(g(x) * 1.5))
    with pytest.raises(CompileError, match="more than 1000000 operations"):
        f(np.ones(4, np.float32))
