"""Programs from strangers, through all that users call: an error each, and the process goes on."""

import json

import numpy as np
import pytest

import lamina
from lamina.dialects.context import ParseError, parse
from lamina.dialects.serialize import to_bytecode

X = np.arange(4, dtype=np.float32)
TEXT = """module @f {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}"""


def test_bytecode_is_compiled():
    run = lamina.compile_stablehlo(to_bytecode(parse(TEXT)))
    np.testing.assert_array_equal(run(X)[0], X + X)
    for isolate in (True, False):
        run = lamina.compile_stablehlo(TEXT, isolate=isolate)
        np.testing.assert_array_equal(run(X)[0], X + X)


def test_the_limits_are_settings():
    with lamina.config.program_depth(2), pytest.raises(ParseError, match="nested more than 2 deep"):
        lamina.compile_stablehlo(TEXT)
    with lamina.config.program_bytes(10), pytest.raises(ParseError, match="at most 10 are read"):
        lamina.compile_stablehlo(TEXT)
    long = "module {\n" + "func.func private @f()\n" * 300_000 + "}"
    with lamina.config.reader_seconds(0.01), pytest.raises(ParseError, match="longer than 0.01 s"):
        lamina.compile_stablehlo(long, isolate=True)
    for wrong in (0, -1, "many", True):
        with pytest.raises(ValueError, match="expected a positive number"):
            lamina.config.update("program_depth", wrong)


@pytest.mark.parametrize(
    "text",
    [TEXT.replace("@f", '@"\\FF"'), TEXT.replace("@main", '@"\\FF"'),
     TEXT.replace("-> tensor<4xf32>", '-> (tensor<4xf32> {jax.result_info = "\\FF"})')],
)  # fmt: skip
@pytest.mark.parametrize("form", [str, lambda text: to_bytecode(parse(text))])
def test_names_that_are_not_utf8(text, form):
    with pytest.raises(ParseError, match="not UTF-8"):
        lamina.compile_stablehlo(form(text))


# What jit hands over: the same sizes, where the frontend sees them


@pytest.mark.parametrize(
    "call",
    [
        lambda: lamina.lax.pad(X, np.float32(0), [(2**63 - 1, 1 - 2**63, 0)]),
        lambda: lamina.lax.pad(X, np.float32(0), [(0, 0, 2**62)]),
        lambda: lamina.lax.reduce_window(X, -np.inf, lamina.lax.max, (2**62,), (1,), [(2**62, 2**62)]),
        lambda: lamina.lax.reduce_window(
            X, -np.inf, lamina.lax.max, (2,), (1,), [(2**62, -(2**62))], window_dilation=(2**62,)
        ),
        lambda: lamina.lax.conv_general_dilated(
            X[None, None], X[None, None, :3], (1,), [(2**62, 2**62)], rhs_dilation=(2**62 - 4,)
        ),
    ],
)
def test_reaches_beyond_64_bits(call):
    with pytest.raises((ValueError, MemoryError), match="64 bits|memory"):
        call()


def test_a_stride_beyond_everything():
    found = lamina.lax.slice(X, (1,), (4,), (2**63 - 1,))
    np.testing.assert_array_equal(found, X[1:2])


# Exported functions


def _exported():
    return bytes(lamina.export.export(lamina.jit(lambda x: x * 2))(X).serialize())


def _changed(blob, **changes):
    magic, header, rest = blob.split(b"\n", 2)
    header = json.dumps({**json.loads(header), **changes}).encode()
    return b"\n".join((magic, header, rest))


@pytest.mark.parametrize(
    "changes",
    [{"fun_name": 3}, {"in_tree": "?"}, {"in_tree": ["list"]}, {"in_tree": ["set", []]},
     {"in_avals": [[[-1], "float32"]]}, {"in_avals": [[["4"], "float32"]]}, {"in_avals": 5},
     {"in_avals": []}, {"out_avals": [[[4], "no such type"]]}, {"platforms": None},
     {"module_bytes": -1}, {"module_bytes": "1"}, {"vjp_bytes": 7}, {"out_tree": [["list", []]] * 3}],
)  # fmt: skip
def test_changed_descriptions_are_refused(changes):
    with pytest.raises(ValueError):
        lamina.export.deserialize(_changed(_exported(), **changes))


def test_a_description_of_another_function_is_refused():
    """What it says of its arguments is not what its program takes."""
    read = lamina.export.deserialize(_changed(_exported(), in_avals=[[[5], "float32"]]))
    with pytest.raises(ValueError, match="which is not what was stored with it"):
        lamina.jit(read.call)(np.ones(5, np.float32))
    read = lamina.export.deserialize(_changed(_exported(), out_avals=[[[400], "float32"]]))
    with pytest.raises(ValueError, match="which is not what was stored with it"):
        read.call(X)


def test_exported_functions_are_read_elsewhere():
    read = lamina.export.deserialize(_exported())
    np.testing.assert_array_equal(read.call(X), X * 2)
    assert "stablehlo.multiply" in read.mlir_module()
    blob = _exported()
    damaged = bytearray(blob)
    damaged[blob.index(b"ML\xefR") + 40 :] = bytes(len(blob) - blob.index(b"ML\xefR") - 40)
    with pytest.raises(ParseError, match="<exported>"):
        lamina.export.deserialize(damaged).call(X)
