"""lamina.numpy's products and einsum, against NumPy and JAX."""

import numpy as np
import pytest
from support.oracle.judge import check, check_all

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(1)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)
V = np.array([3.0, 1.0, 2.0, 1.0], np.float32)


# ---- products ------------------------------------------------------------------------------------
SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((1, 2, 3), (5, 3, 4)),
    ((3,), (5, 3, 2)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 2)),
    ((7, 1, 2, 3), (1, 4, 3, 1)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul(a, b):
    x, y = RNG.normal(size=a).astype(np.float32), RNG.normal(size=b).astype(np.float32)
    np.testing.assert_allclose(np.asarray(jnp.matmul(x, y)), np.matmul(x, y), rtol=1e-4, atol=1e-5)
    check(lambda m: m.np.dot(x, y))


def test_matmul_needs_no_transposition():
    eqns = lamina.make_jaxpr(jnp.matmul)(
        np.ones((5, 2, 3), np.float32), np.ones((3, 4), np.float32)
    ).eqns
    assert [e.primitive.name for e in eqns] == ["dot_general"]


def test_products():
    a, b = X[0], X[1]
    check_all(
        lambda m: {
            "vdot": m.np.vdot(a + 1j, b),
            "inner": m.np.inner(X, a),
            "outer": m.np.outer(V, a),
            "tensordot": m.np.tensordot(X, X, 3),
            "axes": m.np.tensordot(X, X, ((0, 2), (0, 2))),
            "one": m.np.tensordot(a, b, ([1], [1])),
            "zero": m.np.tensordot(V, V, 0),
            "trace": m.np.trace(X, 1, 1, 2),
            "kron": m.np.kron(a, V),
            "kron 2": m.np.kron(V[:2], a),
            "cross": m.np.cross(a[:, :3], b[:, :3]),
            "cross axis": m.np.cross(X[:, :, 0], X[:, :, 1], axis=1),
            "vecdot": m.np.vecdot(X, a),
            "matvec": m.np.matvec(X, V),
            "vecmat": m.np.vecmat(V[:3], X),
            "ints": m.np.matmul(np.arange(6).reshape(2, 3), np.arange(3)),
            "int8": m.np.dot(np.ones(3, np.int8), np.ones(3, np.int8)),
            "bool": m.np.matmul(np.ones((2, 2), bool), np.ones((2, 2), bool)),
            "mixed": m.np.matmul(a, np.ones((4, 2), int)),
            "weak": m.np.dot(2, 3),
            "preferred": m.np.dot(
                a.astype(np.float16), V.astype(np.float16), preferred_element_type="float32"
            ),
            "unsigned": m.lax.dot(np.uint8([200, 3]), np.uint8([200, 3]), preferred_element_type="int32"),
            "signs": m.lax.dot(np.uint8([200]), np.int8([-9]), preferred_element_type="int32"),
        }
    )
    for action, kind, text in [
        (lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)), TypeError, "sizes summed over are equal"),
        (
            lambda: jnp.float32(3) @ jnp.ones(3),
            ValueError,
            "matmul input operand 0 must have ndim at least 1",
        ),
        (lambda: jnp.tensordot(V, V, 2), TypeError, "exceeds input ranks"),
    ]:
        with pytest.raises(kind, match=text):
            action()


EINSUMS = [
    "ij,jk->ik",
    "ij,jk->ki",
    "ij,ij->",
    "ij->ji",
    "ii->i",
    "ii",
    "ij,kj->ik",
    "bij,bjk->bik",
    "bij,jk",
    "i,j->ij",
    "ij,j->i",
    "...ij,jk->...ik",
    "ij,jk,kl->il",
    "abc,cd,be->ade",
    "i,i,i->",
    "ijk->",
    "iji->j",
    "ij,ik,il->jkl",
    "bhqd,bhkd->bhqk",
    "a,ab,abc->abc",
    "ab,b",
    "aab->b",
    "ij,i->ij",
]


@pytest.mark.parametrize("subscripts", EINSUMS)
def test_einsum(subscripts):
    sizes = dict(zip("abcdehijklqy", [2, 3, 4, 2, 3, 2, 3, 3, 4, 2, 3, 2], strict=True))
    terms = subscripts.split("->")[0].split(",")
    arrays = [
        RNG.normal(
            size=tuple([5] if t.startswith("...") else [])
            + tuple(sizes[c] for c in t.replace("...", ""))
        ).astype(np.float32)
        for t in terms
    ]
    want = np.einsum(subscripts, *arrays)
    np.testing.assert_allclose(
        np.asarray(jnp.einsum(subscripts, *arrays)), want, rtol=1e-4, atol=1e-4
    )
    got = lamina.jit(lambda *xs: jnp.einsum(subscripts, *xs, optimize="greedy"))(*arrays)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-4)


def test_einsum_otherwise():
    a, b = X[0], X[1]
    check(lambda m: m.np.einsum(a, [0, 1], b, [2, 1], [0, 2]))
    check(lambda m: m.np.einsum("ij,ij", np.ones((2, 2), np.int8), np.ones((2, 2), np.int8)))
    check(lambda m: m.np.einsum("ij,j->i", a[:, :1], V))
    check(lambda m: m.grad(lambda x: m.np.einsum("ij,jk,kl->", x, x, x))(X[0, :, :3]))
    assert "dot_general" in str(
        lamina.make_jaxpr(lambda x, y: jnp.einsum("bij,bjk->bik", x, y))(X, X.swapaxes(1, 2))
    )
    with pytest.raises(ValueError, match="Size of label 'j' for operand 1"):
        jnp.einsum("ij,jk", np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(ValueError):
        jnp.einsum("ij,jk", np.ones((2, 3)))
