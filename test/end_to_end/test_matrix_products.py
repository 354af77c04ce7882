"""Who does matrix products: the setting `matrix_products`, everywhere it can be given."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import config, lax
from lamina.passes.framework.base import CompileError

_RANDOM = np.random.default_rng(3)
_SIDE = {"kernel": 1024, "library": 16}
"""Of matrices that the other one does by default."""


def _x(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _RANDOM.normal(size=shape).astype(dtype)


def _product(a: Any, b: Any) -> Any:
    return a @ b


@pytest.fixture
def put_back() -> Iterator[None]:
    yield
    config.update("matrix_products", "auto")


def _doers(compiled: Any) -> set[str]:
    """The kinds of the kernels of products, by the program's form after fusion."""
    rows = compiled.artifact.manifest["kernels"]
    return {row["kind"] for row in rows if "dot_general" in row["ops"]}


def _of_call(jitted: Any, *arguments: Any) -> str:
    """Who does a product when the function is called, by what the runtime has loaded."""
    text = jitted.lower(*arguments).compile().as_text("fused")
    return "library" if 'lamina.library = "openblas.gemm"' in text else "kernel"


_KIND = {"kernel": {"output"}, "library": {"library"}}


@pytest.mark.parametrize("choice", ["kernel", "library"])
def test_every_way_to_say_it(choice, put_back):
    x = _x(_SIDE[choice], _SIDE[choice])
    other = "kernel" if choice == "library" else "library"
    options = {"matrix_products": choice}
    assert _doers(lamina.jit(_product).lower(x, x).compile()) == _KIND[other]
    assert _doers(lamina.jit(_product, compiler_options=options).lower(x, x).compile()) == _KIND[choice]
    assert _doers(lamina.jit(_product).lower(x, x).compile(compiler_options=options)) == _KIND[choice]
    with config.matrix_products(choice):
        lowered = lamina.jit(_product).lower(x, x)
        assert _doers(lowered.compile()) == _KIND[choice]
        automatic = lamina.jit(_product, compiler_options={"lamina_matrix_products": "auto"})
        assert _doers(automatic.lower(x, x).compile()) == _KIND[other]  # the nearer goes first
    assert f'lamina.matrix_products = "{choice}"' in lowered.as_text()
    assert _doers(lowered.compile()) == _KIND[choice]  # as when it was lowered
    config.update("jax_matrix_products", choice)
    assert _doers(lamina.jit(_product).lower(x, x).compile()) == _KIND[choice]
    assert _doers(lamina.jit(_product).lower(x, x).compile({"matrix_products": "auto"})) == _KIND[other]


def test_calls_of_one_function_go_each_their_way():
    """No memory of a function's programs, nor the fast path, gives what another choice compiled."""
    a = b = _x(16, 16)
    plain = lamina.jit(_product)
    by_library = lamina.jit(_product, compiler_options={"matrix_products": "library"})
    programs = []
    for jitted in (plain, by_library, plain, by_library):
        jitted(a, b)
    from lamina.jit.traces import _traces

    for traced in _traces[_product].values():
        programs += [(key[2], p.compilation) for key, p in traced.programs.items()]
    found = {settings: c.artifact.manifest["kernels"][0]["kind"] for settings, c in programs}
    assert found[()] == "output" and found[("matrix_products", "library"),] == "library"

    choices = []

    @lamina.jit
    def noted(a, b):
        choices.append(config.matrix_products.value)
        return a @ b

    noted(a, b)
    with lamina.matrix_products("library"):
        noted(a, b)
    noted(a, b)
    assert choices == ["auto", "library"]  # a program for each, and the first again


def test_the_environment_says_it(tmp_path):
    code = (
        "import numpy as np, lamina; x = np.ones((16, 16), np.float32);"
        "c = lamina.jit(lambda x: x @ x).lower(x).compile();"
        "print(c.artifact.manifest['kernels'][0]['kind'], c.from_cache)"
    )

    def run(value: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "LAMINA_MATRIX_PRODUCTS": value, "LAMINA_CACHE": "1",
                       "LAMINA_CACHE_DIR": str(tmp_path)}  # fmt: skip
        return subprocess.run([sys.executable, "-c", code], env=environment, text=True,
                              capture_output=True, timeout=600)  # fmt: skip

    said = [run(value).stdout.split() for value in ("auto", "library", "kernel", "library")]
    assert said == [["output", "False"], ["library", "False"], ["output", "False"], ["library", "True"]]
    wrong = run("openblas")
    assert wrong.returncode and (
        "LAMINA_MATRIX_PRODUCTS='openblas': expected one of auto, kernel, shared, library" in wrong.stderr
    )


