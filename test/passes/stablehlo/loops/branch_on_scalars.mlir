// RUN: %lamina-opt %s --stablehlo-branch-on-scalars | FileCheck %s

// Multiples of a number are crossed out only if it is a prime itself; the quotient, which the step returns,
// is computed always.
// CHECK-LABEL: func.func public @sieve
// CHECK: do {
// CHECK-NOT: remainder
// CHECK: divide
// CHECK: %[[R:.*]] = "stablehlo.if"(%[[P:.*]]) ({
// CHECK-NEXT: %[[REST:.*]] = stablehlo.remainder
// CHECK-NEXT: %[[Y:.*]] = stablehlo.add %[[REST]],
// CHECK-NEXT: stablehlo.return %[[Y]]
// CHECK: }, {
// CHECK-NEXT: stablehlo.return %{{.*}}
// CHECK-NEXT: })
// CHECK-NOT: stablehlo.select
// CHECK: stablehlo.return %[[R]]
func.func public @sieve(%x: tensor<4000xi64>, %n: tensor<4000xi64>, %p: tensor<i1>) -> (tensor<4000xi64>, tensor<4000xi64>, tensor<i1>) {
  %0:3 = stablehlo.while(%a = %x, %q = %x, %b = %p) : tensor<4000xi64>, tensor<4000xi64>, tensor<i1>
  cond {
    stablehlo.return %b : tensor<i1>
  } do {
    %rest = stablehlo.remainder %a, %n : tensor<4000xi64>
    %quotient = stablehlo.divide %a, %n : tensor<4000xi64>
    %y = stablehlo.add %rest, %quotient : tensor<4000xi64>
    %not = stablehlo.not %b : tensor<i1>
    %r = stablehlo.select %b, %y, %a : tensor<i1>, tensor<4000xi64>
    stablehlo.return %r, %quotient, %not : tensor<4000xi64>, tensor<4000xi64>, tensor<i1>
  }
  return %0#0, %0#1, %0#2 : tensor<4000xi64>, tensor<4000xi64>, tensor<i1>
}

// Each side in its branch.
// CHECK-LABEL: func.func public @both
// CHECK: "stablehlo.if"(%{{.*}}) ({
// CHECK-NEXT: stablehlo.exponential
// CHECK-NEXT: stablehlo.return
// CHECK-NEXT: }, {
// CHECK-NEXT: stablehlo.negate
// CHECK-NEXT: stablehlo.return
func.func public @both(%x: tensor<4000xf64>, %p: tensor<i1>) -> tensor<4000xf64> {
  %0:2 = stablehlo.while(%a = %x, %b = %p) : tensor<4000xf64>, tensor<i1>
  cond {
    stablehlo.return %b : tensor<i1>
  } do {
    %e = stablehlo.exponential %a : tensor<4000xf64>
    %n = stablehlo.negate %a : tensor<4000xf64>
    %not = stablehlo.not %b : tensor<i1>
    %r = stablehlo.select %b, %e, %n : tensor<i1>, tensor<4000xf64>
    stablehlo.return %r, %not : tensor<4000xf64>, tensor<i1>
  }
  return %0#0 : tensor<4000xf64>
}

// What is cheap, small, chosen element by element or needed by the predicate stays.
// CHECK-LABEL: func.func public @left_alone
// CHECK-NOT: stablehlo.if
func.func public @left_alone(%x: tensor<4000xf64>, %s: tensor<40xf64>, %p: tensor<i1>) -> tensor<4000xf64> {
  %0:3 = stablehlo.while(%a = %x, %c = %s, %b = %p) : tensor<4000xf64>, tensor<40xf64>, tensor<i1>
  cond {
    stablehlo.return %b : tensor<i1>
  } do {
    %n = stablehlo.negate %a : tensor<4000xf64>
    %r = stablehlo.select %b, %n, %a : tensor<i1>, tensor<4000xf64>
    %e = stablehlo.exponential %c : tensor<40xf64>
    %t = stablehlo.select %b, %e, %c : tensor<i1>, tensor<40xf64>
    %f = stablehlo.exponential %r : tensor<4000xf64>
    %m = stablehlo.compare LT, %f, %a : (tensor<4000xf64>, tensor<4000xf64>) -> tensor<4000xi1>
    %u = stablehlo.select %m, %f, %a : tensor<4000xi1>, tensor<4000xf64>
    %one = stablehlo.slice %m [0:1] : (tensor<4000xi1>) -> tensor<1xi1>
    %not = stablehlo.reshape %one : (tensor<1xi1>) -> tensor<i1>
    %v = stablehlo.select %not, %u, %r : tensor<i1>, tensor<4000xf64>
    stablehlo.return %v, %t, %not : tensor<4000xf64>, tensor<40xf64>, tensor<i1>
  }
  return %0#0 : tensor<4000xf64>
}
