"""Values that loops and branches hand through: not carried, not batched, and arrays of their own."""

from typing import Any

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

W = np.array([[1.0, 0.5], [0.25, 1.0]], np.float32)
XS = np.arange(8, dtype=np.float32).reshape(4, 2)


def while_(w: Any, x: Any, n: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] @ s[2], s[2]), (0, x, w))[1:]


def scan(w: Any, x: Any, n: Any) -> Any:
    return lax.scan(lambda s, _: ((s[0] @ s[1] * n, s[1]), None), (x, w), None, length=3)[0]


def cond(w: Any, x: Any, n: Any) -> Any:
    return lax.cond(n > 1, lambda x, w: (x @ w, w), lambda x, w: (x + 1, w), x, w)


@pytest.mark.parametrize("run", [while_, scan, cond])
def test_they_stay_unbatched(run):
    counts = jnp.arange(4)
    out, w = lamina.vmap(run, in_axes=(None, 0, 0), out_axes=(0, None))(W, XS, counts)
    np.testing.assert_array_equal(w, W)
    each = [run(W, x, n)[0] for x, n in zip(XS, counts, strict=True)]
    np.testing.assert_allclose(out, np.stack(each), rtol=1e-6)


@pytest.mark.parametrize("run", [while_, scan, cond])
def test_they_are_arrays_of_their_own(run):
    w = jnp.asarray(W)
    _, kept = run(w, XS[0], 2)
    assert kept is not w
    w.delete()
    np.testing.assert_array_equal(kept, W)
    assert isinstance(run(W, XS[0], 2)[1], lamina.Array)


@pytest.mark.parametrize("run", [scan, cond])
def test_reverse_mode(run):
    def loss(w: Any) -> Any:
        x, w = run(w, XS[1], 2)
        return x.sum() + (w * w).sum()

    lamina.test_util.check_grads(loss, (W,), order=2)


def test_a_loop_that_keeps_everything_still_ends():
    assert lax.while_loop(lambda x: x > 0, lambda x: x, 0) == 0
    assert lax.scan(lambda c, _: (c, c), 3, None, length=2)[1].tolist() == [3, 3]
    assert lax.cond(True, lambda x, y: (y, y), lambda x, y: (y, y), 1, 2) == (2, 2)
    assert lax.switch(1, [lambda x, y: (x, y), lambda x, y: (y, y)], 1, 2) == (2, 2)


def test_a_bound_that_is_carried_is_a_constant():
    jaxpr = lamina.make_jaxpr(lambda n: lax.fori_loop(0, n, lambda i, total: total + i, 0))(3)
    (loop,) = jaxpr.eqns
    assert (loop.params["cond_nconsts"], loop.params["body_nconsts"], len(loop.outvars)) == (1, 0, 2)


def test_kept_values_with_what_vmap_batches():
    def f(a: Any, b: Any) -> Any:
        return lax.scan(lambda s, x: ((s[0], s[1] + s[0] * x, s[2]), s[2]), (a, b, a), jnp.arange(3.0))

    out = lamina.vmap(f, in_axes=(0, None))(jnp.arange(2.0), 1.0)
    np.testing.assert_array_equal(out[0][0], [0, 1])
    np.testing.assert_array_equal(out[0][1], [1, 4])
    np.testing.assert_array_equal(out[1], [[0, 0, 0], [1, 1, 1]])
