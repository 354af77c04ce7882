// RUN: %lamina-opt %s --load %S/Inputs/swap_operands.py --swap-operands | FileCheck %s
// RUN: %lamina-opt %s --load %S/Inputs/swap_operands.py --swap-operands=refuse --verify-diagnostics
// RUN: not %lamina-opt %s --load %S/Inputs/swap_operands.py --swap-operands=refuse 2>&1 | FileCheck %s --check-prefix=REFUSE
// RUN: not %lamina-opt %s --load %S/Inputs/swap_operands.py --cse --canonicalize --swap-operands=crash 2>&1 | FileCheck %s --check-prefix=CRASH
// RUN: not %lamina-opt %s --load %S/Inputs/swap_operands.py --swap-operands=spoil 2>&1 | FileCheck %s --check-prefix=SPOIL

// CHECK: stablehlo.subtract %arg1, %arg0

// A refusal points at the op in the input.
// REFUSE: lamina-opt: [subtract] won't swap
// REFUSE-NEXT: at {{.*}}lamina_opt_load.mlir:{{[0-9]+}}:8
// REFUSE-NEXT: %0 = stablehlo.subtract %x, %y : tensor<4xf32>
// REFUSE-NEXT: ^
// REFUSE-NEXT: hint: say please

// A failure keeps the program and says how to see it again.
// CRASH: lamina-opt: pass swap-operands{crash=true} failed: RuntimeError: swapping broke
// CRASH-NEXT: reproduce: lamina-opt {{.*}}before_swap-operands_crash_true.mlir --load {{/.*}}/swap_operands.py --pass-pipeline='builtin.module(swap-operands{crash=true})'

// So does a pass that leaves an invalid module.
// SPOIL: lamina-opt: pass swap-operands{spoil=true} failed: operand #0 does not dominate
// SPOIL: reproduce:

func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{[subtract] won't swap hint: say please}}
  %0 = stablehlo.subtract %x, %y : tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
