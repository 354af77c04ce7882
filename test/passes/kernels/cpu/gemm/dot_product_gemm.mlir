// RUN: %lamina-opt %s --pass-pipeline='cpu-dot-product-gemm{features=amx-int8+amx-bf16+avx512vnni}' | FileCheck %s --check-prefixes=CHECK,TILES
// RUN: %lamina-opt %s --pass-pipeline='cpu-dot-product-gemm{features=avx512vnni}' | FileCheck %s --check-prefixes=CHECK,BYTES
// RUN: %lamina-opt %s --pass-pipeline='cpu-dot-product-gemm{vector-bits=256}' | FileCheck %s --check-prefixes=CHECK,WORDS

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
#no = affine_map<(i, j) -> ()>

// The second factor is packed; then tiles, or vectors of groups, are multiplied. Bytes with signs on
// both sides need the first's flipped for vpdpbusd. Without either, bytes become words.
// CHECK-LABEL: func.func @bytes
// TILES: %[[PACKED:.*]] = memref.alloc() : memref<4352xi8>
// TILES: vector.shuffle {{.*}} : vector<32xi8>, vector<32xi8>
// TILES: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// TILES: scf.for
// TILES: llvm.call_intrinsic "llvm.x86.tilezero"
// TILES-COUNT-2: llvm.call_intrinsic "llvm.x86.tileloadd64"
// TILES: llvm.call_intrinsic "llvm.x86.tileloadd64"
// TILES-COUNT-2: llvm.call_intrinsic "llvm.x86.tdpbssd"
// TILES-COUNT-4: llvm.call_intrinsic "llvm.x86.tilestored64"
// TILES: llvm.call_intrinsic "llvm.x86.tilerelease"
// BYTES: arith.xori
// BYTES: vector.broadcast {{.*}} : i32 to vector<16xi32>
// BYTES: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"({{.*}}) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
// WORDS: arith.extsi {{.*}} : i8 to i16
// WORDS: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"({{.*}}) : (vector<16xi16>, vector<16xi16>) -> vector<8xi32>
func.func @bytes(%a: memref<64x64xi8>, %b: memref<64x64xi8>, %c: memref<64x64xi32>) {
  %zero = arith.constant 0 : i32
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : i32) outs(%c : memref<64x64xi32>) {
  ^bb0(%x: i32, %y: i32):
    linalg.yield %x : i32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<64x64xi8>, memref<64x64xi8>) outs(%c : memref<64x64xi32>) {
  ^bb0(%x: i8, %y: i8, %z: i32):
    %0 = arith.extsi %x : i8 to i32
    %1 = arith.extsi %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %z, %2 : i32
    linalg.yield %3 : i32
  }
  return
}

// Of a wide second factor each task packs the columns that it multiplies.
// CHECK-LABEL: func.func @wide
// TILES-NOT: memref.alloc
// TILES: scf.for
// BYTES: scf.forall
// WORDS: scf.forall
// CHECK: memref.alloc() : memref<{{33024|32896}}xi8>
// TILES: llvm.call_intrinsic "llvm.x86.tdpbuud"
func.func @wide(%a: memref<64x512xi8>, %b: memref<512x512xi8>, %c: memref<64x512xi32>) {
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<64x512xi8>, memref<512x512xi8>) outs(%c : memref<64x512xi32>) {
  ^bb0(%x: i8, %y: i8, %z: i32):
    %0 = arith.extui %x : i8 to i32
    %1 = arith.extui %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %z, %2 : i32
    linalg.yield %3 : i32
  }
  return
}

