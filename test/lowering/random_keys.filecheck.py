# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.random_keys: in programs a key is a 64-bit integer, or a complex
number of 128 bits."""

from print_ir import print_ir

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.lax.random_keys import random_unwrap, random_wrap


# CHECK-LABEL: TEST: wrap
# CHECK: stablehlo.bitcast_convert %arg0 : (tensor<3x2xui32>) -> tensor<3xui64>
@print_ir("u32[3,2]")
def wrap(words):
    return random_wrap(words)


# CHECK-LABEL: TEST: wrap_four
# CHECK: stablehlo.bitcast_convert {{.*}} : (tensor<3x2x2xui32>) -> tensor<3x2xf64>
# CHECK: stablehlo.complex {{.*}} : tensor<3xcomplex<f64>>
@print_ir("u32[3,4]")
def wrap_four(words):
    return random_wrap(words, dtypes.KEYS["rbg"])


# CHECK-LABEL: TEST: unwrap
# CHECK: stablehlo.bitcast_convert %arg0 : (tensor<3xui64>) -> tensor<3x2xui32>
@print_ir("key<fry>[3]")
def unwrap(keys):
    return random_unwrap(keys)


# What moves elements moves keys.
# CHECK-LABEL: TEST: select
# CHECK: stablehlo.compare EQ, {{.*}} : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xi1>
# CHECK: stablehlo.select {{.*}} : tensor<3xi1>, tensor<3xui64>
@print_ir("key<fry>[3]", "key<fry>[3]")
def select(x, y):
    return jnp.where(x == lax.rev(y, (0,)), x, y)
