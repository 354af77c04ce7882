# RUN: %PYTHON %s | FileCheck %s
"""Lowering of callbacks to custom calls, numbered in the order in which they stand."""

from print_ir import print_ir

import lamina
import lamina.numpy as jnp
from lamina.experimental import io_callback


# CHECK-LABEL: TEST: callbacks
# CHECK: custom_call @lamina.python_callback(%arg0) {{.*}}index = 0{{.*}}has_side_effect = true{{.*}} -> ()
# CHECK: custom_call @lamina.python_callback(%arg0) {{.*}}index = 1{{.*}} -> tensor<3xf32>
# CHECK: custom_call @lamina.python_callback() {{.*}}index = 2{{.*}}has_side_effect = true{{.*}} -> tensor<3xf32>
@print_ir("f32[3]")
def callbacks(x):
    like = lamina.ShapeDtypeStruct((3,), jnp.float32)
    lamina.debug.print("{}", x)
    y = lamina.pure_callback(lambda a: a, like, x)
    return y + io_callback(lambda: 0, like)
