"""What is done with a sum of products: its initial value, the generics that follow, the stores."""

from __future__ import annotations

from collections.abc import Mapping

from lamina.dialects.vendors import ir
from lamina.passes.emit.loops import load, store
from lamina.passes.kernels.gpu.device.kernels import Kernel, used_values
from lamina.passes.kernels.gpu.device.threads import Body, positions
from lamina.passes.kernels.gpu.gemm.operand import Operand
from lamina.passes.kernels.gpu.gemm.reading import Product
from lamina.passes.linalg.analysis.affine_indices import indices


def prepare(kernel: Kernel, product: Product, *operands: Operand) -> None:
    """Make in the kernel what the product and its followers use."""
    ops = [product.generic.op, *(f.generic.op for f in product.followers)]
    skipped = set(product.private)
    extra: set[ir.Value] = set()
    if product.initial is not None:
        extra.add(product.initial)
    for operand in operands:
        if operand.padding is not None:
            skipped.add(operand.factor.buffer)
            extra |= {operand.padding.source, operand.padding.value}
    kernel.prepare_values((used_values(ops) | extra) - skipped)


class Results:
    """Writes elements of a product's result, at a place of the batch."""

    def __init__(self, kernel: Kernel, product: Product, batch: Mapping[int, ir.Value]) -> None:
        self.kernel, self.product, self.batch = kernel, product, batch

    def write(self, row: ir.Value, column: ir.Value, total: ir.Value) -> None:
        """Finish the sum for a row and a column, which must be within bounds, and store it and what
        follows from it."""
        product = self.product
        extents = product.generic.extents
        at = dict(self.batch)
        for value, dimensions in ((row, product.a.along), (column, product.b.along)):
            at |= zip(dimensions, positions(value, [extents[d] for d in dimensions]))
        made = {product.result: self._with_initial(at, total)}
        if product.result not in product.private:
            self._store(product.result, product.generic.output_maps[0], at, made[product.result])
        for follower in product.followers:
            generic = follower.generic
            mine = {own: at[theirs] for theirs, own in follower.dimensions.items()}
            body = Body(generic, self.kernel.replaced)
            inputs: list[ir.Value | None] = []
            for operand, map_ in zip(generic.inputs, generic.input_maps, strict=True):
                if operand in made:
                    inputs.append(made[operand])
                elif isinstance(operand.type, ir.MemRefType):
                    inputs.append(load(body.value_of(operand), indices(map_, mine)))
                else:
                    inputs.append(body.value_of(operand))
            used = generic.body.arguments[len(generic.inputs) :]
            before = [
                self._before(output, map_, mine, made) if len(list(argument.uses)) else None
                for output, map_, argument in zip(generic.outputs, generic.output_maps, used)
            ]
            for value, output, map_ in zip(
                body.run(mine, inputs, before), generic.outputs, generic.output_maps, strict=True
            ):
                made[output] = value
                if output not in product.private:
                    self._store(output, map_, mine, value)

    def _before(
        self, output: ir.Value, map_: ir.AffineMap, at: Mapping[int, ir.Value],
        made: Mapping[ir.Value, ir.Value],
    ) -> ir.Value:  # fmt: skip
        if output in made:
            return made[output]
        return load(self.kernel.replaced.get(output, output), indices(map_, at))

    def _store(
        self, buffer: ir.Value, map_: ir.AffineMap, at: Mapping[int, ir.Value], value: ir.Value
    ) -> None:
        store(value, self.kernel.replaced.get(buffer, buffer), indices(map_, at))

    def _with_initial(self, at: Mapping[int, ir.Value], total: ir.Value) -> ir.Value:
        product = self.product
        if product.initial is None:
            place = indices(product.generic.output_maps[0], at)
            initial = load(self.kernel.replaced.get(product.result, product.result), place)
        else:
            initial = product.initial
            if is_zero(initial):
                return total
            initial = self.kernel.replaced.get(initial, initial)
        return combined(product, initial, total)


def combined(product: Product, a: ir.Value, b: ir.Value) -> ir.Value:
    """The sum of two sums of a product."""
    copy = product.add.clone().operation
    copy.operands[0], copy.operands[1] = a, b
    return copy.results[0]


def multiplied_and_added(
    product: Product, a: ir.Value, b: ir.Value, total: ir.Value
) -> ir.Value:
    """One more product in a sum, by the generic's own ops."""
    values = {product.a.value: a, product.b.value: b}
    multiply = product.multiply.clone().operation
    for place, operand in enumerate(product.multiply.operands):
        multiply.operands[place] = values[operand]
    return combined(product, total, multiply.results[0])


def is_zero(value: ir.Value) -> bool:
    """Whether a value is the constant zero."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    op = owner.operation
    if op.name == "complex.constant":
        return all(str(part).startswith(("0.0", "0 ")) for part in op.attributes["value"])
    if op.name != "arith.constant":
        return False
    return str(op.attributes["value"]).split(" ")[0] in ("0", "0.000000e+00", "false")
