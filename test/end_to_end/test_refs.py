"""Mutable arrays, against JAX."""

import jax
import jax.numpy as xnp
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp


def program(lib, np_):
    """What is seen of refs in one library."""
    seen = []
    r = lib.new_ref(np_.arange(4.0))
    r[...] += 1.0
    r[1:3] = np_.full(2, 7.0)
    seen += [r[...], r[0], r[np_.array([1, 3])], np.asarray(r.shape)]
    seen += [lib.ref.swap(r, 0, 9.0), lib.ref.get(r, 0)]
    lib.ref.addupdate(r, np_.array([2, 2]), np_.ones(2))
    lib.ref.set(r, 3, -1.0)
    seen.append(r[...])

    @lib.jit
    def given(ref, x, *, other):
        ref[0] = x
        other[...] = ref[...] * 2
        return ref[...].sum()

    s = lib.new_ref(np_.zeros(4))
    for x in (3.0, 4.0):
        seen += [given(r, x, other=s), r[...], s[...]]
    seen.append(given(s, 1.0, other=r))

    @lib.jit
    def from_outside(x):
        r[...] += x

        def body(i, total):
            s[i] = total
            return total + r[i]

        total = lib.lax.fori_loop(0, 4, body, 0.0)
        lib.lax.cond(x > 1, lambda: r.__setitem__(0, -x), lambda: None)

        def step(carry, y):
            s[0] = s[0] * y
            return carry, s[0]

        carry, ys = lib.lax.scan(step, total, np_.array([2.0, 3.0]))
        return lib.lax.while_loop(lambda i: i < 3, lambda i: (double(), i + 1)[1], 0), ys

    def double():
        r[1] = r[1] * 2

    for x in (1.0, 2.0):
        seen += [*from_outside(x), r[...], s[...]]

    def inside(x):
        q = lib.new_ref(x)
        q[...] = q[...] * q[...]
        return lib.freeze(q)

    # Positions of static arguments count refs; jits within jits use refs from outside.
    times = lib.jit(lambda n, ref: ref.__setitem__(0, ref[0] * n), static_argnums=0)
    times(3.0, r)
    seen += [lib.jit(lambda x: (from_outside(x), r[...])[1])(0.5), s[...]]
    seen += [lib.grad(inside)(3.0), lib.vmap(inside)(np_.arange(3.0)), lib.jit(inside)(4.0)]
    seen.append(lib.vmap(lambda x: r[0] * x)(np_.arange(2.0)))
    return seen


def test_what_programs_see_of_refs():
    for i, (got, want) in enumerate(zip(program(lamina, jnp), program(jax, xnp), strict=True)):
        np.testing.assert_array_equal(got, want, err_msg=f"number {i}")


def test_types_and_mistakes():
    r = lamina.new_ref(jnp.zeros(2))
    assert repr(r) == "Ref([0., 0.], dtype=float32)" and str(lamina.typeof(r)) == "Ref{float32[2]}"
    assert isinstance(r, lamina.Ref) and not isinstance(r, lamina.Array) and r.size == 2
    with pytest.raises(ValueError, match="Invalid dtype"):
        r[0] = 1
    with pytest.raises(ValueError, match="Invalid shape"):
        r[...] = 1.0
    with pytest.raises(ValueError, match="only one reference"):
        lamina.jit(lambda a, b: a[...] + b[...])(r, r)
    with pytest.raises(ValueError, match="cannot be returned"):
        lamina.jit(lambda a: a)(r)
    with pytest.raises(TypeError):
        jnp.sin(r)
    with pytest.raises(ValueError, match="outside of the transformation"):
        lamina.vmap(lambda x: r.__setitem__(0, x))(jnp.arange(2.0))
    with pytest.raises(ValueError, match="outside of the transformation"):
        lamina.grad(lambda x: (r.__setitem__(0, x), x)[1])(1.0)
    np.testing.assert_array_equal(r[...], [0, 0])
    lamina.free_ref(r)
    with pytest.raises(RuntimeError, match="freed"):
        r[...]


def test_refs_elsewhere_change_no_message():
    ref = lamina.new_ref(jnp.zeros(2))

    def body(carry, x):
        if carry > 0:
            return carry, x
        return carry, x

    with pytest.raises(lamina.errors.TracerBoolConversionError, match=r"the function body at .* for scan"):
        lamina.lax.scan(body, 0.0, jnp.arange(3.0))
    with pytest.raises(OverflowError, match="argument path is x"):
        lamina.jit(lambda x: x)(2**40)
    with pytest.raises(TypeError, match="at path x"):
        lamina.jit(lambda x: x)("text")
    assert ref[...].shape == (2,)


def test_what_a_ref_says_of_itself():
    for lib, np_ in ((jax, xnp), (lamina, jnp)):
        ref = lib.new_ref(np_.zeros((3, 2)))
        assert len(ref) == 3 and int(lib.jit(lambda ref=ref, np_=np_: np_.int32(len(ref)))()) == 3
        assert ref.sharding == ref[...].sharding


def test_a_ref_is_freed_once():
    ref = lamina.new_ref(jnp.zeros(3))
    lamina.free_ref(ref)
    with pytest.raises(RuntimeError, match="freed before"):
        lamina.free_ref(ref)
