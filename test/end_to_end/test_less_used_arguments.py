"""Arguments of public functions that few programs give, against JAX."""

import jax
import jax.scipy.special
import numpy as np
from support.oracle import judge as oracle

import lamina
import lamina.scipy.special

RNG = np.random.default_rng(0)
Q = RNG.standard_normal((2, 5, 4, 8)).astype(np.float32)
K = RNG.standard_normal((2, 6, 2, 8)).astype(np.float32)
V = RNG.standard_normal((2, 6, 2, 8)).astype(np.float32)


def test_attention():
    def program(m, q, k, v):
        def attend(**options):
            return m.module.nn.dot_product_attention(q, k, v, **options)

        return {
            "lengths": attend(query_seq_lengths=np.array([3, 5]), key_value_seq_lengths=np.array([6, 2])),
            "window": attend(local_window_size=1),
            "past": attend(local_window_size=(2, 0), is_causal=True),
            "residual": attend(return_residual=True, key_value_seq_lengths=np.array([4, 3])),
            "one": m.module.nn.dot_product_attention(q[0], k[0], v[0], return_residual=True),
            "stable": m.module.nn.standardize(q, algorithm="stable"),
        }  # fmt: skip

    oracle.check_all(program, Q, K, V, jit=True, rtol=1e-4)


def test_lax():
    def program(m, q):
        lax = m.lax
        i = m.np.int32(q.sum() * 0 - 1)
        rhs, far = np.ones((3, 3, 8, 2), np.float32), {"allow_negative_indices": False}
        consistent = {"use_consistent_padding": True}
        return {
            "slice": lax.dynamic_slice(q, (i, i - 1, i, i + 3), (1, 2, 1, 3), **far),
            "of each axis": lax.dynamic_slice(q, (i, i - 1, i, i + 3), (1, 2, 1, 3),
                                              allow_negative_indices=[True, False, True, True]),
            "update": lax.dynamic_update_slice_in_dim(q, q[:, :1], i, 1, **far),
            "index": lax.dynamic_index_in_dim(q, i, 1, **far),
            "update index": lax.dynamic_update_index_in_dim(q, q[:, 0], i, 1, **far),
            "pads": lax.conv_transpose(q, rhs, (2, 2), [(1, 1), (0, 2)], **consistent),
            "same": lax.conv_transpose(q, rhs, (2, 1), "SAME", **consistent),
            "dilated": lax.conv_transpose(q, rhs[1:], (2, 1), "VALID", rhs_dilation=(2, 1), **consistent),
            "mul": lax.mul(q, q, out_dtype=np.float16),
            "operand": lax.switch(1, [lambda a: a, lambda a: -a], operand=q),
            "keyword": m.module.scipy.special.betaln(a=m.np.abs(q), b=np.float32(2)),
        }  # fmt: skip

    oracle.check_all(program, Q, jit=True, rtol=1e-4)


def test_dtypes():
    for args in ((1, 2.0), (np.int8(1), 1), (np.float32, 1.0), (True, 2), (int,)):
        got = lamina.dtypes.result_type(*args, return_weak_type_flag=True)
        assert got == jax.dtypes.result_type(*args, return_weak_type_flag=True), args
    key = lamina.random.key(0)
    assert lamina.random.key(0, dtype=key.dtype).dtype == key.dtype
    assert lamina.dtypes.canonicalize_dtype(key.dtype, allow_extended_dtype=True) == key.dtype
