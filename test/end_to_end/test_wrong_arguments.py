"""Arguments that don't go together: the error has the class of JAX's, names the function that was called
rather than one below it, says what does not fit, and comes without lamina's own frames where a
transformation or a loop raises it."""

import operator
import sys

import numpy as np
import pytest
from support.oracle import judge as oracle

import lamina
from lamina.core.source_info import is_internal

X = np.arange(3, dtype=np.float32)
A = np.ones((2, 3), np.float32)
IMAGES, FILTERS = np.ones((1, 1, 5, 5), np.float32), np.ones((1, 1, 3, 3), np.float32)


def bad_bwd(m):
    f = m.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda residuals, g: (g, g))
    m.grad(f)(1.0)


# The mistake, and words of our text.
OF_FUNCTIONS = {
    "matmul": (lambda m: m.np.asarray(A) @ m.np.asarray(A), "matmul requires that the sizes summed over "
               "are equal: axis 1 of the first operand, f32[2,3], is 3, axis 0 of the second"),
    "tensordot": (lambda m: m.np.tensordot(A, A, axes=((0,), (1,))), "tensordot requires"),
    "bitwise_and": (lambda m: m.np.bitwise_and(X, X), "bitwise_and does not accept dtype float32"),
    "at": (lambda m: m.np.asarray(X).at[:2].set(A), "x.at[index]: "),
    "fft": (lambda m: m.np.fft.fft(X, n=0), "fft.fft: Shape should be positive, got n=0"),
    "pad": (lambda m: m.np.pad(X, -1), "numpy.pad: index can't contain negative values, got pad_width -1"),
    "histogram": (lambda m: m.np.histogram(X, bins=-2), "`bins` must be positive"),
    "one_hot": (lambda m: m.module.nn.one_hot(X, 3.5), "one_hot: num_classes must be an integer"),
    "relu": (lambda m: m.module.nn.relu("a"), "relu requires ndarray or scalar arguments"),
    "attention": (lambda m: m.module.nn.dot_product_attention(*np.ones((2, 1, 4, 2, 8), np.float32),
                                                              np.ones((1, 4, 2, 7), np.float32)),
                  "Sizes are key's"),
    "segment_sum": (lambda m: m.module.ops.segment_sum(X, np.array([0, 1]), 2),
                    "segment_sum: segment_ids names a segment for each row"),
    "solve_triangular": (lambda m: m.module.scipy.linalg.solve_triangular(A, X),
                         "Argument to solve_triangular must have shape [..., n, n]"),
    "cholesky": (lambda m: m.lax.linalg.cholesky(A), "cholesky requires square matrices"),
    "eigh": (lambda m: m.lax.linalg.eigh(A), "eigh requires square matrices"),
    "permutations": (lambda m: m.lax.conv_general_permutations(("NHWC", "HWIO")), "are three strings"),
    "dynamic_update_slice": (lambda m: m.lax.dynamic_update_slice(m.np.asarray(X), A, (0,)),
                             "must have the same rank as operand"),
    "lax.pad": (lambda m: m.lax.pad(A, np.float32(0), [(0, 1, 0)]), "for each axis of f32[2,3]"),
    "padding": (lambda m: m.lax.conv(IMAGES, FILTERS, (1, 1), "FULL"), "expected SAME, SAME_LOWER or VALID"),
    "strides": (lambda m: m.lax.conv(IMAGES, FILTERS, (1,), "SAME"), "window_strides needs an entry"),
    "dimension_numbers": (lambda m: m.lax.conv_general_dilated(
        IMAGES, FILTERS, (1, 1), "SAME", dimension_numbers=("NCHX", "OIHW", "NCHW")), "NCHX"),
    "reduce_window": (lambda m: m.lax.reduce_window(X, np.float32(0), m.lax.add, (2, 2), (1,), "VALID"),
                      "need an entry for each axis"),
    "pairs of padding": (lambda m: m.lax.conv_general_dilated(IMAGES, FILTERS, (1, 1), [1, 2]),
                         "padding argument to conv_general_dilated should be a string or a sequence of"),
    "no pairs": (lambda m: m.lax.conv_general_dilated(IMAGES, FILTERS, (1, 1), 3), "(low, high) pairs, got 3"),
    "padding_value": (lambda m: m.lax.pad(X, X, [(0, 0, 0)]), "padding_value must be a scalar"),
    "windows": (lambda m: m.lax.reduce_window(X, np.float32(0), m.lax.add, (0,), (1,), "VALID"),
                "must be positive"),
    "sizes of parts": (lambda m: m.lax.split(X, (-1, 4)), "Sizes passed to split must be nonnegative"),
    "inv of halves": (lambda m: m.np.linalg.inv(np.ones((2, 2), np.float16)), "does not accept dtype float16"),
    "qr of halves": (lambda m: m.np.linalg.qr(np.ones((2, 2), np.float16)), "qr does not accept dtype float16"),
    "helmert": (lambda m: m.module.scipy.linalg.helmert(0), "n must be a positive integer"),
    "companion": (lambda m: m.module.scipy.linalg.fiedler_companion(X[:0]), "fiedler_companion"),
    "dft": (lambda m: m.module.scipy.linalg.dft(3, dtype=np.float32), "must be a complex floating-point type"),
    "scatter": (lambda m: m.lax.scatter(A, np.zeros((1, 2), int), np.ones(1, np.float32),
                m.lax.ScatterDimensionNumbers((), (1, 0), (0, 1))), "must be sorted"),
    "device_put": (lambda m: m.module.device_put(X, "cpu:0"), "takes a Device (of lamina.devices())"),
    "setting": (lambda m: m.module.config.update("jax_default_matmul_precision", "exact"),
                "config option default_matmul_precision: expected None or one of default, fastest"),
}  # fmt: skip
OF_TRANSFORMATIONS = {
    "tolist": (lambda m: m.jit(lambda x: x.tolist())(X), "problem arose with the `tolist` method"),
    "returned": (lambda m: m.jit(lambda x: "a")(1.0), f"function <lambda> at {__file__}:"),
    "static names": (lambda m: m.jit(lambda x: x, static_argnames="y")(1.0), "invalid argnames {'y'}"),
    "lower": (lambda m: m.jit(lambda x: x).lower(), "missing 1 required positional argument: 'x'"),
    "vmap": (lambda m: m.vmap(lambda x, y: x, in_axes=(0,))(A, A), "len(in_axes)=1, len(args)=2"),
    "vmap by name": (lambda m: m.vmap(lambda x, y: x, in_axes=(0, None))(X, y=A),
                     "Those given by name (y) are mapped over axis 0"),
    "vmap axis": (lambda m: m.vmap(lambda x: x, in_axes="a")(A), "but got a."),
    "grad": (lambda m: m.grad(lambda x: x, argnums=2)(1.0), "argnums=2"),
    "grad of integers": (lambda m: m.grad(lambda x: m.np.int32(x))(1.0), "Integers have no derivative"),
    "jvp": (lambda m: m.jvp(lambda x: x, (1.0,), [1.0]), "must have the same tree structure"),
    "vjp": (lambda m: m.vjp(lambda x: x, X)[1](A), "got float32[2,3], but expected float32[3]"),
    "linear_transpose": (lambda m: m.linear_transpose(lambda x: m.np.sin(x), 1.0)(1.0), "'sin'"),
    "jacfwd": (lambda m: m.jacfwd(lambda x: x)(np.arange(3)), "jacfwd requires real-valued inputs"),
    "custom_vjp": (bad_bwd, "must produce a tuple of length equal"),
    "cond": (lambda m: m.lax.cond(X, lambda: 1, lambda: 2), "Pred must be a scalar"),
    "cond of other arguments": (lambda m: m.lax.cond(True, lambda x: x, lambda x, y: x, 1.0),
                                "missing 1 required positional argument: 'y'"),
    "switch": (lambda m: m.lax.switch(1.0, [lambda: 1, lambda: 2]), "Index type must be an integer"),
    "while_loop": (lambda m: m.lax.while_loop(lambda c: c, lambda c: c + 1, 0.0), "boolean scalar"),
    "scan": (lambda m: m.lax.scan(lambda c, x: (c, x), 0.0, (A, X)), "xs[0] has 2, xs[1] has 3"),
    "scan of no pair": (lambda m: m.lax.scan(lambda c, x: c, 0.0, X), "must be a pair (carry, y), got f32[]"),
    "checkpoint": (lambda m: m.grad(m.checkpoint(lambda x: m.np.sin(x), policy="all"))(1.0),
                   "policy must be a function, as those of lamina.checkpoint_policies"),
}  # fmt: skip
ALL = OF_FUNCTIONS | OF_TRANSFORMATIONS


