"""lamina.numpy's shapes, joining and padding, methods and operators, against JAX."""

import numpy as np
import pytest
from support.oracle.judge import check, check_all

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(1)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)
V = np.array([3.0, 1.0, 2.0, 1.0], np.float32)


# ---- shapes --------------------------------------------------------------------------------------
def test_shapes():
    check_all(
        lambda m: {
            "reshape": m.np.reshape(X, (4, -1)),
            "F": m.np.reshape(X, (6, 4), order="F"),
            "ravel": m.np.ravel(X, "F"),
            "method": m.np.asarray(X).reshape(2, -1),
            "transpose": m.np.transpose(X),
            "axes": m.np.transpose(X, (1, -1, 0)),
            "T": m.np.asarray(X).T,
            "mT": m.np.asarray(X).mT,
            "swapaxes": m.np.swapaxes(X, 0, -1),
            "moveaxis": m.np.moveaxis(X, (0, 1), (-1, 0)),
            "rollaxis": m.np.rollaxis(X, 2, 0),
            "squeeze": m.np.squeeze(X[:1, :, :1]),
            "squeeze axis": m.np.squeeze(X[:1], 0),
            "expand": m.np.expand_dims(X, (0, -1)),
            "at1": tuple(m.np.atleast_1d(1.0, V)),
            "at2": m.np.atleast_2d(V),
            "at3": tuple(m.np.atleast_3d(V, X[0])),
            "broadcast_to": m.np.broadcast_to(V, (2, 4)),
            "broadcast_arrays": tuple(m.np.broadcast_arrays(X, V, 1.0)),
            "flip": m.np.flip(X, (0, 2)),
            "flipud": m.np.flipud(X),
            "fliplr": m.np.fliplr(X),
            "rot90": [m.np.rot90(X, k, (0, 2)) for k in range(-1, 4)],
            "roll": m.np.roll(X, 2),
            "roll axis": m.np.roll(X, -1, 1),
            "rolls": m.np.roll(X, (1, 2), (0, 2)),
            "tile": m.np.tile(V, (2, 2)),
            "tile low": m.np.tile(X, 2),
            "repeat": m.np.repeat(X, 2, 1),
            "repeat flat": m.np.repeat(V, 3),
            "repeat each": m.np.repeat(X, np.array([1, 0, 2]), 1),
        }
    )
    check(lambda m: m.jit(lambda s: m.np.roll(m.np.asarray(X), s, 1))(2))
    check(
        lambda m: m.jit(lambda r: m.np.repeat(m.np.asarray(V), r, total_repeat_length=6))(
            np.array([2, 0, 1, 1])
        )
    )
    for action, kind, text in [
        (
            lambda: jnp.reshape(V, (3, 3)),
            TypeError,
            r"cannot reshape array of shape \(4,\) \(size 4\) into shape \(3, 3\)",
        ),
        (lambda: jnp.reshape(V, (-1, 3)), TypeError, "does not evenly divide"),
        (lambda: jnp.reshape(V, (-1, -1)), TypeError, "can only specify one unknown axis size"),
        (
            lambda: jnp.squeeze(V, 0),
            ValueError,
            "cannot select an axis to squeeze out which has size not equal to one",
        ),
        (
            lambda: jnp.transpose(X[0], (0, 0)),
            TypeError,
            "isn't a permutation of operand dimensions",
        ),
        (
            lambda: jnp.broadcast_to(V, (3, 5)),
            ValueError,
            r"input type=float32\[4\] and requested type=float32\[3,5\]",
        ),
        (
            lambda: jnp.expand_dims(V, 5),
            ValueError,
            "axis 5 is out of bounds for array of dimension 2",
        ),
        (
            lambda: jnp.asarray(V).mT,
            ValueError,
            "at least two-dimensional for matrix_transpose; got ndim=1",
        ),
        (lambda: jnp.swapaxes(V, 0, 1), ValueError, "axis 1 is out of bounds"),
    ]:
        with pytest.raises(kind, match=text):
            action()


def test_joining():
    check_all(
        lambda m: {
            "concatenate": m.np.concatenate([X, X * 2], 1),
            "flat": m.np.concatenate([X, V], None),
            "promoted": m.np.concatenate([V, np.arange(2)]),
            "dtype": m.np.concatenate([V, V], dtype="int32"),
            "array": m.np.concatenate(X),
            "stack": m.np.stack([V, V + 1], -1),
            "hstack": m.np.hstack([X, X]),
            "hstack 1": m.np.hstack([V, 1.0]),
            "vstack": m.np.vstack([V, V]),
            "dstack": m.np.dstack([V, V]),
            "column_stack": m.np.column_stack([V, X[0, 0]]),
            "append": m.np.append(X, V),
            "append axis": m.np.append(X, X, 2),
            "split": m.np.split(X, 2, 2),
            "split at": m.np.split(V, [1, 3]),
            "array_split": m.np.array_split(V, 3),
            "hsplit": m.np.hsplit(X, 3),
            "vsplit": m.np.vsplit(X, 2),
            "dsplit": m.np.dsplit(X, 2),
            "block": m.np.block([[X[0], X[1]], [X[1], X[0]]]),
            "unstack": m.np.unstack(X, axis=1),
        }
    )
    for action, kind, text in [
        (lambda: jnp.concatenate([]), ValueError, "Need at least one array to concatenate"),
        (lambda: jnp.concatenate([V, X[0]]), TypeError, "different numbers of dimensions"),
        (
            lambda: jnp.concatenate([X[0], X[0, :, :2]]),
            TypeError,
            "differ in dimensions other than the one being concatenated",
        ),
        (
            lambda: jnp.stack([V, V[:2]]),
            ValueError,
            r"All input arrays must have the same shape. Got \(4,\), \(2,\)",
        ),
        (lambda: jnp.split(V, 3), ValueError, "array split does not result in an equal division"),
        (lambda: jnp.concatenate([1.0, 2.0]), ValueError, "Zero-dimensional arrays"),
    ]:
        with pytest.raises(kind, match=text):
            action()


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap", "reflect", "symmetric", "linear_ramp", "maximum",
                                  "minimum", "mean", "empty"])  # fmt: skip
