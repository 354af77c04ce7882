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


def program_of_given_refs(lib, np_):
    """What is seen of refs that functions of transformations are given."""
    seen = []
    r, s = lib.new_ref(np_.arange(6.0).reshape(3, 2)), lib.new_ref(np_.ones(3))

    def scaled(row, x):
        row[0] += x
        row[1:] = row[1:] * s[0]
        return row[...].sum()

    seen += [lib.vmap(scaled)(r, np_.arange(3.0)), r[...]]
    seen += [lib.jit(lib.vmap(lambda col, x: col.set(x * col[...]), in_axes=(1, 0)))(r, np_.arange(2.0)), r[...]]

    def step(total, x):
        row, y = x
        old = row.swap(np_.full(2, y))
        return total + old.sum(), row[0]

    for reverse in (False, True):
        seen += [*lib.lax.scan(step, 0.0, (r, np_.arange(1.0, 4.0)), reverse=reverse), r[...]]

    def add(row, x):
        row[0] += x
        s[1] = x
        return row[0].sum()

    for pred in (True, False):
        seen += [lib.lax.cond(pred, add, lambda row, x: x, r, 2.0), r[...], s[...]]
    branches = [add, add, lambda row, x: row.addupdate(np_.full(2, x), (1, np_.array([0, 0]))) or x]
    seen += [lib.jit(lambda i: lib.lax.switch(i, branches, r, 3.0))(2), r[...]]

    counts = lib.new_ref(0.0, kind="no_grad_no_remat")

    @lib.checkpoint
    def counted(x, ref):
        ref[...] += x * x
        counts[...] += 1
        return np_.sin(x) * x

    given = lib.new_ref(1.0, kind="no_grad_no_remat")
    seen += [lib.grad(counted)(2.0, given), given[...], counts[...]]
    seen += [lib.jit(lib.grad(counted))(3.0, given), given[...], counts[...]]

    @lib.custom_vjp
    def stash(ref, x):
        return x

    stash.defvjp(lambda ref, x: (x, ref), lambda ref, g: (lib.ref.set(ref, ..., g), g))
    grads = lib.new_ref(0.0)

    def loss(ref, x):
        return np_.sin(stash(ref, np_.sin(x)))

    for f in (loss, lib.jit(loss), lib.checkpoint(loss)):
        seen += [lib.grad(f, 1)(grads, 1.5), grads[...]]
        grads[...] = 0.0
        seen += [lib.jit(lib.grad(f, 1))(grads, 0.5), grads[...]]
        grads[...] = 0.0
    part = r.at[1:]
    part[0] = part[1] * 2
    part.at[1][...] += 3.0
    seen += [part[...], r[...], np.asarray(part.shape)]
    aot = lib.new_ref(np_.zeros(3))

    @lib.jit
    def ahead(ref, x, n):
        ref[0] += x
        counts[...] += n
        return ref[...] * 2

    compiled = ahead.lower(aot, 1.0, 2).compile()
    seen += [compiled(aot, 3.0, 4), compiled(aot, 5.0, 6), aot[...], counts[...]]
    other = lib.new_ref(np_.ones(3))
    seen += [compiled(other, 1.0, 1), other[...], aot[...], ahead(other, 1.0, 1)]
    y, same = lib.lax.optimization_barrier((np_.ones(2), r))
    assert same is r
    return seen


def test_what_programs_see_of_refs():
    for i, (got, want) in enumerate(zip(program(lamina, jnp), program(jax, xnp), strict=True)):
        np.testing.assert_array_equal(got, want, err_msg=f"number {i}")


def test_what_functions_see_of_refs_given():
    got, want = program_of_given_refs(lamina, jnp), program_of_given_refs(jax, xnp)
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=f"number {i}")


def mistakes_with_refs(lib, np_):
    """Which wrong uses are refused, by ValueError."""
    r = lib.new_ref(np_.zeros(3))
    custom = lib.custom_vjp(lambda x: r)
    custom.defvjp(lambda x: (x, None), lambda _, g: (g,))
    made = lib.custom_vjp(lambda x: x)
    made.defvjp(lambda x: (x, lib.new_ref(x)), lambda _, g: (g,))
    return [
        (lambda: lib.vmap(lambda a, b: None)(r, r), "one reference"),
        (lambda: lib.lax.cond(True, lambda a, b: 0, lambda a, b: 1, r, r), "at both"),
        (lambda: lib.lax.cond(True, lambda a: r[0], lambda a: 1.0, r), "closed over and passed as the argument a"),
        (lambda: lib.lax.scan(lambda c, x: (r[0] + x[...], None), 0.0, r), "closed over and passed as the argument x"),
        (lambda: lib.jit(lambda a: a[...] + r[...])(r), "closed over and passed as the argument a"),
        (lambda: lib.lax.scan(lambda c, x: (lib.new_ref(c), x), 0, np_.arange(3)), "for scan returned a mutable array"),
        (lambda: lib.lax.cond(True, lambda: r, lambda: r), "for cond returned a mutable array"),
        (lambda: lib.jit(lib.new_ref)(1.0), "was created on line"),
        (lambda: custom(1.0), "returned a mutable array"),
        (lambda: lib.grad(made)(1.0), "custom_vjp fwd function"),
    ]


def test_mistakes_with_refs_given():
    with jax._src.config.mutable_array_checks(True):
        for lib, np_ in ((lamina, jnp), (jax, xnp)):
            for wrong, text in mistakes_with_refs(lib, np_):
                with pytest.raises(ValueError, match=text):
                    wrong()
    late = lamina.new_ref(jnp.zeros(2))
    stash = lamina.custom_vjp(lambda ref, x: x)
    stash.defvjp(lambda ref, x: (x, ref), lambda ref, g: (lamina.ref.set(ref, ..., g), g))
    loss = lambda x: lamina.lax.scan(lambda c, ref: (stash(ref, c), None), x, late)[0]  # noqa: E731
    with pytest.raises(ValueError, match="returned, as by a rule of derivatives"):
        lamina.grad(loss)(1.0)


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
    with pytest.raises(ValueError, match="unbatched array reference"):
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
