"""Exported functions: stored, read and called, also in transformations."""

from typing import NamedTuple

import jax
import jax.export
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import export


class Pair(NamedTuple):
    a: object
    b: object


def f(x, params, *, scale):
    def body(carry, row):
        carry = jnp.tanh(carry @ params["w"]) + row
        return carry, carry.sum()

    last, sums = lamina.lax.scan(body, jnp.zeros(3), x)
    return Pair(last * scale, {"sums": sums, "count": params["n"] + 1})


def arguments():
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    w = np.linspace(0, 0.5, 9, dtype=np.float32).reshape(3, 3)
    return (x, {"w": w, "n": np.int32(4)}), {"scale": np.float32(2)}


def test_stored_functions_compute_the_same():
    export.register_namedtuple_serialization(Pair, serialized_name="test_export.Pair")
    args, kwargs = arguments()
    made = export.export(lamina.jit(f))(*args, **kwargs)
    assert "stablehlo.while" in made.mlir_module() and made.fun_name == "f"
    assert made.platforms == (lamina.default_backend(),) and made.has_vjp()
    with pytest.raises(ValueError, match="pytree structure"):
        made.call(*args)
    read = export.deserialize(made.serialize(vjp_order=1))
    assert read.in_tree == made.in_tree and read.out_avals == made.out_avals
    wanted = f(*args, **kwargs)

    def loss(call, x, w):
        out = call(x, {"w": w, "n": np.int32(4)}, scale=np.float32(2))
        return (out.a**2).sum() + out.b["sums"].prod()

    for exported in (made, read):
        got = exported.call(*args, **kwargs)
        assert type(got) is Pair and int(got.b["count"]) == 5
        for a, b in zip(lamina.tree.leaves(got), lamina.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    x, w = args[0], args[1]["w"]
    gradients = lamina.jit(lamina.grad(lambda x, w: loss(read.call, x, w), (0, 1)))(x, w)
    for a, b in zip(gradients, lamina.grad(lambda x, w: loss(f, x, w), (0, 1))(x, w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    lanes = lamina.vmap(lambda x: loss(read.call, x, w))(np.stack([x, 2 * x]))
    np.testing.assert_allclose(lanes, [loss(f, x, w), loss(f, 2 * x, w)], rtol=1e-5)
    with pytest.raises(ValueError, match=r"Shape mismatch for args\[0\]"):
        read.call(x[:, :2], args[1], **kwargs)
    with pytest.raises(ValueError, match="Dtype mismatch"):
        read.call(x.astype(np.int32), args[1], **kwargs)
    bare = export.deserialize(made.serialize())
    assert not bare.has_vjp()
    with pytest.raises(ValueError, match="vjp_order=1"):
        lamina.grad(lambda x: loss(bare.call, x, w))(x)


def test_what_is_refused():
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(f)
    with pytest.raises(NotImplementedError, match="static"):
        export.symbolic_shape("b, 4")
    with pytest.raises(NotImplementedError, match="callbacks"):
        export.export(lamina.jit(lambda x: (lamina.debug.print("{}", x), x)[1]))(1.0)
    with pytest.raises(ValueError, match="not what"):
        export.deserialize(b"something else")
    whole = export.export(lamina.jit(jnp.sin))(lamina.ShapeDtypeStruct((3,), "float32")).serialize()
    for part in (whole[:-1], whole[:30], whole + b"x"):
        with pytest.raises(ValueError, match="was cut or changed"):
            export.deserialize(part)
    assert export.default_export_platform() == jax.export.default_export_platform()
