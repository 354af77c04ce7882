"""Custom calls as JAX's CPU rules write them: LAPACK, searches, handlers."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse
from jax.experimental.buffer_callback import buffer_callback
from support.oracle.jax_programs import check, compiled, options, run

from lamina.jax_plugin import ffi_targets, handlers
from lamina.jax_plugin.compiler import PluginError, deserialize_program
from lamina.jax_plugin.handlers import Handler

_A = np.random.default_rng(0).standard_normal((2, 5, 5)).astype(np.float32)
_SPD = _A @ _A.swapaxes(-1, -2) + 5 * np.eye(5, dtype=np.float32)
_TALL = np.random.default_rng(1).standard_normal((7, 4)).astype(np.float32)
_linalg = jax.lax.linalg


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    "f, x",
    [
        (jnp.linalg.cholesky, _SPD),
        (lambda x: jnp.linalg.cholesky(-x), _SPD),
        (_linalg.lu, _A),
        (jnp.linalg.det, _A),
        (jnp.linalg.inv, _SPD),
        (jnp.linalg.qr, _TALL),
        (lambda x: _linalg.qr(x, pivoting=True, full_matrices=False), _TALL),
        (jnp.linalg.eigvalsh, _SPD),
        (lambda x: abs(jnp.linalg.eigh(x)[1]), _SPD),
        (lambda x: jnp.sort(abs(jnp.linalg.eigvals(x))), _A),
        (lambda x: jnp.linalg.svd(x, compute_uv=False), _TALL),
        (lambda x: [abs(y) for y in jnp.linalg.svd(x, full_matrices=False)], _TALL),
        (_linalg.hessenberg, _A),
        (lambda x: _linalg.tridiagonal(x, lower=True), _SPD),
        (lambda x: [abs(y) for y in _linalg.schur(x)][0].diagonal(0, -2, -1).sum(-1), _SPD),
        (lambda x: _linalg.triangular_solve(x, x[..., :2], left_side=True, transpose_a=True, conjugate_a=True), _SPD),
        (lambda x: _linalg.tridiagonal_solve(x[0, 0] * 0.1, x[0, 1] * 0 + 4, x[0, 0] * 0.2, x[0]), _SPD),
    ],
)  # fmt: skip
def test_routines_of_lapack(f, x, dtype):
    with jax.enable_x64(True):
        is_wide = dtype in ("float64", "complex128")
        check(f, jnp.asarray(x, dtype), rtol=1e-8 if is_wide else 1e-3, atol=1e-9 if is_wide else 1e-3)


@pytest.mark.parametrize("aggregate", [True, False])
def test_approximate_searches_are_exact(aggregate):
    x = _A.reshape(5, 10)
    check(lambda v: jax.lax.approx_max_k(v, 3, aggregate_to_topk=aggregate), x)
    check(lambda v: jax.lax.approx_min_k(v, 3, reduction_dimension=0, aggregate_to_topk=aggregate), x)


def test_handlers_that_jax_brings():
    matrix = sparse.BCSR.fromdense(_TALL)
    check(lambda v: matrix @ v, np.ones(4, np.float32))


@pytest.mark.parametrize("results", [(), 3])
def test_calls_of_lapack_that_are_none(results):
    shapes = (jax.ShapeDtypeStruct((4, 4), np.float32),) * results if results else ()
    with pytest.raises(PluginError, match="does not take and give the arrays") as raised:
        compiled(lambda x: jax.ffi.ffi_call("lapack_sgeqrf_ffi", shapes, has_side_effect=True)(x), _TALL)
    assert raised.value.code == "UNIMPLEMENTED"


def test_programs_with_handlers_are_serialised(monkeypatch):
    matrix = sparse.BCSR.fromdense(_TALL)
    program = compiled(lambda v: matrix @ v, np.ones(4, np.float32))
    data = program.serialize()
    again = deserialize_program(data, options())
    np.testing.assert_allclose(run(again, np.ones(4, np.float32))[0], _TALL.sum(1), rtol=1e-5)
    monkeypatch.setattr(ffi_targets, "address_of", lambda name: None)
    with pytest.raises(PluginError, match="is not registered in this process") as raised:
        deserialize_program(data, options())
    assert raised.value.code == "FAILED_PRECONDITION"


def test_options_of_handlers_are_kept():
    options = {"a": np.float32(2.5), "b": "text", "c": np.arange(3), "d": {"e": np.bool_(True)}}
    call = Handler("f", 0, options, None, ((1, 0), None), {0: 1}, [])
    row = json.loads(json.dumps(call.row()))
    assert repr(handlers._value(row["attributes"])) == repr(options)


def test_buffer_callbacks(on_lamina):
    def double(context, result, x):
        assert context.stage.name == "EXECUTE" and not context.stream
        np.asarray(result)[...] = 2 * np.asarray(x)

    x = jnp.arange(6.0).reshape(2, 3)
    f = buffer_callback(double, jax.ShapeDtypeStruct((2, 3), np.float32))
    np.testing.assert_array_equal(jax.jit(lambda x: f(x) + 1)(x), 2 * np.asarray(x) + 1)
