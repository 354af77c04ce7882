# RUN: %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.fft."""

from print_ir import print_ir

from lamina import lax


# CHECK-LABEL: TEST: forward
# CHECK: stablehlo.fft %arg0, type = FFT, length = [3, 4]
@print_ir("c64[2,3,4]")
def forward(x):
    return lax.fft(x, "FFT", (3, 4))


# CHECK-LABEL: TEST: to_real
# CHECK: stablehlo.fft %arg0, type = IRFFT, length = [8] {{.*}} -> tensor<8xf32>
@print_ir("c64[5]")
def to_real(x):
    return lax.fft(x, lax.FftType.IRFFT, (8,))
