// Each wrong call says what is wrong in one line, and exits with 1.
// RUN: not %lamina-opt %s --stablehlo-csee 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: lamina-opt: no pass named 'stablehlo-csee', {{.*}} Did you mean stablehlo-cse
// RUN: not %lamina-opt %s --stablehlo-fuse=max-op=3 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: lamina-opt: stablehlo-fuse has no option 'max-op'; it takes max-ops=64 (an integer)
// RUN: not %lamina-opt %s --stablehlo-fuse=max-ops=many 2>&1 | FileCheck %s --check-prefix=VALUE
// VALUE: lamina-opt: stablehlo-fuse{max-ops=many}: expected an integer, got 'many'
// RUN: not %lamina-opt %s --pass-pipeline='canonicalize(' 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: lamina-opt: pipeline 'canonicalize(' ends inside brackets
// RUN: not %lamina-opt %s --pass-pipeline='func.func(stablehlo-cse)' 2>&1 | FileCheck %s --check-prefix=NESTED
// NESTED: lamina-opt: stablehlo-cse runs on the whole module
// RUN: not %lamina-opt %s --pass-pipeline='cse' --canonicalize 2>&1 | FileCheck %s --check-prefix=MIXED
// MIXED: lamina-opt: --pass-pipeline can't be mixed with --canonicalize
// RUN: not %lamina-opt %t.missing 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: lamina-opt: {{.*}}No such file
// RUN: echo "func.func @f() { stablehlo.fly }" | not %lamina-opt - 2>&1 | FileCheck %s --check-prefix=PARSE
// PARSE: lamina-opt: <stdin>:1:18: {{.*}}stablehlo.fly
// PARSE-NEXT: func.func @f() { stablehlo.fly }
// PARSE-NEXT: ^
// RUN: not %lamina-opt %s --load %t.missing.py 2>&1 | FileCheck %s --check-prefix=LOAD
// LOAD: lamina-opt: {{.*}}No such file
// RUN: printf '\377\376' | not %lamina-opt - 2>&1 | FileCheck %s --check-prefix=BINARY
// BINARY: lamina-opt: <stdin>: neither MLIR text
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
