"""Generics on buffers, read once into a nest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lamina.dialects.context import cached_with_context
from lamina.dialects.vendors import ir
from lamina.passes.linalg.analysis.parallel import total_cost
from lamina.passes.linalg.analysis.structure import (
    Generic,
    is_buffer,
    loads,
    places_of,
    root_buffer,
    strides_of,
)
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.passes.schedule.nest import Access, Statement, Tile

_VECTOR_MATH = ("math.absf", "math.copysign", "math.fma", "math.rsqrt", "math.sqrt")
_ELEMENTARY = ("math.exp", "math.log", "math.tanh")
_SCALAR = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.ceildivsi", "arith.ceildivui",
           "arith.floordivsi")  # fmt: skip
_ANY_ORDER = ("arith.addi", "arith.andi", "arith.maxsi", "arith.maxui", "arith.minsi", "arith.minui", "arith.muli",
              "arith.ori", "arith.xori")  # fmt: skip


class Reader:
    """Reads the generics of a function, whose buffers it numbers."""

    def __init__(self) -> None:
        self._numbers: dict[ir.Value, int] = {}
        self._roots: dict[ir.Value, int] = {}

    def statement(self, generic: Generic, tile: Tile | None) -> Statement:
        """What a generic does; `tile` is the kernel of vectors that does blocks of it."""
        ops = elementary = 0
        vectorizes = is_simple = True
        scalar_ops = loads_elsewhere = False
        for view in generic.body.operations:
            name = view.operation.name
            ops += 1
            is_simple = is_simple and not (name.startswith("math.") or "div" in name or "index" in name)
            if name in _ELEMENTARY:
                elementary += 1
            elif name.startswith("memref."):
                loads_elsewhere, vectorizes = True, False
            elif name in _SCALAR:
                scalar_ops, vectorizes = True, False
            elif not name.startswith("arith.") and name not in _VECTOR_MATH and name != "linalg.yield":
                vectorizes = vectorizes and name == "linalg.index"
        return Statement(
            generic.extents,
            generic.reductions,
            tuple(self._accesses(generic, loads_elsewhere)),
            total_cost(generic),
            ops - 1,
            elementary,
            vectorizes,
            all(map(_is_in_any_order, *_combined(generic))) if any(generic.reductions) else True,
            scalar_ops,
            any(
                place >= 0 and generic.reductions[place]
                for map_ in generic.output_maps
                for place in places_of(map_)
            ),
            is_simple,
            tile,
        )

    def _accesses(self, generic: Generic, loads_elsewhere: bool) -> Iterable[Access]:
        operands = (
            (generic.inputs, generic.input_maps, False),
            (generic.outputs, generic.output_maps, True),
        )
        for values, maps, writes in operands:
            for value, map_ in zip(values, maps, strict=True):
                if is_buffer(value):
                    buffer, root = self._names(value)
                    strides, places, width, bits = _walk(value.type, map_)
                    yield Access(buffer, root, strides, places, width, bits, writes)
        if loads_elsewhere:
            for access in loads(generic):
                buffer, root = self._names(access.buffer)
                strides, places, width, bits = _walk(access.buffer.type, access.map)
                yield Access(buffer, root, strides, places, width, bits, writes=False, computed=True)

    def _names(self, buffer: ir.Value) -> tuple[int, int]:
        if buffer not in self._numbers:
            root = root_buffer(buffer)
            self._roots[buffer] = self._numbers.setdefault(root, len(self._numbers))
            self._numbers.setdefault(buffer, len(self._numbers))
        return self._numbers[buffer], self._roots.get(buffer, self._numbers[buffer])


@cached_with_context(1024)  # most operands are like many others
def _walk(type_: ir.Type, map_: ir.AffineMap) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
    """The strides along each dimension, the dimension at each index, and the bytes and bits of an element."""
    element = ir.MemRefType(type_).element_type
    return strides_of(type_, map_), tuple(places_of(map_)), element_bytes(element), getattr(element, "width", 0)


def _combined(generic: Generic) -> tuple[Sequence[ir.Value], Sequence[ir.Value]]:
    """The accumulators of a reduction, and what they become."""
    block = generic.body
    *_, end = block.operations
    arguments = list(block.arguments)[len(generic.inputs) :]
    return arguments, list(end.operation.operands)


def _is_in_any_order(accumulator: ir.Value, value: ir.Value) -> bool:
    if isinstance(value.owner, ir.Block):
        return not list(accumulator.uses)
    if not list(accumulator.uses):
        return True
    op = value.owner.operation
    if accumulator not in op.operands or len(list(accumulator.uses)) != 1:
        return False
    flags = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
    return op.name in _ANY_ORDER or "reassoc" in flags or "fast>" in flags