// Of a tall second factor, too, but a part of the terms at a time: several cache lines of each row, which are
// fetched ahead. The sums stay beside it until what follows reads them.
// CHECK-LABEL: func.func @tall
// TILES: scf.for %
// TILES: %[[SUMS:.*]] = memref.alloc() : memref<16x128xf32>
// TILES: linalg.generic {{.*}} outs(%[[SUMS]] : memref<16x128xf32>)
// TILES: scf.for %[[TERM:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// TILES: memref.alloc() : memref<66048xi8>
// TILES: "llvm.intr.prefetch"
// TILES-COUNT-8: vector.shuffle {{.*}} : vector<16xi16>, vector<16xi16>
// TILES-COUNT-2: llvm.call_intrinsic "llvm.x86.tileloadd64"
// TILES: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// TILES-COUNT-2: llvm.call_intrinsic "llvm.x86.tilestored64"
// TILES: linalg.generic {{.*}} ins(%{{.*}} : memref<16x32xf32, strided<[128, 1], offset: ?>>) outs(%{{.*}} : memref<16x32xbf16
// TILES: arith.truncf
func.func @tall(%a: memref<16x1024xbf16>, %b: memref<1024x1024xbf16>, %d: memref<16x1024xbf16>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<16x1024xf32>
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<16x1024xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<16x1024xbf16>, memref<1024x1024xbf16>) outs(%c : memref<16x1024xf32>) {
  ^bb0(%x: bf16, %y: bf16, %z: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = arith.extf %y : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %z, %2 : f32
    linalg.yield %3 : f32
  }
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%c : memref<16x1024xf32>) outs(%d : memref<16x1024xbf16>) {
  ^bb0(%x: f32, %y: bf16):
    %0 = arith.truncf %x : f32 to bf16
    linalg.yield %0 : bf16
  }
  return
}

// A copy that was widened in front is not needed; a second factor with its sum innermost is turned.
// What follows reads blocks.
// CHECK-LABEL: func.func @widened_before
// TILES-NOT: arith.extui
// TILES: llvm.call_intrinsic "llvm.x86.tdpbusd"
// BYTES: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : memref<{{.*}}xi32>, memref<{{.*}}xf32, strided<[1], offset: ?>>)
// CHECK: arith.sitofp
func.func @widened_before(%a: memref<64x64xi8>, %b: memref<64x64xi8>, %scale: memref<64xf32>, %d: memref<64x64xf32>) {
  %zero = arith.constant 0 : i32
  %wide = memref.alloc() : memref<64x64xi32>
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%a : memref<64x64xi8>) outs(%wide : memref<64x64xi32>) {
  ^bb0(%x: i8, %y: i32):
    %0 = arith.extui %x : i8 to i32
    linalg.yield %0 : i32
  }
  %c = memref.alloc() : memref<64x64xi32>
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : i32) outs(%c : memref<64x64xi32>) {
  ^bb0(%x: i32, %y: i32):
    linalg.yield %x : i32
  }
  linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%wide, %b : memref<64x64xi32>, memref<64x64xi8>) outs(%c : memref<64x64xi32>) {
  ^bb0(%x: i32, %y: i8, %z: i32):
    %0 = arith.extsi %y : i8 to i32
    %1 = arith.muli %x, %0 : i32
    %2 = arith.addi %z, %1 : i32
    linalg.yield %2 : i32
  }
  linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]} ins(%c, %scale : memref<64x64xi32>, memref<64xf32>) outs(%d : memref<64x64xf32>) {
  ^bb0(%x: i32, %s: f32, %y: f32):
    %0 = arith.sitofp %x : i32 to f32
    %1 = arith.mulf %0, %s : f32
    linalg.yield %1 : f32
  }
  return
}

