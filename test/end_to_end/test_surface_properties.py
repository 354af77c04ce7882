"""Public functions on drawn dtypes, shapes and options: JAX's result, or an error of JAX's class.

One example is one call of one function in both libraries, at once or in a jitted program; the calls
are in support/strategies. LAMINA_TEST_EXAMPLES=2000 draws so many.
"""

import importlib
import re
import warnings
from pathlib import Path

import jax
import jax.scipy.linalg
import jax.scipy.signal
import jax.scipy.special
import jax.scipy.stats
import numpy as np
import support.strategies.arrays  # noqa: F401 (these fill CALLS)
import support.strategies.lax  # noqa: F401
import support.strategies.numpy  # noqa: F401
import support.strategies.products  # noqa: F401
import support.strategies.random  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st
from support.oracle.judge import assert_same
from support.strategies import scipy as drawn_scipy
from support.strategies.arguments import CALLS
from support.strategies.elsewhere import ELSEWHERE

import lamina

drawn_scipy.add_densities(jax.scipy.stats)
KINDS = (TypeError, ValueError, IndexError, NotImplementedError, ZeroDivisionError, OverflowError)
KINDS_OF = {lamina: KINDS, jax: (*KINDS, AssertionError, RuntimeError)}  # of asserts, and XLA's

# Where lamina gives a result and JAX raises, for dtypes or edges that one need not refuse.
MORE_IS_TAKEN = {
    "scipy.stats.norm.isf",  # integers
    # Axes counted from the end.
    *(f"lax.cum{name}" for name in ("max", "min", "sum", "prod", "logsumexp")),
    *(f"lax.reduce_{name}" for name in ("sum", "prod", "max", "min", "and", "or", "xor")),
    "lax.argmax",
    "lax.argmin",
    "numpy.put",  # more values than places
    "scipy.linalg.lu",  # empty batches
    # As in NumPy: booleans, cuts beyond the end, nothing at all, several quantiles as a matrix.
    *(f"numpy.{name}" for name in """around round vander polyadd polysub trapezoid unpackbits
        split array_split hsplit vsplit dsplit histogram histogram_bin_edges quantile nanquantile
        percentile nanpercentile linalg.matrix_rank fft.rfft2 fft.rfftn""".split()),
    *(f"nn.{name}" for name in "log1mexp log_sigmoid sigmoid silu swish".split()),  # any numbers
    "lax.clamp",  # booleans
    "lax.rev",
    "random.gamma",
}
# Where JAX gives a result of arguments that make no sense, and lamina raises.
LESS_IS_TAKEN = {
    "lax.atan2",  # of complex numbers: NaN
    "lax.broadcast_in_dim",  # fewer dimensions than the operand has
    "lax.slice",  # beyond the end
    "random.double_sided_maxwell",  # parameters that do not broadcast to the shape
    "random.weibull_min",
}
# Where results differ at edges, and JAX's is not the one wanted.
EDGES = {
    "lax.linalg.qdwh",  # the count of iterations is weakly typed
    "numpy.spacing",  # of -inf in float16
    "numpy.partition",  # the order within the parts
    "numpy.argpartition",
    "lax.approx_max_k",  # NaN in bfloat16
    "lax.approx_min_k",
    "lax.cumlogsumexp",  # complex numbers of real part -inf
    "numpy.take_along_axis",  # of nothing: 0 for NaN
    "nn.log1mexp",  # unsigned integers, whose negation wraps
    "nn.log_sigmoid",
    "scipy.linalg.expm",  # the squarings: lamina's is nearer
    "scipy.linalg.toeplitz",  # infinities times 0
    "scipy.linalg.hankel",
    "scipy.special.bessel_jn",  # NaN at order 0
    "random.double_sided_maxwell",  # float32 parameters beside a narrower dtype
    "random.weibull_min",
    *(f"scipy.stats.gamma.{name}" for name in ("cdf", "logcdf", "sf", "logsf")),  # a <= 0: SciPy's NaN
}
# Where JAX computes in 16 bits.
COARSE = {f"scipy.special.{n}" for n in "beta betaln boxcox boxcox1p comb poch".split()}


def _is_array(x):
    return isinstance(x, np.ndarray)


def outcome(m, path, args, options, jitted):
    """The result, or the error."""
    fun = m
    for name in path.split("."):
        fun = getattr(fun, name)
    at = [i for i, a in enumerate(args) if _is_array(a)]

    def traced(*values):
        given_ = list(args)
        for i, value in zip(at, values):
            given_[i] = value
        return fun(*given_, **options)

    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            if jitted and at:
                return m.jit(traced)(*(args[i] for i in at)), None
            return fun(*args, **options), None
    except KINDS_OF[m] as e:
        return None, e


@st.composite
def calls(draw):
    path = draw(st.sampled_from(sorted(CALLS)))
    return path, *draw(CALLS[path]), draw(st.booleans())


@given(calls())
def test_a_call_does_what_jax_s_does(call):
    path, args, _, _ = call
    (got, error), (want, expected) = outcome(lamina, *call), outcome(jax, *call)
    if error is not None or expected is not None:
        assert expected is not None or path in LESS_IS_TAKEN, (
            f"{path} raised, JAX does not: {error!r}"
        )
        assert error is not None or path in MORE_IS_TAKEN, f"{path} gave {got}, JAX: {expected!r}"
        return
    if isinstance(want, str):
        assert got == want
    if path in EDGES or isinstance(want, str):
        return
    found = [*jax.tree_util.tree_leaves((args, want))]
    half = any(
        np.asarray(x).dtype.name in ("float16", "bfloat16") for x in found if hasattr(x, "dtype")
    )
    if half and path in COARSE:
        return
    t = 3e-2 if half else 2e-4
    weak = not any(_is_array(x) and x.dtype.kind in "biu" for x in args)
    got, want = lamina.tree_util.tree_leaves(got), jax.tree_util.tree_leaves(want)
    assert_same(got, want, rtol=t, atol=t, weak=weak)


TESTS = Path(__file__).parents[1]
SPACES = """numpy numpy.linalg numpy.fft lax lax.linalg nn nn.initializers random ops image
    scipy.special scipy.linalg scipy.signal scipy.fft scipy.ndimage scipy.integrate scipy.cluster.vq
    scipy.optimize scipy.sparse.linalg scipy.stats""".split()


def test_every_function_is_drawn_or_listed():
    found = set()
    for space in SPACES:
        module, ours = (importlib.import_module(f"{m}.{space}") for m in ("jax", "lamina"))
        for name in dir(module):
            value = None if name[0] == "_" or name.endswith("_p") else getattr(module, name)
            if callable(value) and not isinstance(value, type) and hasattr(ours, name):
                found.add(f"{space}.{name}")
    assert sorted(found - CALLS.keys() - ELSEWHERE.keys()) == []
    assert sorted(ELSEWHERE.keys() - found) == [] and sorted(ELSEWHERE.keys() & CALLS.keys()) == []
    texts = {p.stem: p.read_text() for p in TESTS.rglob("test_*.py")}
    texts |= {f"samples/{p.stem}": p.read_text() for p in TESTS.glob("support/samples/*.py")}
    for path, file in ELSEWHERE.items():
        name = path.rpartition(".")[2]
        assert not file or re.search(rf"\b{name}\b", texts[file]), f"{file} does not name {name}"
