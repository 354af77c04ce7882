"""Which generics of a function are products, and what does each: tensor cores or threads."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import ir
from lamina.passes.kernels.gpu.device.kernels import Kernels
from lamina.passes.kernels.gpu.gemm.mma import emit_mma, largest_edge, tensor_core_for
from lamina.passes.kernels.gpu.gemm.operand import padded_source
from lamina.passes.kernels.gpu.gemm.reading import Product, read_product, with_surroundings
from lamina.passes.kernels.gpu.gemm.simt import emit_simt
from lamina.passes.kernels.gpu.gemm.tiling import Tiling, choose_tiling, fma_unit
from lamina.passes.kernels.gpu.gemm.wgmma_kernel import emit_wgmma, sources_for, wgmma_unit
from lamina.passes.linalg.analysis.structure import Generic
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.passes.stablehlo.legalize.note_tf32 import TF32


def with_products(generics: Sequence[Generic]) -> list[Product | list[Generic]]:
    """The generics in order, each product with what belongs to it, the others in lists."""
    found: list[Product | list[Generic]] = []
    taken: set[ir.Operation] = set()
    others: list[Generic] = []
    for number, generic in enumerate(generics):
        if generic.op in taken:
            continue
        product = read_product(generic)
        if product is None:
            others.append(generic)
            continue
        before = [g for g in generics[:number] if g.op not in taken]
        product = with_surroundings(product, before, generics[number + 1 :])
        made_in_place = {product.fill} if product.fill is not None else set()
        for factor in (product.a, product.b):
            padding = padded_source(product, factor)
            made_in_place |= set(padding.ops) if padding is not None else set()
        others = [g for g in others if g.op not in made_in_place]
        taken |= made_in_place | {f.generic.op for f in product.followers}
        found += [others, product] if others else [product]
        others = []
    # A fill may come before another product that has been listed with what is before it.
    rest = [[g for g in part if g.op not in taken] if isinstance(part, list) else part
            for part in [*found, others]]  # fmt: skip
    return [part for part in rest if part]


def emit_choice(kernels: Kernels, product: Product, arch: str) -> Tiling:
    """The kernels of a product; how they do it."""
    core = tensor_core_for(product, arch, TF32 in kernels.function.attributes)
    if core is not None:
        tiling = choose_tiling(product.sizes, core.unit, arch, largest_edge(product, core))
        sources = sources_for(product, core, arch)
        if sources is not None:
            other = choose_tiling(product.sizes, wgmma_unit(core, sources), arch)
            if other.cost < tiling.cost:
                emit_wgmma(kernels, product, other, core, sources)
                return other
        emit_mma(kernels, product, tiling, core)
        return tiling
    widest = max(element_bytes(value.type) for value in (product.a.value, product.b.value))
    widest = max(widest, element_bytes(product.element))
    tiling = choose_tiling(product.sizes, fma_unit(widest, arch), arch)
    emit_simt(kernels, product, tiling)
    return tiling