@pytest.mark.parametrize("choice", ["kernel", "library"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128,
                                   np.float16, np.int8, jnp.bfloat16])  # fmt: skip
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (5, 7, 3), (1, 40, 33), (33, 40, 1), (40, 70, 65), (0, 4, 3)])
def test_values(choice, dtype, m, k, n):
    def several(a, b, c, d, einsum=jnp.einsum):
        return a @ b, a.T @ (a @ b), (a @ b) @ b.T, einsum("xmk,xkn->xmn", c, d), (a @ b) * 2 + 1

    with lamina.enable_x64(True), config.matrix_products(choice):
        given = [
            (_RANDOM.integers(-3, 4, s) + (1j if np.dtype(dtype).kind == "c" else 0)).astype(dtype)
            for s in ((m, k), (k, n), (3, m, k), (3, k, n))
        ]
        found = lamina.jit(several)(*given)
        exact = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
        wanted = several(*[x.astype(exact) for x in given], np.einsum)
    if dtype == np.int8:
        wanted = [w.astype(np.int64).astype(np.int8) for w in wanted]
    loose = dtype in (np.float16, jnp.bfloat16)
    for mine, theirs in zip(found, wanted):
        np.testing.assert_allclose(
            np.asarray(mine).astype(exact), theirs, rtol=3e-2 if loose else 1e-5, atol=1.0 if loose else 1e-3
        )


@pytest.mark.parametrize("m, k, n", [(513, 520, 400), (1101, 310, 517), (2300, 260, 700)])
@pytest.mark.parametrize("form", ["plain", "followed", "turned"])
def test_large_products_of_f64_are_ours(m, k, n, form):
    a, b, c = (_x(*shape, dtype=np.float64) for shape in ((m, k), (k, n), (m, n)))
    functions = {
        "plain": lambda a, b, c: a @ b,
        "followed": lambda a, b, c: 1.5 * (a @ b) + 1.2 * c,
        "turned": lambda a, b, c: a @ b.T,
    }
    given = (a, np.ascontiguousarray(b.T), c) if form == "turned" else (a, b, c)
    with lamina.enable_x64(True):
        jitted = lamina.jit(functions[form])
        found = jitted(*given)
        assert _of_call(jitted, *given) == "kernel"
    np.testing.assert_allclose(np.asarray(found), functions[form](*given), rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m, n", [(200, 160), (64, 300), (300, 64), (1000, 20)])
def test_products_with_a_vector_are_ours(dtype, m, n):
    a, x, y = _x(m, n, dtype=dtype), _x(n, dtype=dtype), _x(m, dtype=dtype)
    with lamina.enable_x64(True):
        for function, vector in ((lambda a, x: a @ x, x), (lambda a, y: y @ a, y)):
            jitted = lamina.jit(function)
            found = jitted(a, vector)
            assert _of_call(jitted, a, vector) == "kernel"
            wanted = function(a.astype(np.float64), vector.astype(np.float64))
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-4)


def test_products_in_loops_and_gradients():
    w, x = _x(8, 8) / 3, _x(8)

    def run(w, x):
        return lax.scan(lambda x, _: (jnp.tanh(w @ x), x.sum()), x, length=9)

    def loss(w, x):
        last, sums = run(w, x)
        return last.sum() + sums.sum()

    results = {}
    for choice in ("auto", "kernel", "library"):
        options = {"matrix_products": choice}
        jitted = lamina.jit(lamina.value_and_grad(loss), compiler_options=options)
        results[choice] = lamina.tree.leaves(jitted(w, x))
        code = jitted.lower(w, x).compile()
        assert code.artifact.manifest["kernels"][0]["kind"] == "control"
        imports = code.artifact.manifest["imports"]
        assert any("gemm" in name or "gemv" in name for name in imports) == (choice == "library")
    for choice in ("kernel", "library"):
        for mine, theirs in zip(results[choice], results["auto"]):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_eager_operations_obey_too():
    a, b = jnp.asarray(_x(64, 64)), jnp.asarray(_x(64, 64))
    wanted = np.asarray(a) @ np.asarray(b)
    for choice in ("library", "kernel", "auto"):
        with config.matrix_products(choice):
            np.testing.assert_allclose(a @ b, wanted, rtol=1e-3, atol=1e-4)