def test_padding(mode):
    for widths in (1, (2, 1), ((0, 1), (3, 0), (1, 2)), 7):
        want = np.pad(X, widths, mode)
        got = np.asarray(jnp.pad(X, widths, mode))
        if mode == "empty":
            assert got.shape == want.shape
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    if mode in ("reflect", "symmetric"):
        want = np.pad(V, (6, 5), mode, reflect_type="odd")
        np.testing.assert_allclose(jnp.pad(V, (6, 5), mode, reflect_type="odd"), want, rtol=1e-6)
    if mode == "constant":
        check(lambda m: m.np.pad(V, 2, constant_values=(5, 6)))
        check(lambda m: m.grad(lambda x: (m.np.pad(x, 2) ** 2).sum())(V))
    if mode == "mean":
        check(lambda m: m.np.pad(np.arange(5), 2, mode))


def test_padding_errors():
    with pytest.raises(NotImplementedError, match="Unimplemented padding mode 'foo'"):
        jnp.pad(V, 1, "foo")
    with pytest.raises(ValueError, match="unsupported keyword arguments for mode 'edge'"):
        jnp.pad(V, 1, "edge", constant_values=1)
    with pytest.raises(TypeError, match="must be of integral type"):
        jnp.pad(V, 1.5)


# ---- methods -------------------------------------------------------------------------------------
def test_methods_and_operators():
    check_all(
        lambda m: {
            name: (lambda x: eval(text, {"x": x, "np": m.np, "V": V}))(m.np.asarray(X))  # noqa: S307
            for name, text in enumerate(
                [
                    "x + 1",
                    "1 + x",
                    "x - V",
                    "V - x",
                    "x * 2.0",
                    "2 / x",
                    "x // 0.3",
                    "x % 0.3",
                    "x ** 2",
                    "2.0 ** x",
                    "-x",
                    "+x",
                    "abs(x)",
                    "x > 0",
                    "x <= V",
                    "x == x",
                    "x != 1",
                    "(x > 0) & (x < 1)",
                    "~(x > 0)",
                    "(x > 0) | True",
                    "(x > 0) ^ True",
                    "divmod(x, 0.5)[1]",
                    "x @ x.mT",
                    "x.astype(int) << 1",
                    "x.astype(int) >> 1",
                    "x.sum()",
                    "x.mean(1)",
                    "x.max((0, 1))",
                    "x.min(axis=2, keepdims=True)",
                    "x.argmax(1)",
                    "x.argmin()",
                    "x.prod(0)",
                    "x.std()",
                    "x.var(1, ddof=1)",
                    "(x > 0).all(1)",
                    "(x > 0).any()",
                    "x.dot(V)",
                    "x.T",
                    "x.transpose(2, 0, 1)",
                    "x.transpose((1, 0, 2))",
                    "x.swapaxes(0, 1)",
                    "x.reshape(6, 4)",
                    "x.reshape((-1,))",
                    "x.squeeze()",
                    "x.ravel()",
                    "x.flatten()",
                    "x.clip(0, 1)",
                    "x.round(1)",
                    "round(x, 1)",
                    "x.conj()",
                    "x.real",
                    "x.imag",
                    "x.cumsum(1)",
                    "x.cumprod(0)",
                    "x.sort(0)",
                    "x.argsort(-1)",
                    "x.take(np.array([1, 2]), 1)",
                    "x.repeat(2, 0)",
                    "x.diagonal(0, 1, 2)",
                    "x.trace(0, 1, 2)",
                    "x.view('int32')",
                    "x.astype('float16').view('uint8')",
                    "(x + 2j).view('float32')",
                    "(x + 2j).view('uint8')",
                    "x[..., :2].view('complex64')",
                    "x[..., :2].view('uint16').view('complex64')",
                    "x[0].copy()",
                    "x.nonzero()",
                    "x.ptp()",
                    "x.astype('uint8')",
                    "x.at[0].get()",
                ]
            )
        }
    )


def test_foreign_operands():
    x = jnp.ones(2)
    for action in (
        lambda: x + [1, 2],
        lambda: (1, 2) + x,
        lambda: x * "a",
        lambda: x + None,
        lambda: x @ [1, 2],
    ):
        with pytest.raises(
            TypeError, match="unsupported operand|can only concatenate|integer scalar arrays"
        ):
            action()
    assert isinstance(np.ones(2) + x, lamina.Array) and isinstance(np.float32(1) * x, lamina.Array)
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    with pytest.raises(TypeError):
        x < "a"  # noqa: B015

    class Other:
        def __radd__(self, other):
            return "mine"

    assert x + Other() == "mine"
