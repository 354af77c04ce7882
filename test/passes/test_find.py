"""Ops by their names: which, in what order, in which context."""

from lamina.dialects.context import make_context, parse
from lamina.dialects.vendors import ir
from lamina.passes.framework.find import find_ops

TEXT = """
func.func @f(%n: index, %x: memref<4xf32>) {
  %c = arith.constant 1 : index
  scf.for %i = %c to %n step %c {
    scf.for %j = %c to %n step %c {
      %v = memref.load %x[%j] : memref<4xf32>
      memref.store %v, %x[%i] : memref<4xf32>
    }
  }
  scf.for %i = %c to %n step %c {
  }
  return
}
"""


def called(ops):
    return [op.name for op in ops]


def test_ops_come_in_order_inner_ones_before_those_that_hold_them():
    with make_context(), ir.Location.unknown():
        module = parse(TEXT)
        names = ("scf.for", "memref.store", "memref.load")
        found = find_ops(module, *names)
        assert called(found) == ["memref.load", "memref.store", "scf.for", "scf.for", "scf.for"]
        inner, outer, last = found[2:]
        assert inner.parent == outer
        assert outer.is_before_in_block(last)
        assert find_ops(module, *names) == found  # what was found is not kept


def test_an_op_is_among_its_own():
    with make_context(), ir.Location.unknown():
        module = parse(TEXT)  # what is found does not keep it
        *_, outer, last = find_ops(module, "scf.for")
        assert find_ops(last, "scf.for") == [last]
        assert find_ops(outer, "scf.for")[-1] == outer
        assert find_ops(last, "memref.load") == []


def test_each_context_has_its_own_ops():
    for _ in range(2):
        with make_context(), ir.Location.unknown():
            module = parse(TEXT)
            assert called(find_ops(module, "memref.load")) == ["memref.load"]


def test_a_dialect_may_come_after_one_has_looked_for_its_ops():
    with make_context(), ir.Location.unknown():
        module = parse("func.func @f() { return }")
        assert find_ops(module, "complex.mul") == []
        block = module.body.operations[0].regions[0].blocks[0]
        with ir.InsertionPoint(block.operations[0]):
            complex_type = ir.ComplexType.get(ir.F32Type.get())
            zero = ir.ArrayAttr.get([ir.FloatAttr.get(ir.F32Type.get(), 0.0)] * 2)
            value = ir.Operation.create(
                "complex.constant", [complex_type], attributes={"value": zero}
            ).result
            made = ir.Operation.create("complex.mul", [complex_type], [value, value])
        assert find_ops(module, "complex.mul") == [made]
        assert find_ops(module, "complex.mul") == [made]
