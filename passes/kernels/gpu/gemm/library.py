"""What a kernel that is one product is to cuBLASLt: a description that the runtime can have it done by.

    func @f(%a: 512x256xbf16, %b: 256x128xbf16, %bias: 128xbf16, %d: 512x128xbf16)
        ->  gpu.module attributes {lamina.library = {a = {...}, b = {...}, d = {...}, ..., choose = "measure"}}
The library sees columns first where we see rows: its a is our b, and d is the transpose of ours. Only
a product of matrices (in batches) as they lie in arguments, that starts at zero and is followed by
nothing, a conversion or a bias of the columns: the library's own relu makes 0 of NaN, its gelu is not
ours. The sum is rounded after the bias is added.

`choose` is what the model says: `kernel` where ours is done before the library's call has returned,
else `measure`, which is up to the runtime.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lamina.dialects.attributes import LIBRARY
from lamina.dialects.vendors import ir
from lamina.passes.kernels.gpu.device.kernels import Kernels
from lamina.passes.kernels.gpu.gemm.operand import padded_source
from lamina.passes.kernels.gpu.gemm.reading import Factor, Product
from lamina.passes.kernels.gpu.gemm.results import is_zero
from lamina.passes.kernels.gpu.gemm.tiling import Tiling
from lamina.passes.kernels.gpu.machine import LIBRARY_CALL_CYCLES
from lamina.passes.linalg.analysis.structure import Generic, root_buffer, stride_along
from lamina.passes.memref.place_temporaries import element_bytes

_TYPES = {"f16": 2, "bf16": 14, "f32": 0, "f64": 1, "complex<f32>": 4, "complex<f64>": 5, "i8": 3,
          "i32": 10, "f8E4M3FN": 28, "f8E5M2": 29}  # fmt: skip
"""cudaDataType."""
_F16, _F32, _TF32, _F64, _I32 = 64, 68, 77, 70, 72
_COMPUTE = {"f16": _F32, "bf16": _F32, "f32": _F32, "f64": _F64, "complex<f32>": _F32,
            "complex<f64>": _F64, "i8": _I32, "f8E4M3FN": _F32, "f8E5M2": _F32}  # fmt: skip
"""cublasComputeType by the operands' type: sums are as wide as in our kernels."""
_TOTALS = {_F32: ("f32", "complex<f32>"), _F64: ("f64", "complex<f64>"), _I32: ("i32",)}


def describe_product(kernels: Kernels, product: Product, tiling: Tiling, tf32: bool) -> None:
    """Note on the gpu.module, whose kernels are this product, what cuBLASLt would do instead, if it can."""
    found = _described(kernels, product, tf32)
    if found is not None:
        choose = "kernel" if tiling.cost < LIBRARY_CALL_CYCLES else "measure"
        kernels.device.attributes[LIBRARY] = _attribute(found | {"choose": choose})


def plain(attribute: ir.Attribute) -> Any:
    """A description as numbers, texts and dictionaries, for a manifest."""
    if isinstance(attribute, ir.DictAttr):
        return {named.name: plain(named.attr) for named in attribute}
    return attribute.value


def _attribute(value: Any) -> ir.Attribute:
    if isinstance(value, dict):
        return ir.DictAttr.get({name: _attribute(part) for name, part in value.items()})
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _described(kernels: Kernels, product: Product, tf32: bool) -> dict[str, Any] | None:
    if product.initial is None or not is_zero(product.initial):
        return None
    end = _end(product)
    if end is None:
        return None
    generic, place, bias = end
    elements = {_element(factor) for factor in (product.a, product.b)}
    if len(elements) != 1 or None in elements:
        return None
    (element,) = elements
    compute = _COMPUTE.get(element or "")
    if compute is None or str(product.element) not in _TOTALS[compute]:
        return None
    if element == "f32" and tf32:
        compute = _TF32
    batches, m, n, k = product.sizes
    result = (generic.outputs[place], generic.output_maps[place])
    b = _matrix(kernels, product, (product.b.buffer, product.b.map), product.b.along, product.reduced)
    a = _matrix(kernels, product, (product.a.buffer, product.a.map), product.reduced, product.a.along)
    d = _matrix(kernels, product, result, product.b.along, product.a.along)
    if a is None or b is None or d is None or d["transposed"]:
        return None
    if d["argument"] in (a["argument"], b["argument"]):
        return None
    found = {"m": n, "n": m, "k": k, "batches": batches, "compute": compute, "a": b, "b": a, "d": d,
             "scale": _TYPES[str(product.element)]}  # fmt: skip
    if bias is not None:
        number = _argument(kernels, bias)
        if number in (None, d["argument"]) or batches != 1:
            return None
        found["bias"] = number
    return found


