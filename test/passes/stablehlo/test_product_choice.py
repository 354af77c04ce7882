"""Who does a matrix product, by estimates of the three ways' times on a machine."""

from dataclasses import replace
from math import prod

import pytest

from lamina.passes.framework.machine import REFERENCE, SIZES
from lamina.passes.stablehlo.analysis.gemm import Gemm, Matrix
from lamina.passes.stablehlo.analysis.product_choice import choose_implementation, is_done_in_tiles


def _gemm(m, n, k, a_transposed=False, b_transposed=False, batch=()):
    matrices = [prod(batch[d + 1 :]) for d in range(len(batch))]
    a = Matrix(a_transposed, m if a_transposed else k, tuple(m * k * count for count in matrices))
    b = Matrix(b_transposed, k if b_transposed else n, tuple(n * k * count for count in matrices))
    return Gemm(batch=batch, m=m, n=n, k=k, a=a, b=b)


def _machine(**rates):
    found = {f"{element}_{way}": (rate,) * len(SIZES) for element in ("f32", "f64") for way, rate in rates.items()}
    return replace(REFERENCE, **found)


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize(
    ("rates", "chosen"),
    [
        (dict(code=100, shared=50, library=50), "kernel"),
        (dict(code=50, shared=100, library=50), "shared"),
        (dict(code=50, shared=50, library=100), "library"),
        (dict(code=100, shared=100, library=100), "shared"),  # which takes next to nothing to compile
        (dict(code=108, shared=100, library=100), "shared"),
        (dict(code=50, shared=100, library=102), "shared"),  # whose threads don't wait by spinning
    ],
)
def test_the_fastest_is_chosen(element, rates, chosen):
    assert choose_implementation(_gemm(512, 512, 512), element, _machine(**rates)) == chosen


def test_what_is_around_a_product_is_stored_for_a_library():
    machine, gemm = _machine(code=50, shared=100, library=110), _gemm(512, 512, 512)
    assert choose_implementation(gemm, "f32", machine) == "library"
    assert choose_implementation(gemm, "f32", machine, outside=1 << 21) == "shared"


def test_tiles_beside_other_ops_where_code_is_not_much_faster():
    gemm = _gemm(256, 256, 256)
    for code, found in ((108, True), (130, False)):
        machine = _machine(code=code, shared=100, library=50)
        assert is_done_in_tiles(gemm, "f32", machine, "auto") is found
        assert not is_done_in_tiles(gemm, "f32", machine, "kernel")
        assert is_done_in_tiles(gemm, "f32", machine, "shared")
    assert not is_done_in_tiles(_gemm(4, 4096, 1024), "f32", _machine(code=50, shared=100, library=50), "auto")


def test_a_large_factor_for_few_rows_is_read_once():
    machine = _machine(code=105, shared=100, library=90)
    assert choose_implementation(_gemm(1024, 1024, 1024), "f32", machine) == "shared"
    assert choose_implementation(_gemm(32, 4096, 1024), "f32", machine) == "kernel"


def test_transposed_factors_cost_code_for_the_shape_more():
    machine = _machine(code=115, shared=100, library=50)
    assert choose_implementation(_gemm(512, 512, 512), "f64", machine) == "kernel"
    assert choose_implementation(_gemm(512, 512, 512, a_transposed=True), "f64", machine) == "shared"
    assert choose_implementation(_gemm(48, 2048, 512, b_transposed=True), "f64", machine, 0, True) == "kernel"


@pytest.mark.parametrize(
    ("gemm", "element", "chosen"),
    [
        (_gemm(16, 16, 16), "f32", "kernel"),  # over before a call has begun
        (_gemm(1, 1000, 1000), "f32", "kernel"),  # limited by memory, which our tasks read with all cores
        (_gemm(1000, 1, 1000), "f64", "kernel"),
        (_gemm(64, 64, 64), "f32", "shared"),  # not worth code of its own
        (_gemm(28, 64, 64), "f32", "library"),
        (_gemm(64, 64, 64, batch=(100,)), "f32", "shared"),
        (_gemm(500, 500, 8), "f32", "library"),
        (_gemm(512, 512, 512), "complex<f32>", "library"),
    ],
)
def test_products_of_other_kinds(gemm, element, chosen):
    assert choose_implementation(gemm, element, REFERENCE) == chosen


def test_few_rows_of_a_batch_that_does_not_lie_at_one_distance_are_not_packed():
    machine, gemm = _machine(code=50, shared=100, library=60), _gemm(512, 512, 64, batch=(3, 2))
    assert choose_implementation(gemm, "f32", machine) == "shared"
    apart = replace(gemm, a=replace(gemm.a, batch_strides=(5 * 512 * 64, 512 * 64)))
    assert choose_implementation(apart, "f32", machine) == "library"
