"""Products that are calls of one function for each type and order of factors: its numbers, and that it is
compiled once."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernel_runner import link

import lamina
from lamina.backends.cpu import products
from lamina.backends.llvm_codegen import OF_VECTORS, TargetMachine, emit
from lamina.backends.target import Target
from lamina.passes.kernels.cpu.gemm.product_code import JOB, product_code
from lamina.passes.kernels.cpu.gemm.product_shape import Shape
from lamina.passes.stablehlo.analysis.product_choice import SHARED_PRODUCT
from lamina.runtime.artifact import Artifact
from lamina.runtime.executable import LoadError

_RANDOM = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def wide():
    with lamina.enable_x64(True):
        yield


def _x(*shape: int) -> np.ndarray:
    return _RANDOM.normal(size=shape)


@pytest.fixture(autouse=True)
def _always_shared():
    """Whatever this machine would choose."""
    with lamina.config.matrix_products("shared"):
        yield


def _compiled(function: Any, *arguments: Any, **options: Any) -> Any:
    return lamina.jit(function).lower(*arguments).compile(**options)


def _is_shared(compiled: Any) -> bool:
    return f'lamina.library = "{SHARED_PRODUCT}"' in compiled.as_text("fused")


_ORDERS = {
    "nn": lambda a, b: a @ b,
    "nt": lambda a, b: a @ b.swapaxes(-1, -2),
    "tn": lambda a, b: a.swapaxes(-1, -2) @ b,
    "tt": lambda a, b: a.swapaxes(-1, -2) @ b.swapaxes(-1, -2),
}
_EPSILON = {np.float32: 2e-6, np.float64: 4e-15}


@functools.cache
def _function(vector_bits: int, bits: int, a_turned: bool, b_turned: bool) -> Callable[[int, int, int], None]:
    target = Target.host()
    symbol = f"product_{vector_bits}_{bits}_{a_turned}_{b_turned}"
    code = product_code(symbol, vector_bits, bits, a_turned, b_turned)
    emitted = emit(code, TargetMachine(target.triple, target.cpu, target.features), OF_VECTORS)
    library = link(emitted.object, symbol)
    _libraries.append(library)
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(library[symbol])


_libraries: list[Any] = []  # as long as their code is called


def _factors(order: str, batch: tuple[int, ...], m: int, n: int, k: int, dtype: Any) -> tuple[np.ndarray, ...]:
    a = _x(*batch, m, k) if order[0] == "n" else _x(*batch, k, m)
    b = _x(*batch, k, n) if order[1] == "n" else _x(*batch, n, k)
    return a.astype(dtype), b.astype(dtype)


def _assert_product(found: Any, order: str, a: np.ndarray, b: np.ndarray, before: np.ndarray | None = None) -> None:
    """Each sum, added to what was there `before`, within what its rounding may come to."""
    wide = _ORDERS[order](a.astype(np.float64), b.astype(np.float64))
    most = _ORDERS[order](abs(a.astype(np.float64)), abs(b.astype(np.float64)))
    if before is not None:
        wide, most = wide + before, most + abs(before)
    assert found.dtype == a.dtype
    assert (abs(np.asarray(found) - wide) <= _EPSILON[a.dtype.type] * most * 4).all()


@pytest.mark.parametrize("order", _ORDERS)
@pytest.mark.parametrize("m, n, k", [(511, 343, 257), (323, 330, 393), (913, 64, 700), (500, 1030, 65)])
def test_rows_columns_and_terms_of_any_number(order, m, n, k):
    a, b = _factors(order, (), m, n, k, np.float64)
    compiled = _compiled(_ORDERS[order], a, b)
    assert _is_shared(compiled)
    _assert_product(compiled(a, b), order, a, b)


def test_of_f32():
    a, b = _factors("nn", (), 500, 300, 260, np.float32)
    compiled = _compiled(_ORDERS["nn"], a, b)
    assert _is_shared(compiled)
    _assert_product(compiled(a, b), "nn", a, b)


@pytest.mark.parametrize("order", _ORDERS)
def test_a_batch(order):
    a, b = _factors(order, (3,), 170, 180, 190, np.float64)
    compiled = _compiled(_ORDERS[order], a, b)
    assert _is_shared(compiled)
    _assert_product(compiled(a, b), order, a, b)


def test_a_batch_whose_matrices_lie_apart():
    """Heads between rows and columns; one matrix for all of a batch."""
    a, b = _x(170, 3, 190).astype(np.float32), _x(180, 3, 190).astype(np.float32)
    compiled = _compiled(lambda a, b: lamina.numpy.einsum("qhd,khd->hqk", a, b), a, b)
    _assert_product(compiled(a, b), "nt", a.swapaxes(0, 1), b.swapaxes(0, 1))
    c = _x(190, 180).astype(np.float32)
    compiled = _compiled(lambda a, c: lamina.numpy.matmul(a, c), a.swapaxes(0, 1).copy(), c)
    _assert_product(compiled(a.swapaxes(0, 1).copy(), c), "nn", a.swapaxes(0, 1), np.broadcast_to(c, (3, 190, 180)))


@settings(max_examples=int(os.environ.get("LAMINA_TEST_EXAMPLES", 40)), deadline=None)
@given(
    vector_bits=st.sampled_from((128, 256, 512)), dtype=st.sampled_from(list(_EPSILON)),
    order=st.sampled_from(list(_ORDERS)), m=st.integers(1, 400), n=st.integers(1, 150), k=st.integers(1, 450),
    batch=st.integers(1, 3), a_in_place=st.booleans(), b_in_place=st.booleans(),
    least=st.integers(1, 5), most=st.integers(1, 20), adds=st.booleans(),
)  # fmt: skip
def test_code_for_vectors_of_any_width(
    vector_bits, dtype, order, m, n, k, batch, a_in_place, b_in_place, least, most, adds
):
    """The function itself, whose wide vectors a processor without them does in halves."""
    bits = 8 * np.dtype(dtype).itemsize
    turned = [letter == "t" for letter in order]
    function = _function(vector_bits, bits, *turned)
    a, b = _factors(order, (batch,), m, n, k, dtype)
    before = _x(batch, m, n).astype(dtype) if adds else None
    c = np.full((batch, m, n), np.nan, dtype) if before is None else before.copy()
    shape = Shape(vector_bits, bits, *turned)
    rows, chunks, panels = shape.division(m, n, least, most, (a_in_place, b_in_place))
    words = dict(
        a=a.ctypes.data, lda=a.strides[1], b=b.ctypes.data, ldb=b.strides[1], c=c.ctypes.data, ldc=c.strides[1],
        m=m, n=n, k=k, rows=rows, chunks=chunks, panels=panels,
        next_a=a.strides[0], next_b=b.strides[0], next_c=c.strides[0],
        a_in_place=a_in_place, b_in_place=b_in_place and order[1] == "n", adds=adds,
    )  # fmt: skip
    job = np.array([words[name] for name in JOB], np.int64)
    tasks = batch * chunks * panels
    function(job.ctypes.data, tasks // 2, tasks)  # in any order
    function(job.ctypes.data, 0, tasks // 2)
    _assert_product(c, order, a, b, before)


def test_what_is_not_finite_stays_where_it_is():
    a, b = _x(200, 300), _x(300, 140)
    a[3, 5], a[150, 299], b[7, 139], b[0, 0] = np.nan, np.inf, -np.inf, np.inf
    with np.errstate(invalid="ignore"):
        wanted = a @ b
    compiled = _compiled(lambda a, b: a @ b, a, b)
    assert _is_shared(compiled)
    np.testing.assert_allclose(np.asarray(compiled(a, b)), wanted, rtol=1e-11, atol=1e-11)


def test_several_batch_dimensions_are_rows():
    a, b = _x(20, 30, 128), _x(128, 128)
    compiled = _compiled(lambda a, b: lamina.numpy.einsum("rqs,sp->rqp", a, b), a, b)
    assert _is_shared(compiled)
    np.testing.assert_allclose(np.asarray(compiled(a, b)), a @ b, rtol=1e-11, atol=1e-11)


def test_in_a_loop():
    a, b = _x(200, 200) / 20, _x(200, 200)
    compiled = _compiled(lambda a, b: lamina.lax.fori_loop(0, 5, lambda _, b: a @ b, b), a, b)
    assert _is_shared(compiled)
    np.testing.assert_allclose(
        np.asarray(compiled(a, b)), np.linalg.matrix_power(a, 5) @ b, rtol=1e-9, atol=1e-10
    )


def test_one_function_of_all_products_and_programs(monkeypatch):
    monkeypatch.setattr(products, "_objects", {})
    emitted: list[str] = []
    emit = products.emit
    monkeypatch.setattr(products, "emit", lambda text, *rest: emitted.append(text) or emit(text, *rest))
    a, b, c = _x(200, 210), _x(210, 220), _x(220, 230)
    monkeypatch.setenv("LAMINA_CACHE", "0")
    first = _compiled(lambda a, b, c: (a @ b) @ c, a, b, c)
    second = _compiled(lambda a, b: a @ b, _x(170, 400), _x(400, 150))
    assert len(emitted) == 1
    for compiled in (first, second):
        artifact = compiled.artifact
        assert sum(name.startswith("lamina_product_") for name in artifact.objects) == 1
        assert not any(map(products.is_shared, artifact.manifest["imports"]))
    again = Artifact.from_bytes(first.artifact.to_bytes())
    assert again.objects == first.artifact.objects
    np.testing.assert_allclose(np.asarray(first(a, b, c)), a @ b @ c, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_on_any_processor(level):
    a, b = _x(300, 280), _x(280, 137)
    compiled = _compiled(lambda a, b: a @ b, a, b, target=f"cpu:{level}")
    try:
        found = np.asarray(compiled(a, b))
    except LoadError as error:
        pytest.skip(str(error))
    assert _is_shared(compiled)
    np.testing.assert_allclose(found, a @ b, rtol=1e-11, atol=1e-11)


def test_it_is_kept_in_the_store(monkeypatch, tmp_path):
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(products, "_objects", {})
    _compiled(lambda a, b: a @ b, _x(180, 200), _x(200, 190))

    def emit(*_: Any) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(products, "_objects", {})
    monkeypatch.setattr(products, "emit", emit)
    a, b = _x(181, 200), _x(200, 190)
    np.testing.assert_allclose(
        np.asarray(_compiled(lambda a, b: a @ b, a, b)(a, b)), a @ b, rtol=1e-11, atol=1e-11
    )
