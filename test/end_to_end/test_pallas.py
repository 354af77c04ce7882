"""experimental.pallas against JAX's interpret mode."""

import jax
import numpy as np
import pytest
from jax.experimental import pallas as jax_pallas

import lamina
import lamina.numpy as jnp
from lamina.experimental import pallas

X = np.random.default_rng(0).normal(size=(10, 12)).astype(np.float32)


def like(lib, x):
    return lib.ShapeDtypeStruct(np.shape(x), np.float32)


def add(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def whole(lib, pl):
    return pl.pallas_call(add, like(lib, X), interpret=True)(X, 2 * X)


def blocks_that_do_not_divide(lib, pl):
    block = pl.BlockSpec((4, None), lambda i, j: (i, j))
    return pl.pallas_call(
        add, like(lib, X), grid=(3, 12), in_specs=[block, block], out_specs=block, interpret=True
    )(X, 2 * X)


def product(lib, pl):
    def kernel(a, b, o, sums):
        @pl.when(pl.program_id(2) == 0)
        def _():
            sums[...] = lib.numpy.zeros((5, 2))

        sums[...] += a[...] @ b[...]

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o[...] = sums[...]

    return pl.pallas_call(
        kernel,
        like(lib, np.zeros((10, 10))),
        grid_spec=pl.GridSpec(
            grid=(2, 5, 3),
            in_specs=[
                pl.BlockSpec((5, 4), lambda i, j, k: (i, k)),
                pl.BlockSpec((4, 2), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((5, 2), lambda i, j, k: (i, j)),
            scratch_shapes=[pl.MemoryRef(lib.core.ShapedArray((5, 2), np.dtype("float32")), pl.ANY)],
        ),
        interpret=True,
    )


def a_batch_of_products(lib, pl):
    return lib.vmap(product(lib, pl), (0, None))(np.stack([X, 2 * X]), X.T)


def running_sum(lib, pl):
    def kernel(x_ref, o_ref):
        def body(i, total):
            total = total + x_ref[i]
            o_ref[pl.ds(i, 1)] = total[None]
            return total

        lib.lax.fori_loop(0, x_ref.shape[0], body, lib.numpy.zeros(12))

    return pl.pallas_call(kernel, like(lib, X), interpret=True)(X)


def in_place(lib, pl):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * (pl.program_id(0) + 1).astype(np.float32)

    block = pl.BlockSpec((5, 12), lambda i: (i, 0))
    return pl.pallas_call(
        kernel, like(lib, X), grid=(2,), in_specs=[block], out_specs=block,
        input_output_aliases={0: 0}, interpret=True,
    )(X)  # fmt: skip


def two_results_of_a_tree(lib, pl):
    def kernel(x_ref, scale_ref, sums, largest):
        sums[...] = x_ref["x"][...].sum(0) * scale_ref[...]
        largest[...] = x_ref["x"][...].max(1).astype(np.int32)

    shapes = (like(lib, X[0]), lib.ShapeDtypeStruct((10,), np.int32))
    return pl.pallas_call(kernel, shapes, interpret=True)({"x": X}, np.float32(2))


def windows_that_overlap(lib, pl):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].sum(1)

    return pl.pallas_call(
        kernel,
        like(lib, np.zeros((5, 10))),
        grid=5,
        in_specs=[pl.BlockSpec((pl.Element(10), pl.Element(4)), lambda i: (0, i * 2))],
        out_specs=pl.BlockSpec((None, 10), lambda i: (i, 0)),
        interpret=True,
    )(X)


def never_written(lib, pl):
    def kernel(x_ref, o_ref):
        @pl.loop(0, 5, step=2)
        def _(i):
            o_ref[i] = x_ref[i] * 2.0

        @pl.when(True)
        def _():
            o_ref[1] = x_ref[1]

    return pl.pallas_call(kernel, like(lib, X), interpret=True)(X)


def scoped(lib, pl):
    def kernel(x_ref, o_ref):
        def body(ref):
            ref[...] = x_ref[...] + 1
            o_ref[...] = ref[...] * 2

        pl.run_scoped(body, pl.MemoryRef(lib.core.ShapedArray((10, 12), np.dtype("float32")), pl.ANY))

    return pl.pallas_call(kernel, like(lib, X), interpret=True)(X)


PROGRAMS = [whole, blocks_that_do_not_divide, a_batch_of_products, running_sum, in_place,
            two_results_of_a_tree, windows_that_overlap, never_written, scoped]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_kernels(program):
    got, want = program(lamina, pallas), program(jax, jax_pallas)
    for x, y in zip(lamina.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


def test_kernels_have_derivatives():
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.sin(x_ref[...])

    block = pallas.BlockSpec((5, 12), lambda i: (i, 0))
    call = pallas.pallas_call(kernel, like(lamina, X), grid=2, in_specs=[block], out_specs=block)
    np.testing.assert_allclose(lamina.grad(lambda x: call(x).sum())(X), np.cos(X), rtol=1e-5)


def test_masks():
    def kernel(x_ref, o_ref):
        mask = jnp.arange(12) < 5
        pallas.store(o_ref, 0, pallas.load(x_ref, 0, mask=mask, other=7.0))
        o_ref[1] = x_ref[1]
        pallas.store(o_ref, 1, 0.0, mask=mask)

    got = pallas.pallas_call(kernel, like(lamina, X[:2]))(X[:2])
    np.testing.assert_array_equal(got[0], np.where(np.arange(12) < 5, X[0], 7))
    np.testing.assert_array_equal(got[1], np.where(np.arange(12) < 5, 0, X[1]))


def test_what_kernels_refuse():
    def call(kernel, **kwargs):
        return pallas.pallas_call(kernel, like(lamina, X), **kwargs)

    with pytest.raises(ValueError, match="should return None"):
        call(lambda x_ref, o_ref: 1)(X)
    with pytest.raises(ValueError, match=r"Block shape for args\[0\]"):
        call(add, in_specs=[pallas.BlockSpec((4,))] * 2)(X, X)
    with pytest.raises(ValueError, match="must return 2 values"):
        call(add, in_specs=[pallas.BlockSpec((4, 4), lambda: 0)] * 2)(X, X)
    with pytest.raises(ValueError, match="a BlockSpec for each of args"):
        call(add, in_specs=[pallas.BlockSpec()])(X, X)
    with pytest.raises(ValueError, match="in a kernel"):
        pallas.program_id(0)
    with pytest.raises(ValueError, match="the grid has 1 axes"):
        call(lambda x_ref, o_ref: pallas.num_programs(1), grid=1)(X)
    with pytest.raises(ValueError, match="If `grid_spec`"):
        call(add, grid=1, grid_spec=pallas.GridSpec(1))
    with pytest.raises(ValueError, match="share memory"):
        call(lambda x_ref, o_ref: None, input_output_aliases={0: 0})(X[0])
    assert (pallas.cdiv(9, 2), pallas.next_power_of_2(9)) == (5, 16)
