"""Group ops into kernels and call them from @main.

    %0 = stablehlo.multiply %x, %x            %1 = call @fused_reduce_0(%x)
    %1 = stablehlo.reduce(%0 init: %c)   ->
         applies stablehlo.add                func.func private @fused_reduce_0(%x) attributes {
                                                lamina.kind = "input", lamina.reason = "..."}

Afterwards @main and the regions of control flow hold calls, control flow, reshapes (views, free)
and constants that are returned, carried or too big to clone; every other op is in a private
function with a kind and a reason:

| kind | content |
|---|---|
| scalar | element-wise ops on scalars, done by whoever calls it; calls of functions that many scalars take |
| loop | element-wise and index-moving ops, all results of one shape |
| input | reductions over one domain with what makes their operands and follows their results |
| rows | reductions over one domain, and loops over it that read their results along the way |
| output | any other op, a small contraction with the element-wise ops after it |
| library | one op that a library does, named by `lamina.library` |
| update | an op that overwrites its first operands, marked `lamina.inout`; cheap ops before a scatter |
| control | a loop or branch of small steps, made before by `stablehlo-outline-control` |

A concatenation or pad is in one kernel with the ops around it if those can be done for each part
alone (fuse_parts.py). A matrix product is of kind library where a library, or the packed product that all of a type
share, is estimated to be faster (analysis/product_choice.py), of kind output otherwise. `lamina.matrix_products` on the
module, or the option `matrix-products`, decides for all of them: `kernel` leaves none to a library, `shared` and
`library` all that these can do.

What lies between an array and a loop that reads a row of it goes first (fuse_reads.py). The reshape that makes a
scalar of the one element of a slice is no view but a load, done where the scalar is used, as the words of a key are.

A reduction along rows and one down columns of one array are one kernel, too (fuse_both_ways.py).

Equal kernels exist once. Grouping is in fuse_grouping.py and fuse_rows.py: no op that costs more than a few
instructions is computed twice. Expects calls to be inlined and dead code to be gone.

example: test/passes/stablehlo/fusion/fuse.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import KIND
from lamina.dialects.constants import array_of, is_splat
from lamina.dialects.types import shape_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.closed_bodies import close_body
from lamina.passes.stablehlo.analysis.facts import (
    CONSTANT,
    CONTROL,
    IMPURE,
    is_pure,
    made_by,
)
from lamina.passes.stablehlo.analysis.kernel_functions import Kernels
from lamina.passes.stablehlo.analysis.product_choice import Implementation, Products
from lamina.passes.stablehlo.fusion import fuse_ops
from lamina.passes.stablehlo.fusion.fuse_both_ways import join_all_both_ways
from lamina.passes.stablehlo.fusion.fuse_grouping import Grouping
from lamina.passes.stablehlo.fusion.fuse_outline import Outliner
from lamina.passes.stablehlo.fusion.fuse_reads import read_in_place
from lamina.passes.stablehlo.fusion.fuse_refusals import Limits
from lamina.passes.stablehlo.fusion.fuse_rows import join_rows
from lamina.passes.stablehlo.fusion.fuse_scalars import Callees, calls_pay


class Fuse(Pass):
    """The pass `stablehlo-fuse`."""

    max_ops: int = 64  # code
    """Of a kernel with anything but plain ops: its loops can't all be cut."""
    max_plain: int = 2048  # code
    """Of a kernel that is only element-wise and reads along rows, or at found places. It becomes loops that are
    each as long as LLVM compiles well (memref/cut_long_loops.py), over vectors side by side where those have its
    ops (memref/interleave_factor.py): one kernel is never slower than several of 64 ops, needs no arrays between
    them, and is faster the more values are alive. Of 600 ops with 1 and 16 alive on 16M numbers of f32 it takes
    1.0 and 0.22 of the time of kernels of 256. What is read turned is laid out by a kernel of its own:
    computed within, it takes 1.1 to 7 times as long. Its one thread of compilation takes as long as theirs, up
    to some 2,000 ops: of 3,000, LLVM takes twice as long for each.
    Searches, which look up where they found something before, are left out: they take 1.2 to 1.6 times as
    long in one kernel as in several of 64 ops."""
    max_chain: int = 192  # code
    """Of a kernel that grows by ops on what it computes: random bits are a hundred in a row, which
    stored halfway take ten times as long."""
    max_scalars: int = 256  # code
    """Of a kernel of scalars: whoever calls it does a few hundred instructions one after the other, and code
    that runs once gains nothing by more."""
    scalar_calls: bool = False
    """Whether kernels of scalars may call others, of one function each (fuse_scalars.py)."""
    matrix_products: Implementation = "auto"
    parts: bool = True
    """Whether what makes and what follows a concatenation or a pad is one kernel with it, and what makes
    the indices and updates of a scatter."""
    solved_in_place: bool = True
    """Whether LAPACK may be given the place of an operand for its result."""
    both_ways: bool = True
    """Whether reductions of one array along its rows and down its columns are one kernel."""
    prologues: bool = True
    """Whether a matrix product may make its factors, panel by panel."""

    def run(self, module: ir.Module) -> None:
        kernels = Kernels(module)
        products = Products.of(module)
        if self.matrix_products != "auto":
            products = Products(self.matrix_products, products.machine)
        for op in [inner.operation for inner in module.body.operations]:
            if op.name == "func.func" and len(op.regions[0].blocks):
                if KIND in op.attributes:
                    continue  # a kernel already
                callees = Callees(kernels) if self.scalar_calls and calls_pay(op) else None
                self._block(op.regions[0].blocks[0], kernels, _find_effects(op), products, callees)
        self.count("kernels", len(kernels))

    def _block(
        self,
        block: ir.Block,
        kernels: Kernels,
        effects: set[ir.Operation],
        products: Products,
        callees: Callees | None,
    ) -> None:
        for op in [inner.operation for inner in block.operations]:
            name = op.name
            if name in CONTROL:
                for region in op.regions:
                    self._block(region.blocks[0], kernels, effects, products, callees)
            elif len(op.regions):
                if close_body(op) is not None:
                    raise CompileError.at(op, "its body reads a value from outside that isn't a constant")
            elif name == "func.call" and op.attributes["callee"].value not in kernels:
                raise CompileError.at(op, "calls must be inlined before fusion")
            if name in fuse_ops.UPDATES:
                _give_buffers(op)
        read_in_place(block)
        limits = Limits(
            self.max_ops, self.max_chain, max(self.max_ops, self.max_plain), self.max_scalars
        )
        grouping = Grouping(
            block, limits, effects, products, self.parts, self.both_ways, self.prologues
        )
        grouping.run()
        self.count("joined along rows", join_rows(grouping, self.max_ops))
        if self.both_ways:
            self.count("joined both ways", join_all_both_ways(grouping, self.max_ops))
        Outliner(block, grouping, kernels, callees, self.solved_in_place).run()


def _find_effects(function: ir.Operation) -> set[ir.Operation]:
    """The ops in a function that must stay in their order, and those around them."""
    found: set[ir.Operation] = set()
    for op in find_ops(function, *_MAY_HAVE_EFFECTS):
        if is_pure(op):
            continue
        while op != function and op not in found:
            found.add(op)
            op = op.parent.operation
    return found


_MAY_HAVE_EFFECTS = IMPURE - {fuse_ops.BARRIER, "stablehlo.rng"}


def _give_buffers(update: ir.Operation) -> None:
    """Make an operand that is overwritten, and is one element repeated, a kernel's result: a
    constant would have to be stored whole, and copied."""
    for number in range(fuse_ops.inout_operands(update)):
        constant = made_by(update.operands[number], CONSTANT)
        if constant is not None and is_splat(constant) and constant.result.type.shape:
            array = array_of(constant)
            with ir.InsertionPoint(update), constant.location:
                element = hlo.constant(array[(0,) * array.ndim])
                shape = shape_of(constant.result.type)
                update.operands[number] = hlo.broadcast_in_dim(element, shape, ())
