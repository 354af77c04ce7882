"""Products that are calls of one function: its numbers, and that it is compiled once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lamina
from lamina.backends.cpu import products
from lamina.passes.stablehlo.gemm import SHARED_PRODUCT
from lamina.runtime.artifact import Artifact
from lamina.runtime.executable import LoadError

_RANDOM = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def wide():
    with lamina.enable_x64(True):
        yield


def _x(*shape: int) -> np.ndarray:
    return _RANDOM.normal(size=shape)


def _compiled(function: Any, *arguments: Any, **options: Any) -> Any:
    return lamina.jit(function).lower(*arguments).compile(**options)


def _is_shared(compiled: Any) -> bool:
    return f'lamina.library = "{SHARED_PRODUCT}"' in compiled.as_text("fused")


@pytest.mark.parametrize("m", [156, 157, 169, 182, 195, 511, 513, 1030])
@pytest.mark.parametrize("k, n", [(256, 128), (257, 143), (700, 130), (65, 401)])
def test_rows_columns_and_terms_of_any_number(m, k, n):
    a, b = _x(m, k), _x(k, n)
    compiled = _compiled(lambda a, b: a @ b, a, b)
    assert _is_shared(compiled)
    np.testing.assert_allclose(np.asarray(compiled(a, b)), a @ b, rtol=1e-11, atol=1e-11)


def test_what_is_not_finite_stays_where_it_is():
    a, b = _x(200, 300), _x(300, 140)
    a[3, 5], a[150, 299], b[7, 139], b[0, 0] = np.nan, np.inf, -np.inf, np.inf
    with np.errstate(invalid="ignore"):
        wanted = a @ b
    compiled = _compiled(lambda a, b: a @ b, a, b)
    assert _is_shared(compiled)
    np.testing.assert_allclose(np.asarray(compiled(a, b)), wanted, rtol=1e-11, atol=1e-11)


def test_only_products_that_stand_alone():
    a, b, c = _x(200, 200), _x(200, 200), _x(200, 200)
    for function in (
        lambda a, b, c: a @ b + c,  # what follows is done on the sums
        lambda a, b, c: (a + c) @ b,  # and what makes a factor, panel by panel
        lambda a, b, c: a @ np.exp(b) if isinstance(b, np.ndarray) else a @ lamina.numpy.exp(b),
        lambda a, b, c: a.T @ b,
        lambda a, b, c: a @ b.T,
    ):
        compiled = _compiled(function, a, b, c)
        assert not _is_shared(compiled)
        np.testing.assert_allclose(np.asarray(compiled(a, b, c)), function(a, b, c), rtol=1e-11, atol=1e-10)


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
