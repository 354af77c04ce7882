# RUN: %PYTHON %s | FileCheck %s
"""Vector IR of products of narrow numbers, for each kind of instruction that processors have for them."""

from print_loops import print_loops

from lamina import lax


def product(a, b, result):
    return lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=result)


# CHECK-LABEL: TEST: bytes_in_tiles
# CHECK-NEXT: kernel output : dot_general
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: store <64 x i8>
# CHECK: tiles:
# CHECK: tdpbssd
# CHECK-NOT: no vectors:
@print_loops("i8[256,256]", "i8[256,256]", processor="x86-64-v4+amx-tile+amx-int8")
def bytes_in_tiles(a, b):
    return product(a, b, "int32")


# CHECK-LABEL: TEST: unsigned_bytes_in_tiles
# CHECK-NEXT: kernel output : dot_general
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: tiles:
# CHECK: tdpbuud
# CHECK-NOT: no vectors:
@print_loops("u8[256,256]", "u8[256,256]", processor="x86-64-v4+amx-tile+amx-int8")
def unsigned_bytes_in_tiles(a, b):
    return product(a, b, "int32")


# CHECK-LABEL: TEST: bytes_in_vectors
# CHECK-NEXT: kernel output : dot_general
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: full vectors:
# CHECK: vpdpbusd.512
# CHECK-NOT: no vectors:
@print_loops("i8[256,256]", "i8[256,256]", processor="x86-64-v4+avx512vnni")
def bytes_in_vectors(a, b):
    return product(a, b, "int32")


# CHECK-LABEL: TEST: bytes_as_words
# CHECK-NEXT: kernel output : dot_general
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: full vectors:
# CHECK: pmaddw.d
# CHECK-NOT: no vectors:
@print_loops("i8[256,256]", "i8[256,256]")
def bytes_as_words(a, b):
    return product(a, b, "int32")


# CHECK-LABEL: TEST: bf16_in_tiles
# CHECK-NEXT: kernel output : dot_general
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: store <32 x i16>
# CHECK: tiles:
# CHECK: tdpbf16ps
# CHECK-NOT: no vectors:
@print_loops("bf16[256,256]", "bf16[256,256]", processor="x86-64-v4+amx-tile+amx-bf16")
def bf16_in_tiles(a, b):
    return product(a, b, "float32")


# CHECK-LABEL: TEST: bf16_widened
# CHECK-NEXT: kernel output : dot_general
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: shl nuw <
# CHECK-NOT: no vectors:
@print_loops("bf16[256,256]", "bf16[256,256]")
def bf16_widened(a, b):
    return product(a, b, "float32")
