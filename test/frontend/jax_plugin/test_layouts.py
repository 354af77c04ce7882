"""Arrays whose dimensions lie in memory in another order: as arguments and results, on the host, by DLPack."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.layout import Format, Layout
from jax.sharding import SingleDeviceSharding
from jaxlib import xla_client

from lamina.jax_plugin.compiler import PluginError, compile_program, deserialize_program

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ORDERS = [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)]
OPTIONS = xla_client.CompileOptions().SerializeAsString()


def _order(array):
    return array.format.layout.major_to_minor


@pytest.mark.parametrize("order", ORDERS)
def test_arrays_of_a_layout_are_what_they_were(lamina_device, order):
    x = jax.device_put(X, Format(Layout(order), SingleDeviceSharding(lamina_device)))
    assert _order(x) == order
    np.testing.assert_array_equal(np.asarray(x), X)
    by_dlpack = np.from_dlpack(x)
    np.testing.assert_array_equal(by_dlpack, X)
    assert tuple(np.argsort([-stride for stride in by_dlpack.strides])) == order
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(x))), X)
    np.testing.assert_array_equal(np.asarray(x[0, :, 1]), X[0, :, 1])
    np.testing.assert_array_equal(np.asarray(jax.jit(jnp.sin)(x)), np.asarray(jax.jit(jnp.sin)(X)))


@pytest.mark.parametrize("order", ORDERS)
def test_programs_take_and_give_layouts(lamina_device, order):
    given = Format(Layout(order), SingleDeviceSharding(lamina_device))
    double = jax.jit(lambda x: x * 2, in_shardings=given, out_shardings=given, donate_argnums=0)
    compiled = double.lower(jax.ShapeDtypeStruct(X.shape, X.dtype)).compile()
    assert compiled.output_formats.layout.major_to_minor == order
    assert compiled.input_formats[0][0].layout.major_to_minor == order
    x = jax.device_put(X, given)
    y = double(x)
    assert x.is_deleted() and _order(y) == order
    np.testing.assert_array_equal(np.asarray(y), X * 2)


def test_an_open_layout_is_one_in_which_nothing_moves(lamina_device):
    x = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=SingleDeviceSharding(lamina_device))
    turn = jax.jit(
        lambda x: (x.transpose(2, 0, 1), x + 1), in_shardings=Format(Layout.AUTO), out_shardings=Format(Layout.AUTO)
    )
    compiled = turn.lower(x).compile()
    assert [one.layout.major_to_minor for one in compiled.output_formats] == [(1, 2, 0), (0, 1, 2)]
    turned, more = compiled(jax.device_put(X, lamina_device))
    np.testing.assert_array_equal(np.asarray(turned), X.transpose(2, 0, 1))
    np.testing.assert_array_equal(np.asarray(more), X + 1)


_PROGRAM = b"""module @turned {
  func.func public @main(%x: tensor<2x3xf32> {mhlo.layout_mode = "LAYOUT"})
      -> (tensor<3x2xf32> {mhlo.layout_mode = "auto"}) {
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %0 : tensor<3x2xf32>
  }
}"""


def test_a_serialised_program_knows_its_layouts():
    program = compile_program(_PROGRAM.replace(b"LAYOUT", b"{1,0}"), "mlir", OPTIONS)
    again = deserialize_program(program.serialize(), OPTIONS)
    for found in (program, again):
        assert [(one.shape, one.layout) for one in (*found.inputs, *found.outputs)] == [((2, 3), ()), ((3, 2), (1, 0))]
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(np.asarray(found.executable([x])[0]), x)
    assert "stablehlo.transpose" not in program.text("optimized")


@pytest.mark.parametrize("layout", ["{0,0}", "{1}", "{1,0:T(2,2)}", "rows"])
def test_other_layouts_are_refused(layout):
    with pytest.raises(PluginError, match="orders of the dimensions") as raised:
        compile_program(_PROGRAM.replace(b"LAYOUT", layout.encode()), "mlir", OPTIONS)
    assert raised.value.code == "UNIMPLEMENTED"