def test_stablehlo_of_others():
    def text(attributes: str) -> str:
        return f"""
        module @m {attributes} {{
          func.func public @main(%a: tensor<16x16xf32>) -> tensor<16x16xf32> {{
            %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
              : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
            return %0 : tensor<16x16xf32>
          }}
        }}"""

    a = _x(16, 16)

    def kind(program: Any) -> str:
        np.testing.assert_allclose(program(a)[0], a @ a, rtol=1e-4, atol=1e-5)
        return program.compilation.artifact.manifest["kernels"][0]["kind"]

    said = 'attributes {lamina.matrix_products = "library"}'
    assert kind(lamina.compile_stablehlo(text(""))) == "output"
    assert kind(lamina.compile_stablehlo(text(said))) == "library"
    with config.matrix_products("library"):
        assert kind(lamina.compile_stablehlo(text(""))) == "library"
    with config.matrix_products("kernel"):
        assert kind(lamina.compile_stablehlo(text(said))) == "library"
    with pytest.raises(CompileError, match="lamina.matrix_products is 'blas'; expected one of auto, kernel"):
        lamina.compile_stablehlo(text('attributes {lamina.matrix_products = "blas"}'))


def test_exported_programs_keep_it():
    a = _x(16, 16)
    with config.matrix_products("library"):
        exported = lamina.export.export(lamina.jit(_product))(a, a)
    again = lamina.export.deserialize(exported.serialize())
    assert 'lamina.matrix_products = "library"' in again.mlir_module()
    np.testing.assert_allclose(again.call(a, a), a @ a, rtol=1e-4, atol=1e-5)


def test_wrong_options_are_refused():
    x = _x(4, 4)
    for wrong, error, text in (
        ({"matrix_products": "blas"}, ValueError, "config option matrix_products: expected one of auto, kernel, "
                                                  "shared, library; got 'blas'"),
        ({"matrix_product": "kernel"}, ValueError, "No such compile option: 'matrix_product'. Did you mean "
                                                   "matrix_products"),
        ({"enable_x64": True}, ValueError, "'enable_x64'. It is a setting: use lamina.config.update"),
        ({1: 2}, ValueError, "No such compile option: 1"),
        (["matrix_products"], TypeError, "compiler_options is a dict"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            lamina.jit(_product, compiler_options=wrong)
        with pytest.raises(error, match=text):
            lamina.jit(_product).lower(x, x).compile(wrong)
    with pytest.raises(ValueError, match="expected one of auto, kernel, shared, library; got True"):
        config.update("matrix_products", True)
    assert config.matrix_products.value == "auto"


def test_a_nested_jit_has_no_say():
    x = _x(4, 4)
    inner = lamina.jit(lambda x: (x @ x).sum(), compiler_options={"matrix_products": "library"})
    for outer in (lamina.jit(lambda x: inner(x)), lamina.grad(inner), lamina.vmap(inner)):
        with pytest.raises(ValueError, match="(?s)only be passed to top-level.*outermost jit"):
            outer(x)


@pytest.mark.parametrize("rows", [2048, 2100, 2063])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_times_a_large_matrix(rows, dtype):
    """Rows of the matrix are taken eight, ten, or one at a time."""
    rng = np.random.default_rng(0)
    x, a = rng.standard_normal(rows).astype(dtype), rng.standard_normal((rows, 2064)).astype(dtype)
    with lamina.enable_x64(True):
        result = lamina.jit(lambda x, a: x @ a)(x, a)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, x @ a, rtol=1e-3, atol=1e-3 if dtype == np.float32 else 1e-11)
