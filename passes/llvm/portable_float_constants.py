"""Spell every floating-point constant as the integer that holds its bits.

The MLIR wheel prints LLVM 24 text, whose float literals LLVM 22 cannot read. A scalar or vector
constant becomes integer constant + freeze + bitcast (freeze keeps translation from folding it back;
LLVM removes all three), as does what is converted from integers that only constants decide; a constant struct
or array is built from such pieces, and a constant global becomes a global of integers. Leaves
integer constants alone.

example: test/passes/llvm/portable_float_constants.mlir
"""

from __future__ import annotations

import re
import struct

import ml_dtypes
import numpy as np

from lamina.dialects.context import cached_with_context
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops

_FLOATS = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
_TYPES = {"f16": ir.F16Type, "bf16": ir.BF16Type, "f32": ir.F32Type, "f64": ir.F64Type}
_PACKED = {
    "f32": (struct.Struct("<f"), struct.Struct("<i")),
    "f64": (struct.Struct("<d"), struct.Struct("<q")),
}
_FLOAT_WORD = re.compile(r"\b(bf16|f16|f32|f64)\b|(?<=x)(bf16|f16|f32|f64)\b")


class PortableFloatConstants(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        float_names: dict[ir.Type, str | None] = {}  # most constants are of few types
        for op in find_ops(module, "llvm.mlir.constant"):
            if isinstance(op.attributes["value"], ir.IntegerAttr):  # as most are
                continue
            type_ = op.results[0].type
            if type_ not in float_names:
                float_names[type_] = _float_name(str(type_))
            float_name = float_names[type_]
            if float_name is not None:
                _rewrite_constant(op, float_name)
        for op in module.body.operations:
            if op.operation.name == "llvm.mlir.global" and "value" in op.attributes:
                _rewrite_global(op.operation)
        known: dict[ir.Value, bool] = {}
        for op in find_ops(module, "llvm.bitcast", "llvm.sitofp", "llvm.uitofp"):
            if _is_constant(op.operands[0], known):
                _freeze_operand(op)


def _rewrite_constant(op: ir.Operation, float_name: str) -> None:
    result = op.results[0]
    attribute = op.attributes["value"]
    with ir.InsertionPoint(op), op.location:
        if isinstance(attribute, ir.ArrayAttr):
            new = _aggregate(result.type, _array_bits(attribute, float_name), float_name)
        elif str(result.type).startswith("!llvm.array"):
            bits = _dense_bits(attribute, float_name).reshape(ir.ShapedType(attribute.type).shape)
            new = _aggregate(result.type, bits, float_name)
        elif isinstance(attribute, ir.FloatAttr) or _is_dense(attribute):
            new = _through_freeze(*_in_integers(attribute, result.type, float_name), result.type)
        else:  # an integer or zero attribute under a float type prints as an integer already
            return
    result.replace_all_uses_with(new)
    op.erase()


def _rewrite_global(op: ir.Operation) -> None:
    global_type = ir.TypeAttr(op.attributes["global_type"]).value
    float_name = _float_name(str(global_type))
    attribute = op.attributes["value"]
    if float_name is None:
        return
    integer = _integer_type(float_name)
    if isinstance(attribute, ir.FloatAttr):  # a global scalar
        op.attributes["value"] = ir.IntegerAttr.get(integer, _bits(attribute.value, float_name))
        op.attributes["global_type"] = ir.TypeAttr.get(integer)
        return
    if not _is_dense(attribute):
        return
    tensor = ir.RankedTensorType.get(ir.ShapedType(attribute.type).shape, integer)
    op.attributes["value"] = _integer_dense(attribute, tensor, float_name)
    op.attributes["global_type"] = ir.TypeAttr.get(_with_integers(global_type))


def _is_constant(value: ir.Value, known: dict[ir.Value, bool]) -> bool:
    """Whether a value is computed of constants alone, so that translation would fold it."""
    work = [value]
    while work:
        owner = work[-1].owner
        if isinstance(owner, ir.Block) or owner.operation.name in _KEPT:
            known[work.pop()] = False
            continue
        operands = list(owner.operation.operands)
        if any(known.get(operand) is False for operand in operands):
            known[work.pop()] = False
            continue
        open_ = next((operand for operand in operands if operand not in known), None)
        if open_ is None:
            known[work.pop()] = True
        else:
            work.append(open_)
    return known[value]


_KEPT = ("llvm.freeze", "llvm.call", "llvm.alloca", "llvm.mlir.addressof")


def _freeze_operand(op: ir.Operation) -> None:
    with ir.InsertionPoint(op), op.location:
        op.operands[0] = ir.Operation.create(
            "llvm.freeze", results=[op.operands[0].type], operands=[op.operands[0]]
        ).result


def _scalar(bits: int, float_name: str) -> ir.Value:
    integer = _integer_type(float_name)
    return _through_freeze(ir.IntegerAttr.get(integer, bits), integer, _TYPES[float_name].get())


@cached_with_context(1024)  # kernels have many of the same
def _in_integers(
    attribute: ir.Attribute, type_: ir.Type, float_name: str
) -> tuple[ir.Attribute, ir.Type]:
    """A float or a dense attribute of a type, and the type, in integers."""
    if isinstance(attribute, ir.FloatAttr):
        integer = _integer_type(float_name)
        return ir.IntegerAttr.get(integer, _bits(attribute.value, float_name)), integer
    vector = _with_integers(type_)
    return _integer_dense(attribute, vector, float_name), vector


def _vector_of(bits: np.ndarray, float_name: str) -> ir.Value:
    type_ = ir.VectorType.get([bits.size], _TYPES[float_name].get())
    integer = _with_integers(type_)
    words = [ir.IntegerAttr.get(_integer_type(float_name), int(word)) for word in bits]
    return _through_freeze(ir.DenseElementsAttr.get(words, integer), integer, type_)


def _through_freeze(attribute: ir.Attribute, integer: ir.Type, type_: ir.Type) -> ir.Value:
    constant = ir.Operation.create(
        "llvm.mlir.constant", results=[integer], attributes={"value": attribute}
    )
    frozen = ir.Operation.create("llvm.freeze", results=[integer], operands=[constant.result])
    return ir.Operation.create("llvm.bitcast", results=[type_], operands=[frozen.result]).result


def _aggregate(type_: ir.Type, bits: np.ndarray, float_name: str) -> ir.Value:
    value = ir.Operation.create("llvm.mlir.poison", results=[type_]).result
    of_vectors = "vector<" in str(type_)
    for index in np.ndindex(*(bits.shape[:-1] if of_vectors else bits.shape)):
        if of_vectors:
            part = _vector_of(bits[index], float_name)
        else:
            part = _scalar(int(bits[index]), float_name)
        value = ir.Operation.create(
            "llvm.insertvalue",
            results=[type_],
            operands=[value, part],
            attributes={"position": ir.DenseI64ArrayAttr.get(list(index))},
        ).result
    return value


def _is_dense(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, (ir.DenseElementsAttr, ir.DenseFPElementsAttr))


def _integer_dense(attribute: ir.Attribute, type_: ir.Type, float_name: str) -> ir.Attribute:
    dense = ir.DenseElementsAttr(attribute)
    if dense.is_splat:
        bits = _bits(ir.FloatAttr(dense.get_splat_value()).value, float_name)
        return ir.DenseElementsAttr.get_splat(
            type_, ir.IntegerAttr.get(_integer_type(float_name), bits)
        )
    return ir.DenseElementsAttr.get(_dense_bits(attribute, float_name), type=type_)


def _dense_bits(attribute: ir.Attribute, float_name: str) -> np.ndarray:
    """The bits of every element, as signed integers in the attribute's shape."""
    dense, shape = ir.DenseElementsAttr(attribute), tuple(ir.ShapedType(attribute.type).shape)
    if dense.is_splat:
        value = ir.FloatAttr(dense.get_splat_value()).value
        return np.full(shape, _bits(value, float_name), _signed(float_name))
    elements = ir.DenseFPElementsAttr(attribute)
    if float_name == "bf16":  # the bindings read neither its elements nor its buffer
        return _printed_bits(str(attribute)).reshape(shape)
    values = np.array(elements)
    return values.astype(_FLOATS[float_name]).view(_signed(float_name)).reshape(shape)


def _printed_bits(text: str) -> np.ndarray:
    """The elements of a dense bf16 attribute: decimal, bits where that says too little, or all bits
    in one string."""
    body = text[: text.rindex(" : ")]
    whole = re.search(r'"0x([0-9A-Fa-f]*)"', body)
    if whole is not None:
        return np.frombuffer(bytes.fromhex(whole.group(1)), "<i2")
    words = re.findall(r"0x[0-9A-Fa-f]+|-?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?", body)
    unsigned = [int(w, 16) if w.startswith("0x") else _bits(float(w), "bf16") & 0xFFFF for w in words]
    return np.array(unsigned, np.uint16).view(np.int16)


def _array_bits(attribute: ir.ArrayAttr, float_name: str) -> np.ndarray:
    return np.array(
        [_bits(ir.FloatAttr(part).value, float_name) for part in attribute], _signed(float_name)
    )


def _bits(value: float, float_name: str) -> int:
    if float_name in _PACKED:  # NumPy takes ten times as long for one number
        as_float, as_integer = _PACKED[float_name]
        return int(as_integer.unpack(as_float.pack(value))[0])
    with np.errstate(over="ignore"):
        return int(
            np.array(value, np.float64).astype(_FLOATS[float_name]).view(_signed(float_name))
        )


def _signed(float_name: str) -> np.dtype:
    return np.dtype(f"i{_FLOATS[float_name].itemsize}")


def _integer_type(float_name: str) -> ir.Type:
    return ir.IntegerType.get_signless(8 * _FLOATS[float_name].itemsize)


def _with_integers(type_: ir.Type) -> ir.Type:
    return ir.Type.parse(
        _FLOAT_WORD.sub(lambda m: f"i{8 * _FLOATS[m.group(0)].itemsize}", str(type_))
    )


def _float_name(type_text: str) -> str | None:
    found = _FLOAT_WORD.search(type_text)
    return found.group(0) if found else None
