"""What stands on factorisations in random, nn.initializers and scipy.stats, against JAX."""

import jax
import jax.scipy.stats
import numpy as np
import pytest

import lamina
from lamina.scipy import stats

_R = np.random.RandomState(0)
_A = _R.randn(2, 3, 3).astype(np.float32)
_COV = _A @ _A.swapaxes(1, 2) + 2 * np.eye(3, dtype=np.float32)
_MEAN = _R.randn(3).astype(np.float32)


def _both(f):
    """f of each library and of a key of it, as one program of ours."""
    got = lamina.jit(lambda: f(lamina, lamina.random.key(3)))()
    want = jax.jit(lambda: f(jax, jax.random.key(3)))()
    assert set(got) == set(want)
    for name in got:
        g, w = np.asarray(got[name]), np.asarray(want[name])
        assert (g.shape, g.dtype) == (w.shape, w.dtype), name
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4, err_msg=name)


def test_samples_are_jaxs():
    def draw(library, key):
        random, init = library.random, library.nn.initializers
        out = {
            m: random.multivariate_normal(key, _MEAN, _COV, (4, 2), method=m)
            for m in ("cholesky", "eigh", "svd")
        }
        out["batch of the covariance"] = random.multivariate_normal(key, _MEAN, _COV)
        for n, m in ((3, None), (3, 5), (5, 2)):
            out[f"orthogonal {n} {m}"] = random.orthogonal(key, n, (2,), m=m)
        out["rows"] = init.orthogonal(2.0, 0)(key, (2, 3, 5))
        out["empty"] = init.orthogonal()(key, (0, 3))
        out["delta"] = init.delta_orthogonal()(key, (3, 2, 3, 4))
        return out

    _both(draw)


def test_refused():
    random, key, init = lamina.random, lamina.random.key(0), lamina.nn.initializers
    for message, call in (
        ("method argument must be one of", lambda: random.multivariate_normal(key, _MEAN, _COV, method="lu")),
        ("mean.ndim >= 1", lambda: random.multivariate_normal(key, 0.0, _COV)),
        ("cov.ndim >= 2", lambda: random.multivariate_normal(key, _MEAN, 1.0)),
        ("for n=2", lambda: random.multivariate_normal(key, _MEAN[:2], _COV)),
        ("Incompatible shapes", lambda: random.multivariate_normal(key, _MEAN, _COV, (3,))),
        ("at least a 2D", lambda: init.orthogonal()(key, (3,))),
        ("3D, 4D or 5D", lambda: init.delta_orthogonal()(key, (3, 3))),
        ("less or equal", lambda: init.delta_orthogonal()(key, (3, 4, 3))),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()


def test_multivariate_normal_density():
    x = _R.randn(5, 3).astype(np.float32)

    def densities(library, _):
        normal = (
            stats.multivariate_normal if library is lamina else jax.scipy.stats.multivariate_normal
        )
        return {
            "points": normal.logpdf(x, _MEAN, _COV[0]), "batch": normal.pdf(x[:2], _MEAN, _COV),
            "sphere": normal.logpdf(x, _MEAN, 2.0), "line": normal.logpdf(x[:, 0], _MEAN[0], 2.0),
        }  # fmt: skip

    _both(densities)


def test_kernel_density():
    data, at = _R.randn(2, 30).astype(np.float32), _R.randn(2, 7).astype(np.float32)
    weights = _R.uniform(0, 1, 30).astype(np.float32)

    def densities(library, key):
        kde = (stats if library is lamina else jax.scipy.stats).gaussian_kde
        out = {}
        for i, width in enumerate((None, "silverman", lambda _: 0.3)):
            made = kde(data, width, weights)
            out[f"width {i}"] = made(at)
        line = kde(data[0])
        return out | {
            "log": made.logpdf(at), "gaussian": made.integrate_gaussian(_MEAN[:2], _COV[0, :2, :2]),
            "two": made.integrate_kde(made), "sample": made.resample(key, (4,)),
            "line": line.pdf(at[0]), "box": line.integrate_box_1d(-1, 0.5), "neff": made.neff,
        }  # fmt: skip

    _both(densities)
    made = stats.gaussian_kde(data)
    with pytest.raises(ValueError, match="points have dimension 3"):
        made(_R.randn(3, 4))
    with pytest.raises(ValueError, match="`bw_method` should be"):
        stats.gaussian_kde(data, "wide")
    with pytest.raises(ValueError, match="only handles 1D"):
        made.integrate_box_1d(0, 1)
    with pytest.raises(NotImplementedError):
        made.set_bandwidth(1.0)
