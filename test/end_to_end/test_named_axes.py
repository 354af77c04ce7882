"""Named axes under vmap: collectives, nesting, transformations, control flow, errors; against JAX."""

import numpy as np
import pytest
from support.oracle.judge import check_all

import lamina
from lamina import lax

X = np.arange(24, dtype=np.float32).reshape(4, 6)
Y = np.arange(128, dtype=np.float32).reshape(4, 4, 8)
RING = [(0, 1), (1, 2), (3, 0), (2, 3)]


def _values(m, x, y):
    l = m.lax  # noqa: E741
    v = lambda f, **k: m.vmap(f, axis_name="i", **k)  # noqa: E731
    return {
        "psum": v(lambda a: l.psum(a, "i"))(x),
        "pmean": v(lambda a: a - l.pmean(a, "i"))(x),
        "pmax": v(lambda a: l.pmax(a, "i"), out_axes=None)(x),
        "pmin": v(lambda a: a - l.pmin(a, "i"))(x),
        "axis_index": v(lambda a: a * l.axis_index("i"))(x),
        "size": v(lambda a: a * l.psum(1, "i"))(x),
        "positional": v(lambda a: l.psum(a, ("i", 0)))(x),
        "all_gather": v(lambda a: l.all_gather(a, "i", axis=1))(x),
        "tiled": v(lambda a: l.all_gather(a, "i", axis=0, tiled=True), out_axes=None)(x),
        "ppermute": v(lambda a: l.ppermute(a, "i", RING))(x),
        "pshuffle": v(lambda a: l.pshuffle(a, "i", [1, 2, 3, 0]), in_axes=1, out_axes=1)(x.T),
        "all_to_all": v(lambda a: l.all_to_all(a, "i", 0, 1))(y),
        "all_to_all 0": v(lambda a: l.all_to_all(a, "i", 0, 0))(y),
        "all_to_all tiled": v(lambda a: l.all_to_all(a, "i", 1, 0, tiled=True))(y),
        "pswapaxes": v(lambda a: l.pswapaxes(a, "i", 0))(y),
        "psum_scatter": v(lambda a: l.psum_scatter(a, "i"))(y),
        "scatter tiled": v(
            lambda a: l.psum_scatter(a, "i", scatter_dimension=1, tiled=True)
        )(y),
        "unbatched": v(lambda a: l.psum(m.np.ones(3), "i") + l.psum(2.0, "i"))(x),
        "two axes": m.vmap(m.vmap(
            lambda a, b: l.psum(a * b, ("i", "j")) + l.axis_index("i") * l.axis_index("j"),
            axis_name="j"), axis_name="i")(y, y),
        "not mapped": m.vmap(lambda a, b: a + l.psum(b, "i"), in_axes=(None, 0), axis_name="i")(x, x),
        "axis_size": m.vmap(lambda: l.axis_index("i"), axis_name="i", axis_size=3)(),
        "prefix": m.vmap(lambda p, q: p["a"] + q, in_axes=({"a": 1, "b": None}, -1))(
            {"a": x, "b": 1.0}, x),
    }  # fmt: skip


def _transformed(m, x, y):
    l, np_ = m.lax, m.np  # noqa: E741
    v = lambda f, **k: m.vmap(f, axis_name="i", **k)  # noqa: E731

    @m.custom_jvp
    def scaled(a):
        return a / l.psum(a, "i")

    scaled.defjvp(lambda primals, dots: (scaled(*primals), dots[0] * l.psum(primals[0], "i")))
    return {
        "grad of vmap": m.grad(lambda x: np_.sum(v(lambda a: l.psum(np_.sin(a), "i") * a)(x)))(x),
        "psum": v(m.grad(lambda a: np_.sum(l.psum(np_.sin(a), "i") * a)))(x),
        "all_gather": v(m.grad(lambda a: np_.sum(l.all_gather(np_.sin(a), "i")[2] * a)))(x),
        "ppermute": v(m.grad(lambda a: np_.sum(l.ppermute(np_.sin(a), "i", RING) * a)))(x),
        "jvp": v(lambda a: m.jvp(lambda b: l.psum_scatter(b * b, "i"), (a,), (a + 1,)))(y),
        "custom_jvp": v(lambda a: m.jvp(scaled, (a + 1,), (a,)))(x),
        "custom_jvp outside": m.jvp(v(scaled), (x + 1,), (x,)),
        "scan": v(lambda a: l.scan(
            lambda c, t: (c + l.psum(t, "i"), c * l.axis_index("i")), np_.float32(0), a))(x),
        "jit": v(m.jit(lambda a: l.psum(a, "i") + l.axis_index("i")))(x),
        "jit of nothing": v(lambda a: a + m.jit(lambda: l.axis_index("i"))())(x),
        "cond": v(lambda a: l.cond(
            l.axis_index("i") > 1, lambda a: a * 2 + 1, lambda a: a + 1, l.psum(a, "i")))(x),
        "while": v(lambda a: l.while_loop(
            lambda c: l.pmax(c, "i").sum() < 1e5, lambda c: c * 2 + l.psum(c, "i"), a + 1))(x),
    }  # fmt: skip