// bf16 is for tiles only: elsewhere products of f32 are as fast.
// CHECK-LABEL: func.func @bf16
// TILES: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// BYTES-NOT: llvm.call_intrinsic
// WORDS-NOT: llvm.call_intrinsic
func.func @bf16(%a: memref<64x64xbf16>, %b: memref<64x64xbf16>, %c: memref<64x64xf32>) {
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<64x64xbf16>, memref<64x64xbf16>) outs(%c : memref<64x64xf32>) {
  ^bb0(%x: bf16, %y: bf16, %z: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = arith.extf %y : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %z, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// Too few rows to be worth packing anything.
// CHECK-LABEL: func.func @few_rows
// CHECK-NOT: llvm.call_intrinsic
func.func @few_rows(%a: memref<2x512xi8>, %b: memref<512x64xi8>, %c: memref<2x64xi32>) {
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<2x512xi8>, memref<512x64xi8>) outs(%c : memref<2x64xi32>) {
  ^bb0(%x: i8, %y: i8, %z: i32):
    %0 = arith.extsi %x : i8 to i32
    %1 = arith.extsi %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %z, %2 : i32
    linalg.yield %3 : i32
  }
  return
}

// What makes the second factor makes the part that a task packs, in bf16; nothing is widened in memory.
// CHECK-LABEL: func.func @made
// TILES-NOT: memref<1024x1024xf32>
// TILES: scf.for %
// TILES: %[[SUMS:.*]] = memref.alloc() : memref<16x128xf32>
// TILES: scf.for %
// TILES: %[[MADE:.*]] = memref.alloc() : memref<256x128xbf16>
// TILES: linalg.generic {{.*}} ins(%{{.*}} : memref<256x128xi8, strided<[1024, 1], offset: ?>>, memref<128xbf16, strided<[1], offset: ?>>) outs(%[[MADE]] : memref<256x128xbf16>)
// TILES: arith.mulf {{.*}} : bf16
// TILES-NOT: arith.extf
// TILES: linalg.yield {{.*}} : bf16
// TILES: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
func.func @made(%a: memref<16x1024xbf16>, %w: memref<1024x1024xi8>, %s: memref<1024xbf16>, %d: memref<16x1024xbf16>) {
  %zero = arith.constant 0.0 : f32
  %wide = memref.alloc() : memref<1024x1024xf32>
  linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]} ins(%w, %s : memref<1024x1024xi8>, memref<1024xbf16>) outs(%wide : memref<1024x1024xf32>) {
  ^bb0(%x: i8, %y: bf16, %z: f32):
    %0 = arith.sitofp %x : i8 to bf16
    %1 = arith.mulf %0, %y : bf16
    %2 = arith.extf %1 : bf16 to f32
    linalg.yield %2 : f32
  }
  %c = memref.alloc() : memref<16x1024xf32>
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<16x1024xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %wide : memref<16x1024xbf16>, memref<1024x1024xf32>) outs(%c : memref<16x1024xf32>) {
  ^bb0(%x: bf16, %y: f32, %z: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = arith.mulf %0, %y : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  }
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%c : memref<16x1024xf32>) outs(%d : memref<16x1024xbf16>) {
  ^bb0(%x: f32, %y: bf16):
    %0 = arith.truncf %x : f32 to bf16
    linalg.yield %0 : bf16
  }
  return
}

// Few rows are the columns of tiles where the second factor's terms lie next to each other: that is read as it is,
// made by each task for itself, and blocks are turned before what follows.
// CHECK-LABEL: func.func @turned
// TILES: scf.for
// TILES: %[[MADE:.*]] = memref.alloc() : memref<32x1024xbf16>
// TILES: linalg.generic {{.*}} outs(%[[MADE]] : memref<32x1024xbf16>)
// TILES: scf.for
// TILES: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// TILES: vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
// TILES: linalg.generic {{.*}} ins(%{{.*}} : memref<16x32xf32{{.*}}>) outs(%{{.*}} : memref<16x32xbf16, strided<[1024, 1], offset: ?>>)
func.func @turned(%a: memref<16x1024xbf16>, %w: memref<1024x1024xi8>, %s: memref<1024xbf16>, %d: memref<16x1024xbf16>) {
  %zero = arith.constant 0.0 : f32
  %wide = memref.alloc() : memref<1024x1024xf32>
  linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]} ins(%w, %s : memref<1024x1024xi8>, memref<1024xbf16>) outs(%wide : memref<1024x1024xf32>) {
  ^bb0(%x: i8, %y: bf16, %z: f32):
    %0 = arith.sitofp %x : i8 to bf16
    %1 = arith.mulf %0, %y : bf16
    %2 = arith.extf %1 : bf16 to f32
    linalg.yield %2 : f32
  }
  %c = memref.alloc() : memref<16x1024xf32>
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<16x1024xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %wide : memref<16x1024xbf16>, memref<1024x1024xf32>) outs(%c : memref<16x1024xf32>) {
  ^bb0(%x: bf16, %y: f32, %z: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = arith.mulf %0, %y : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  }
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%c : memref<16x1024xf32>) outs(%d : memref<16x1024xbf16>) {
  ^bb0(%x: f32, %y: bf16):
    %0 = arith.truncf %x : f32 to bf16
    linalg.yield %0 : bf16
  }
  return
}
