// RUN: %lamina-opt %s --pass-pipeline=stablehlo-expand-fft | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-expand-fft{largest-prime=383 real=true}' | FileCheck %s --check-prefix=ABLE

// Complex transforms of composite lengths are what backends generate code for.
// CHECK-LABEL: func.func @composite
// CHECK-NEXT: stablehlo.fft %arg0, type = FFT, length = [12, 1000]
// CHECK-NEXT: return
func.func @composite(%x: tensor<12x1000xcomplex<f32>>) -> tensor<12x1000xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [12, 1000] : (tensor<12x1000xcomplex<f32>>) -> tensor<12x1000xcomplex<f32>>
  return %0 : tensor<12x1000xcomplex<f32>>
}

// A large prime factor: a convolution of a composite length.
// CHECK-LABEL: func.func @prime
// CHECK: stablehlo.pad
// CHECK: stablehlo.fft {{.*}}, type = FFT, length = [224]
// CHECK: stablehlo.multiply
// CHECK: stablehlo.fft {{.*}}, type = IFFT, length = [224]
// CHECK: stablehlo.slice
// ABLE-LABEL: func.func @prime
// ABLE-NEXT: stablehlo.fft %arg0, type = FFT, length = [101]
func.func @prime(%x: tensor<8x101xcomplex<f32>>) -> tensor<8x101xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [101] : (tensor<8x101xcomplex<f32>>) -> tensor<8x101xcomplex<f32>>
  return %0 : tensor<8x101xcomplex<f32>>
}

// Of few rows, which leave most lanes idle, a convolution for all backends.
// ABLE-LABEL: func.func @few_rows
// ABLE: stablehlo.fft {{.*}}, type = FFT, length = [224]
// ABLE: stablehlo.fft {{.*}}, type = IFFT, length = [224]
func.func @few_rows(%x: tensor<3x101xcomplex<f32>>) -> tensor<3x101xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [101] : (tensor<3x101xcomplex<f32>>) -> tensor<3x101xcomplex<f32>>
  return %0 : tensor<3x101xcomplex<f32>>
}

// An even number of real numbers: half as many complex ones.
// CHECK-LABEL: func.func @real
// CHECK: stablehlo.slice %arg0 [0:8:2]
// CHECK: stablehlo.slice %arg0 [1:8:2]
// CHECK: stablehlo.fft {{.*}}, type = FFT, length = [4]
// CHECK: -> tensor<5xcomplex<f64>>
func.func @real(%x: tensor<8xf64>) -> tensor<5xcomplex<f64>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<8xf64>) -> tensor<5xcomplex<f64>>
  return %0 : tensor<5xcomplex<f64>>
}

// Several rows of real numbers: what a backend does.
// CHECK-LABEL: func.func @rows
// CHECK: stablehlo.fft {{.*}}, type = FFT, length = [4]
// ABLE-LABEL: func.func @rows
// ABLE-NEXT: stablehlo.fft %arg0, type = RFFT, length = [8]
func.func @rows(%x: tensor<9x8xf64>) -> tensor<9x5xcomplex<f64>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<9x8xf64>) -> tensor<9x5xcomplex<f64>>
  return %0 : tensor<9x5xcomplex<f64>>
}

// ABLE-LABEL: func.func @back
// ABLE: stablehlo.fft {{.*}}, type = IRFFT, length = [9, 8]
func.func @back(%x: tensor<9x5xcomplex<f64>>) -> tensor<9x8xf64> {
  %0 = stablehlo.fft %x, type = IRFFT, length = [9, 8] : (tensor<9x5xcomplex<f64>>) -> tensor<9x8xf64>
  return %0 : tensor<9x8xf64>
}

// CHECK-LABEL: func.func @empty
// CHECK-NOT: stablehlo.fft
func.func @empty(%x: tensor<0x8xcomplex<f32>>) -> tensor<0x8xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [8] : (tensor<0x8xcomplex<f32>>) -> tensor<0x8xcomplex<f32>>
  return %0 : tensor<0x8xcomplex<f32>>
}