@pytest.mark.parametrize("program", [_values, _transformed])
def test_collectives(program) -> None:
    check_all(program, X, Y, jit=True, rtol=1e-4)


def test_eager_is_jit() -> None:
    got = lamina.vmap(lambda a: (lax.psum(a, "i"), lax.axis_size("i")), axis_name="i")(X)
    np.testing.assert_array_equal(got[0][0], X.sum(0))
    assert got[1].tolist() == [4] * 4


def test_more_than_jax_has() -> None:
    """Groups of lanes, partial permutations, tuples of names, the derivative of pmax."""
    groups = [[0, 3], [2, 1]]
    v = lambda f: lamina.vmap(f, axis_name="i")(X)  # noqa: E731
    sums = X[[0, 2]] + X[[3, 1]]
    np.testing.assert_array_equal(
        v(lambda a: lax.psum(a, "i", axis_index_groups=groups)), sums[[0, 1, 1, 0]]
    )
    np.testing.assert_array_equal(
        v(lambda a: lax.all_gather(a, "i", axis_index_groups=groups))[1], X[[2, 1]]
    )
    halves = v(lambda a: lax.psum_scatter(a, "i", axis_index_groups=groups, tiled=True))
    np.testing.assert_array_equal(halves[3], sums[0][3:])
    moved = np.asarray(v(lambda a: lax.ppermute(a, "i", [(0, 2)])))
    np.testing.assert_array_equal(moved[2], X[0])
    assert not moved[[0, 1, 3]].any()
    np.testing.assert_array_equal(v(lambda a: lax.pbroadcast(a, "i", 2)), X[[2] * 4])
    both = lamina.vmap(
        lamina.vmap(lambda a: lax.all_gather(a, ("i", "j")), axis_name="j"), axis_name="i"
    )(Y)
    np.testing.assert_array_equal(both[1, 2], Y.reshape(16, 8))
    slope = v(lambda a: lamina.jvp(lambda b: lax.pmax(b, "i"), (a,), (a * 0 + 2,))[1])
    np.testing.assert_array_equal(slope, np.full((4, 6), 2))


def test_traces_are_remembered_by_axis() -> None:
    f = lamina.jit(lambda a: lax.psum(a, "i"))
    np.testing.assert_array_equal(lamina.vmap(f, axis_name="i")(X)[0], X.sum(0))
    with pytest.raises(NameError, match="Found an unbound axis name: i"):
        lamina.vmap(f, axis_name="k")(X)
    np.testing.assert_array_equal(lamina.vmap(f, axis_name="i")(X[:2])[0], X[:2].sum(0))


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (NameError, "unbound axis name: z", lambda a: lax.psum(a, "z")),
        (NameError, "unbound axis name: z", lambda a: lax.axis_index("z")),
        (ValueError, "must be unique", lambda a: lax.ppermute(a, "i", [(0, 1), (0, 2)])),
        (ValueError, "indices 0 to 3", lambda a: lax.ppermute(a, "i", [(0, 4)])),
        (ValueError, "permutation", lambda a: lax.pshuffle(a, "i", [0, 0, 1, 2])),
        (ValueError, "requires the size of the mapped axis", lambda a: lax.all_to_all(a, "i", 0, 0)),
        (NotImplementedError, "use psum_scatter", lambda a: lax.psum_scatter_start(a, "i")),
        (ValueError, "must be equal to", lambda a: lax.psum_scatter(a, "i")),
        (ValueError, "each of the 4 indices",
         lambda a: lax.psum(a, "i", axis_index_groups=[[0, 1]])),
        (ValueError, "input_offsets must be integer type",
         lambda a: lax.ragged_all_to_all(a, a, a, a, a, a, axis_name="i")),
    ],
)  # fmt: skip
def test_errors(error, text, call) -> None:
    with pytest.raises(error, match=text):
        lamina.vmap(call, axis_name="i")(X)