@pytest.mark.parametrize("name", ALL)
def test_class_is_jax_s_and_the_text_says_what_does_not_fit(name):
    mistake, words = ALL[name]
    with pytest.raises(Exception) as theirs:
        mistake(oracle.JAX)
    with pytest.raises(Exception) as ours:
        mistake(oracle.LAMINA)
    assert words in str(ours.value)
    assert type(ours.value).__name__ == type(theirs.value).__name__


@pytest.mark.parametrize("name", OF_TRANSFORMATIONS)
def test_traceback_ends_in_the_user_s_file(name):
    mistake, _ = OF_TRANSFORMATIONS[name]
    filtered = lamina.config.traceback_filtering("auto")
    with filtered, pytest.raises(Exception) as e:
        mistake(oracle.LAMINA)
    assert not any(is_internal(entry.frame.code.raw) for entry in e.traceback)
    assert "LAMINA_TRACEBACK_FILTERING=off" in e.value.__notes__[-1]


def test_an_error_within_lamina_keeps_its_frames(monkeypatch):
    module = sys.modules["lamina.vmap"]
    monkeypatch.setattr(module, "_place", operator.add)
    filtered = lamina.config.traceback_filtering("auto")
    with filtered, pytest.raises(TypeError) as e:
        lamina.vmap(lambda x: x)(X)
    assert any(is_internal(entry.frame.code.raw) for entry in e.traceback)
