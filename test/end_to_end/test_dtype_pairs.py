"""Conversion, addition, selection, joining and products over pairs of dtypes, against JAX."""

import importlib

import jax
import numpy as np
import pytest
from support.oracle.judge import check_all

import lamina

NAMES = ["bool", "int4", "uint4", "int8", "uint32", "float8_e4m3fn", "float8_e5m2", "bfloat16", "float16",
         "float32", "complex64"]  # fmt: skip
VALUES = np.array([0, 1, 2, 3, 5, 7], np.float32)
OPERATIONS = {
    "add": lambda m, x, y: m.np.add(x, y), "where": lambda m, x, y: m.np.where(x == x, x, y),
    "concatenate": lambda m, x, y: m.np.concatenate([x, y]), "dot": lambda m, x, y: m.np.dot(x, y),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*[Cc]omplex")
@pytest.mark.parametrize("left", NAMES)
def test_operations_on_pairs(left):
    def program(m):
        x, out = m.np.asarray(VALUES).astype(left), {}
        for right in NAMES:
            out["astype", right] = x.astype(right)
            y = m.np.asarray(VALUES[::-1].copy()).astype(right)
            for name, operation in OPERATIONS.items():
                try:
                    out[name, right] = operation(m, x, y)
                except ValueError as e:
                    out[name, right] = np.int32(type(e).__name__ == "TypePromotionError")
        return out

    check_all(program, jit=True, rtol=1e-2)


@pytest.mark.parametrize("n", [7, 300])
def test_constants_of_bfloat16(n):
    values = np.linspace(-3, 3, n).astype(np.float32)
    values[:3] = np.inf, -np.inf, -0.0

    def program(m, i):
        table = m.np.asarray(values).astype(m.np.bfloat16)
        return {"taken": table[i], "sum": table[3:] + 1, "dot": m.np.dot(table[3:], table[3:])}

    check_all(program, np.arange(n)[::-1].copy(), jit=True, rtol=1e-2)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", ["bool", "int8", "int32", "bfloat16", "float32", "complex64"])
def test_types_beside_scalars(name, x64):
    def program(m, x):
        n, ones = m.numpy, m.numpy.ones((3, 3), "float32")
        real = [] if name == "complex64" else [
            n.floor_divide(x, 2), n.floor_divide(2.5, x), n.mod(x, 2), n.divmod(2.5, x), n.fmod(x, 2),
            n.heaviside(2.5, x), n.floor_divide(x, x), n.maximum(x, 1), n.clip(x, 0, 1),
        ]  # fmt: skip
        return [*real, n.power(x, 2), n.where(x != 0, 1.0, x), n.histogram(x), n.nan_to_num(x),
                n.select(x != 0, x), m.lax.stack(x), n.searchsorted(x[0], x), n.argsort(x), m.lax.dot(x, ones),
                m.lax.batch_matmul(ones.astype("int8"), x)]  # fmt: skip

    with lamina.enable_x64(x64), jax.enable_x64(x64):
        ours, theirs = (
            [(r.dtype, r.weak_type, r.shape) for r in m.tree_util.tree_leaves(
                m.eval_shape(lambda x, m=m: program(m, x), m.ShapeDtypeStruct((3, 3), name)))]
            for m in (lamina, jax)
        )  # fmt: skip
        assert ours == theirs


@pytest.mark.parametrize("x64", [False, True])
def test_floats_of_integers(x64):
    def program(m, x):
        n = m.numpy
        return [n.sin(x), n.mean(x), n.var(x), n.median(x), n.quantile(x, 0.5), x / 2, x / x, n.sqrt(x[0]),
                n.angle(x), n.rint(x), n.trapezoid(x), n.trapezoid(x, x), n.cumulative_prod(x), n.cumulative_sum(x),
                n.logaddexp(x, x), n.linspace(x[0], x[1], 3), n.average(x), n.exp2(x), n.fft.fft(x),
                n.linalg.norm(x)]  # fmt: skip

    wide = ["int64", "uint64"] if x64 else []
    with lamina.enable_x64(x64), jax.enable_x64(x64):
        for name in ["bool", "int8", "uint8", "int16", "uint32", "int32", *wide]:
            of = [
                [(r.dtype, r.weak_type) for r in m.eval_shape(lambda x, m=m: program(m, x), x)]
                for m in (lamina, jax)
                for x in [m.ShapeDtypeStruct((4,), name)]
            ]
            assert of[0] == of[1], name


@pytest.mark.filterwarnings("ignore:scatter inputs:FutureWarning")
def test_weak_types_of_results():
    """Weak where all operands are, save where JAX's loops and joins make them strong."""

    def program(m, half):
        n = m.numpy
        three, half = (n.broadcast_to(v, (3,)) for v in (n.asarray(3), half))
        pairs = [(three, three), (three, half), (half, half), (n.ones(3, "float16"), half)]
        products = [m.lax.dot, n.dot, n.vdot, n.inner, n.matmul, n.vecdot, n.convolve,
                    lambda x, y, **to: n.einsum("i,i->i", x, y, **to)]  # fmt: skip
        return [
            *(f(x, y, **to) for f in products for x, y in pairs
              for to in ({}, {"preferred_element_type": "float32"})),
            *(f(x, y) for x, y in pairs for f in (n.cross, n.polyval, n.outer, n.power)),
            n.gcd(three, 6), n.lcm(3, three), n.gcd(3, 6),
            three.at[0].power(2), three.at[0].add(half[0]),
        ]  # fmt: skip

    mine, theirs = (
        [(r.dtype, r.weak_type, r.shape) for r in m.eval_shape(lambda x, m=m: program(m, x), 2.5)]
        for m in (lamina, jax)
    )
    assert mine == theirs


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_narrow_floats_stay_narrow_with_x64(name):
    def program(m, x):
        import importlib

        stats = importlib.import_module(f"{m.__name__}.scipy.stats")
        expm = importlib.import_module(f"{m.__name__}.scipy.linalg").expm
        return [m.nn.logmeanexp(x), m.nn.logmeanexp(x, where=x > 0), stats.cauchy.pdf(x), stats.t.pdf(x, 2.5),
                stats.chi2.logpdf(x, 2.5), *([expm(x)] if name == "float32" else [])]  # fmt: skip

    with lamina.enable_x64(True), jax.enable_x64(True):
        assert [[(r.dtype, r.weak_type) for r in m.eval_shape(
            lambda x, m=m: program(m, x), m.ShapeDtypeStruct((3, 3), name))] for m in (lamina, jax)] == [
            [(np.dtype(name), False)] * (6 if name == "float32" else 5)] * 2  # fmt: skip
        with pytest.raises(TypeError, match="A.dtype=bfloat16 is not supported: convert to float32"):
            lamina.scipy.linalg.expm(lamina.numpy.ones((2, 2), "bfloat16"))


_OF_NUMBERS = [
    *((module, name, 1) for module, names in {
        "numpy": "sin sqrt sinc angle exp2 log10 cbrt round rint square sign i0 deg2rad nan_to_num",
        "scipy.special": "gamma factorial gammasgn gammaln digamma erf erfc erfcx erfcinv exp1 expi dawsn ndtr ndtri "
                         "log_ndtr spence entr expit logit i0e",
        "nn": "relu gelu silu softplus sigmoid elu log_sigmoid hard_tanh mish",
    }.items() for name in names.split()),
    *((module, name, 2) for module, names in {
        "numpy": "add power arctan2 hypot logaddexp logaddexp2 copysign nextafter float_power maximum heaviside",
        "scipy.special": "beta betaln expn owens_t poch xlogy rel_entr kl_div zeta boxcox comb gammainc",
    }.items() for name in names.split()),
]  # fmt: skip


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("module,name,arity", _OF_NUMBERS, ids=lambda part: str(part))
def test_functions_of_python_numbers_are_as_weak_as_jax_s(module, name, arity, x64):
    with lamina.enable_x64(x64), jax.enable_x64(x64):
        found = []
        for library in ("jax", "lamina"):
            result = getattr(importlib.import_module(f"{library}.{module}"), name)(*[0.5] * arity)
            found.append((str(result.dtype), result.weak_type))
    assert found[1] == found[0]
