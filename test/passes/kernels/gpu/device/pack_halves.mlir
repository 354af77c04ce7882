// RUN: %lamina-opt %s --split-input-file --pass-pipeline=gpu-pack-halves | FileCheck %s

// Two words, with the same done to the halves of each; the greatest is taken before f16 are widened.
// CHECK-LABEL: func.func @halves
// CHECK-DAG: %[[LOADED:.*]] = vector.load
// CHECK-DAG: %[[A:.*]] = vector.shuffle %[[LOADED]], %[[LOADED]] [0, 1]
// CHECK-DAG: %[[B:.*]] = vector.shuffle %[[LOADED]], %[[LOADED]] [2, 3]
// CHECK-DAG: %[[TOP:.*]] = arith.maximumf %[[A]], %[[B]] fastmath<nsz> : vector<2xf16>
// CHECK-DAG: %[[LOW:.*]] = vector.extract %[[TOP]][0]
// CHECK-DAG: arith.extf %[[LOW]] : f16 to f32
// CHECK-DAG: %[[M:.*]] = vector.broadcast %arg1 : f16 to vector<2xf16>
// CHECK-DAG: %[[APART:.*]] = arith.subf %[[A]], %[[M]] : vector<2xf16>
// CHECK-DAG: arith.negf %[[APART]] : vector<2xf16>
// CHECK-NOT: arith.subf {{.*}} : f16
// CHECK: return
func.func @halves(%x: memref<64xf16>, %m: f16, %i: index) -> (f32, f32, f16, f16) {
  %v = vector.load %x[%i] : memref<64xf16>, vector<4xf16>
  %a = vector.extract %v[0] : f16 from vector<4xf16>
  %b = vector.extract %v[1] : f16 from vector<4xf16>
  %c = vector.extract %v[2] : f16 from vector<4xf16>
  %d = vector.extract %v[3] : f16 from vector<4xf16>
  %aw = arith.extf %a : f16 to f32
  %bw = arith.extf %b : f16 to f32
  %cw = arith.extf %c : f16 to f32
  %dw = arith.extf %d : f16 to f32
  %low = arith.maximumf %aw, %cw fastmath<nsz> : f32
  %high = arith.maximumf %bw, %dw fastmath<nsz> : f32
  %as = arith.subf %a, %m : f16
  %an = arith.negf %as : f16
  %bs = arith.subf %b, %m : f16
  %bn = arith.negf %bs : f16
  return %low, %high, %an, %bn : f32, f32, f16, f16
}

// -----

// Also where a branch lies between, in the block that the ops are in. Not what is done to one half only, or to halves
// of different words.
// CHECK-LABEL: func.func @blocks
// CHECK: %[[WORD:.*]] = vector.shuffle
// CHECK: cf.cond_br
// CHECK: %[[S:.*]] = vector.broadcast %arg1
// CHECK: arith.addf %[[WORD]], %[[S]] : vector<2xf16>
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f16
// CHECK: arith.divf {{.*}} : f16
func.func @blocks(%x: memref<64xf16>, %m: f16, %i: index, %if: i1) -> (f16, f16, f16, f16) {
  %v = vector.load %x[%i] : memref<64xf16>, vector<4xf16>
  %a = vector.extract %v[0] : f16 from vector<4xf16>
  %b = vector.extract %v[1] : f16 from vector<4xf16>
  %c = vector.extract %v[2] : f16 from vector<4xf16>
  cf.cond_br %if, ^then, ^then
^then:
  %as = arith.addf %a, %m : f16
  %bs = arith.addf %b, %m : f16
  %bc = arith.mulf %b, %c : f16
  %q = arith.divf %a, %m : f16
  return %as, %bs, %bc, %q : f16, f16, f16, f16
}

// -----

// bf16 whose f32 are made of their bits.
// CHECK-LABEL: func.func @words
// CHECK: %[[LOADED:.*]] = vector.load
// CHECK: %[[WORDS:.*]] = vector.bitcast %[[LOADED]] : vector<4xbf16> to vector<2xi32>
// CHECK: %[[WORD:.*]] = vector.extract %[[WORDS]][1] : i32 from vector<2xi32>
// CHECK: %[[SHIFTED:.*]] = arith.shli %[[WORD]], %c16_i32
// CHECK: %[[MASKED:.*]] = arith.andi %[[WORD]], %c-65536_i32
// CHECK: arith.bitcast %[[SHIFTED]] : i32 to f32
// CHECK: arith.bitcast %[[MASKED]] : i32 to f32
func.func @words(%x: memref<64xbf16>, %i: index) -> (f32, f32) {
  %c16 = arith.constant 16 : i32
  %v = vector.load %x[%i] : memref<64xbf16>, vector<4xbf16>
  %a = vector.extract %v[2] : bf16 from vector<4xbf16>
  %b = vector.extract %v[3] : bf16 from vector<4xbf16>
  %ab = arith.bitcast %a : bf16 to i16
  %aw = arith.extui %ab : i16 to i32
  %as = arith.shli %aw, %c16 : i32
  %af = arith.bitcast %as : i32 to f32
  %bb = arith.bitcast %b : bf16 to i16
  %bw = arith.extui %bb : i16 to i32
  %bs = arith.shli %bw, %c16 : i32
  %bf = arith.bitcast %bs : i32 to f32
  return %af, %bf : f32, f32
}