def _element(factor: Factor) -> str | None:
    """The type of a factor's elements, which are only widened before they are multiplied."""
    before = factor.before
    if len(before) > 1 or any(op.name not in ("arith.extf", "arith.extsi") for op in before):
        return None
    if before and before[0].results[0] != factor.value:
        return None
    return str(ir.MemRefType(factor.buffer.type).element_type)


def _end(product: Product) -> tuple[Generic, int, ir.Value | None] | None:
    """The generic that stores the result, which of its outputs it is, and a bias that was added; None
    if more is done than that."""
    if padded_source(product, product.a) or padded_source(product, product.b):
        return None
    if not product.followers:
        return product.generic, 0, None
    (follower, *more) = product.followers
    generic = follower.generic
    if more or product.result not in product.private or len(generic.outputs) != 1:
        return None
    operations = [op.operation for op in generic.body.operations]
    inputs = dict(zip(generic.body.arguments, zip(generic.inputs, generic.input_maps)))
    value = operations[-1].operands[0]
    bias = None
    if _is(value, "arith.addf", "complex.add"):
        left, right = value.owner.operation.operands
        for sum_, other in ((left, right), (right, left)):
            buffer, map_ = inputs.get(other, (None, None))
            if buffer is not None and _is_bias(product, generic, buffer, map_, follower.dimensions):
                value, bias = sum_, buffer
                break
        else:
            return None
    if _is(value, "arith.truncf"):
        value = value.owner.operation.operands[0]
    known = inputs.get(value)
    if known is None or known[0] != product.result or len(operations) > 3:
        return None
    return generic, 0, bias


def _is(value: ir.Value, *names: str) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name in names


def _is_bias(product: Product, generic: Generic, buffer: ir.Value, map_: Any, dimensions: Any) -> bool:
    """Whether a buffer has one value for each column of the result, in their order."""
    if not isinstance(buffer.type, ir.MemRefType) or buffer == product.result:
        return False
    of = {theirs: stride_along(buffer, map_, own) for theirs, own in dimensions.items()}
    columns = product.stride_as_one(product.b.along, of.__getitem__)
    rest = (*product.batch, *product.a.along)
    same = ir.MemRefType(buffer.type).element_type == ir.MemRefType(generic.outputs[0].type).element_type
    return same and columns == 1 and all(of[d] == 0 for d in rest)


def _matrix(
    kernels: Kernels, product: Product, of: tuple[ir.Value, ir.AffineMap], down: Sequence[int],
    across: Sequence[int],
) -> dict[str, Any] | None:  # fmt: skip
    """A buffer as the library has matrices: columns, each contiguous, of the dimensions `down`; or the
    other way round, `transposed`. None where it lies otherwise."""
    buffer, map_ = of
    number = _argument(kernels, buffer)
    if number is None:
        return None
    rank = len(product.generic.extents)
    strides = {d: stride_along(buffer, map_, d) for d in range(rank)}
    batch = product.stride_as_one(product.batch, strides.__getitem__)
    steps = [product.stride_as_one(dimensions, strides.__getitem__) for dimensions in (down, across)]
    sizes = [product.size(dimensions) for dimensions in (down, across)]
    if batch is None or None in steps:
        return None
    for transposed in (0, 1):
        inner, outer = transposed, 1 - transposed
        if steps[inner] == 1 and (steps[outer] or 0) >= sizes[inner]:
            element = ir.MemRefType(buffer.type).element_type
            if str(element) not in _TYPES:
                return None
            return {
                "argument": number, "type": _TYPES[str(element)], "rows": sizes[inner],
                "columns": sizes[outer], "leading": steps[outer], "stride": batch,
                "transposed": transposed, "bytes": _bytes(buffer),
            }  # fmt: skip
    return None


def _argument(kernels: Kernels, buffer: ir.Value) -> int | None:
    """Which argument of the kernel a buffer is, seen as a whole in whatever shape."""
    root = root_buffer(buffer)
    arguments = list(kernels.block.arguments)
    _, offset = ir.MemRefType(buffer.type).get_strides_and_offset()
    whole = math.prod(ir.MemRefType(buffer.type).shape) == math.prod(ir.MemRefType(root.type).shape)
    return arguments.index(root) if root in arguments and whole and offset == 0 else None


def _bytes(buffer: ir.Value) -> int:
    type_ = ir.MemRefType(buffer.type)
    return math.prod(type_.shape) * element_bytes(type_.element_type)
