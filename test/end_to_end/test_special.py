"""lamina.scipy.special against SciPy, in both precisions, and its derivatives against differences."""

import math

import jax
import mpmath
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from support.oracle.judge import JAX, LAMINA, assert_same

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.scipy import special

_X = np.array([-30.5, -7.3, -2.5, -1.0, -0.6, -1e-3, -0.0, 0.0, 1e-5, 0.3, 0.7, 1.0, 1.4, 1.6, 2.0,
               4.0, 4.1, 5.0, 6.5, 8.3, 12.1, 24.3, 33.0, 77.7, 300.0, np.inf, -np.inf, np.nan])  # fmt: skip
_POSITIVE = np.abs(_X)
_ORDER = np.resize([0.2, 0.5, 1.0, 2.5, 7.0, 30.0, 250.0, 1e4], _X.shape)
_UNIT = np.resize([0.0, 1e-12, 0.01, 0.075, 0.3, 0.5, 0.62, 0.9, 0.999, 1.0, -0.1, 1.1, np.nan],
                  _X.shape)  # fmt: skip
_FINITE = np.where(np.isfinite(_X), _X, 3.25)

# name -> arguments; the bound of the relative error in double precision where it is not 1e-13
CASES = {
    "expit": (_X,), "xlogy": (_X, _ORDER), "xlog1py": (_X, _ORDER), "entr": (_X,),
    "rel_entr": (_X, _ORDER), "kl_div": (_X, _ORDER), "logit": (_UNIT,),
    "boxcox": (_POSITIVE, _FINITE / 10), "boxcox1p": (_POSITIVE, _FINITE / 10),
    "erf": (_X,), "erfc": (_X,), "erfcx": (_X,), "erfinv": (_UNIT,), "dawsn": (_X,),
    "fresnel": (_X,), "ndtr": (_X,), "log_ndtr": (_X,), "ndtri": (_UNIT,),
    "owens_t": (_FINITE / 5, np.roll(_FINITE, 3)), "exp1": (_POSITIVE,), "expi": (_X,),
    "sici": (_FINITE,), "spence": (_X,), "gamma": (_X,), "gammaln": (_POSITIVE,),
    "loggamma": (_POSITIVE,), "gammasgn": (_X,), "factorial": (_POSITIVE,),
    "digamma": (np.where(_FINITE == 0, 0.5, _FINITE),),
    "gammainc": (_ORDER, _POSITIVE), "gammaincc": (_ORDER, _POSITIVE),
    "betainc": (_ORDER, _POSITIVE + 0.1, _UNIT), "betaln": (_ORDER, np.abs(_FINITE) + 0.1),
    "beta": (_ORDER, np.abs(_FINITE) + 0.1), "poch": (np.abs(_FINITE), np.roll(_FINITE, 2) / 9),
    "comb": (_ORDER, np.roll(_ORDER, 1)), "zeta": (np.minimum(_ORDER, 30) + 1, np.abs(_FINITE) + 0.1),
    "i0": (_FINITE,), "i1": (_FINITE,), "i0e": (_X,), "i1e": (_X,),
    "hyp1f1": (_ORDER / 300, _ORDER + 0.1, _FINITE / 4),
    "hyp2f1": (_ORDER / 3000, _ORDER / 100, _ORDER + 0.3, _FINITE / 400),
}  # fmt: skip
# The others are asked for in double precision: their programs compute in it anyway.
_SINGLE = {"expit", "xlogy", "xlog1py", "entr", "rel_entr", "kl_div", "logit", "erf", "erfc",
           "erfinv", "gammaln", "loggamma", "gammasgn", "digamma", "zeta", "i0e", "i1e", "i0", "i1",
           "gammainc", "ndtr", "beta"}  # fmt: skip
_LOOSE = {"betainc": 1e-9, "kl_div": 1e-10, "comb": 1e-11, "erfcx": 1e-12, "poch": 1e-11,
          "owens_t": 1e-11, "beta": 1e-10, "betaln": 1e-11, "rel_entr": 1e-12,
          "fresnel": 1e-10, "hyp2f1": 1e-11, "hyp1f1": 1e-12, "gammainc": 1e-11}  # fmt: skip


def _run(dtype):
    """All cases as one program: the results, SciPy's, by name."""
    args = {
        n: tuple(np.asarray(a, dtype) for a in given)
        for n, given in CASES.items()
        if (n in _SINGLE) == (dtype == np.float32)
    }
    with lamina.enable_x64(dtype == np.float64), np.errstate(all="ignore"):
        got = lamina.jit(lambda a: {n: getattr(special, n)(*v) for n, v in a.items()})(args)
        want = {n: getattr(scipy.special, n)(*(np.asarray(x, np.float64) for x in v))
                for n, v in args.items()}  # fmt: skip
    return got, want


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_are_scipys(dtype):
    got, want = _run(dtype)
    info, failed = np.finfo(dtype), []
    for name in got:
        for g, w in zip(np.atleast_2d(np.asarray(got[name])), np.atleast_2d(want[name])):
            assert g.dtype == dtype
            with np.errstate(all="ignore"):
                w = np.where(np.abs(w) > info.max, np.inf * np.sign(w), w)
                w = np.where(np.abs(w) < info.tiny, 0, w)
                g = np.where(np.abs(g) < info.tiny, 0, g)
                bound = _LOOSE.get(name, 2e-13) if dtype == np.float64 else 2e-6
                fine = (g == w) | (np.isnan(g) & np.isnan(w)) | (abs(g - w) <= bound * abs(w))
                # Next to a zero the error is that of the argument.
                fine |= np.abs(g - w) <= 32 * info.eps
            for i in np.flatnonzero(~fine):
                failed.append((name, *(float(a[i]) for a in CASES[name]), float(g[i]), float(w[i])))
    assert not failed, "\n".join(map(str, failed))


def test_every_name_is_there():
    import jax.scipy.special

    assert not [n for n in dir(jax.scipy.special) if n[0] != "_" and not hasattr(special, n)]


def test_derivatives_are_difference_quotients():
    points = {
        "dawsn": (0.7,), "erfcx": (0.7,), "exp1": (0.7,), "expi": (0.7,), "spence": (0.7,),
        "gamma": (2.3,), "ndtri": (0.3,), "log_ndtr": (-3.0,), "boxcox": (2.0, 0.5),
        "boxcox1p": (2.0, 0.5), "poch": (2.0, 1.5), "comb": (5.5, 2.5), "betaln": (2.0, 3.0),
        "owens_t": (0.5, 0.7), "hyp1f1": (1.2, 2.3, 0.7),
        "xlogy": (2.0, 3.0), "rel_entr": (2.0, 3.0), "kl_div": (2.0, 3.0), "entr": (0.4,),
        "logit": (0.3,), "i0": (2.0,), "i1": (2.0,), "gammainc": (2.0, 3.0),
        "gammaincc": (300.0, 290.0), "betainc": (2.0, 3.0, 0.4), "beta": (2.0, 3.0),
        "ndtr": (0.4,),
    }  # fmt: skip
    args = {n: [np.float64(v) for v in p] for n, p in points.items()}
    step = 1e-5

    def values(a):
        return {n: getattr(special, n)(*v) for n, v in a.items()}

    with lamina.enable_x64(True):
        grads = lamina.jit(lambda a: {
            n: lamina.grad(getattr(special, n), range(len(v)))(*v) for n, v in a.items()
        })(args)  # fmt: skip
        compiled = lamina.jit(values)
        for i in range(3):
            moved = [
                {n: [x + s if j == i else x for j, x in enumerate(v)] for n, v in args.items()}
                for s in (step, -step)
            ]
            up, down = map(compiled, moved)
            for n, v in args.items():
                if i < len(v):
                    quotient = (float(up[n]) - float(down[n])) / (2 * step)
                    np.testing.assert_allclose(grads[n][i], quotient, rtol=2e-7, atol=2e-8,
                                               err_msg=f"{n} by argument {i}")  # fmt: skip


def test_complex_functions():
    rs = np.random.RandomState(0)
    z = rs.normal(size=40) * 4 + 1j * rs.normal(size=40) * 4
    for dtype, bound in ((np.complex64, 2e-5), (np.complex128, 1e-12)):
        with lamina.enable_x64(dtype == np.complex128):
            got = lamina.jit(lambda v: {n: getattr(special, n)(v) for n in ("wofz", "loggamma", "gamma")})(
                z.astype(dtype)
            )
        for name, value in got.items():
            want = getattr(scipy.special, name)(z.astype(dtype).astype(np.complex128))
            assert value.dtype == dtype
            inside = np.abs(want) < 1e30
            error = np.abs(np.asarray(value) - want) / np.maximum(np.abs(want), 1e-30)
            assert error[inside].max() < bound, name


def test_bessel_and_spherical_harmonics():
    z = np.linspace(0, 20, 9)
    n = np.array([0, 1, 2, 3, 5, 8, 8, 4, 2])
    m = np.array([0, -1, 2, 0, -3, 8, 1, -4, 1])
    with lamina.enable_x64(True):
        np.testing.assert_allclose(special.bessel_jn(z, v=4),
                                   [scipy.special.jv(k, z) for k in range(5)], atol=1e-14)  # fmt: skip
        np.testing.assert_allclose(special.sph_harm_y(n, m, z / 7, z),
                                   scipy.special.sph_harm_y(n, m, z / 7, z), atol=1e-14)  # fmt: skip
        np.testing.assert_allclose(special.bernoulli(70), scipy.special.bernoulli(70), rtol=1e-11)
        np.testing.assert_allclose(special.multigammaln(5.5, 3), scipy.special.multigammaln(5.5, 3))
        np.testing.assert_allclose(special.polygamma(2, z + 1), scipy.special.polygamma(2, z + 1),
                                   rtol=1e-13)  # fmt: skip
        n, x = np.arange(8.0), np.linspace(0.1, 9, 8)
        for order in (n, n + 0.5):  # SciPy takes the whole part of an order
            np.testing.assert_allclose(special.expn(order, x), scipy.special.expn(n.astype(int), x),
                                       rtol=1e-12)  # fmt: skip


@given(st.floats(0.01, 5e3), st.floats(-6, 6))
def test_incomplete_gamma_by_mpmath(a, deviations):
    """P, Q and their derivative where SciPy itself loses digits: around the mean."""
    x = abs(a + deviations * math.sqrt(a))
    if x == 0:
        return
    with lamina.enable_x64(True):
        p, q = float(lax.igamma(np.float64(a), np.float64(x))), float(lax.igammac(a, np.float64(x)))
    with mpmath.workdps(30):
        if a > 200:  # mpmath's own series is slow there
            lower, upper = scipy.special.gammainc(a, x), scipy.special.gammaincc(a, x)
            bound = 1e-9
        else:
            lower = float(mpmath.gammainc(a, 0, x, regularized=True))
            upper = float(mpmath.gammainc(a, x, regularized=True))
            bound = 2e-12
    np.testing.assert_allclose([p, q], [lower, upper], rtol=bound, atol=1e-300)


def test_edges_of_the_incomplete_functions():
    inf, nan = np.inf, np.nan
    a, x = (np.array(v) for v in zip(*[
        (0, 0), (0, 1), (1, 0), (-1, 1), (1, -1), (inf, 1), (1, inf), (inf, inf), (nan, 1), (1, nan),
    ]))  # fmt: skip
    with lamina.enable_x64(True):
        np.testing.assert_array_equal(lax.igamma(a, x), scipy.special.gammainc(a, x))
        np.testing.assert_array_equal(lax.igammac(a, x), scipy.special.gammaincc(a, x))
        a, b, x = (np.array(v) for v in zip(*[
            (0, 1, 0.5), (1, 0, 0.5), (0, 0, 0.5), (1, 1, 0), (1, 1, 1), (1, 1, 2), (-1, 1, 0.5),
            (inf, 1, 0.5), (1, inf, 0.5), (inf, inf, 0.5), (nan, 1, 0.5), (1, 1, nan), (0, 1, 0),
            (0, 0, 0), (0, 0, 1), (inf, inf, 0), (inf, inf, 1),
        ]))  # fmt: skip
        np.testing.assert_array_equal(lax.betainc(a, b, x), scipy.special.betainc(a, b, x))


def test_zeta_by_its_exponent():
    x, q = (v.ravel() for v in np.meshgrid([1.1, 1.5, 2.0, 3.7, 9.0, 30.0], [0.2, 1.0, 2.5, 17.0]))
    want = [float(mpmath.zeta(a, b, 1)) for a, b in zip(x, q, strict=True)]
    with lamina.enable_x64(True):
        np.testing.assert_allclose(lamina.vmap(lamina.grad(lax.zeta))(x, q), want, rtol=1e-12)


def test_what_strict_promotion_and_complex_numbers_allow():
    z = np.array([-0.5 + 0j, -1.5, 0.5 + 1j, -2.5 + 1e-3j], np.complex64)
    with lamina.numpy_dtype_promotion("strict"):
        np.testing.assert_allclose(special.gamma(z), scipy.special.gamma(z), rtol=2e-5, atol=1e-6)
    with pytest.raises(ValueError, match="must be real-valued"):
        special.sici(z)


def test_types_are_jaxs():
    import jax.scipy.special

    def program(m, s):
        return {
            "half": s.gammainc(m.np.float16(2), m.np.float16(1)),
            "brain": s.erfc(m.np.ones(2, m.np.bfloat16)),
            "integers": s.gammaln(m.np.arange(1, 4)), "python": s.xlogy(2, 3.0),
            "mixed": s.beta(m.np.arange(1, 4), m.np.ones((2, 1))), "empty": s.ndtr(m.np.zeros((0, 3))),
            "scalar": s.digamma(2.0),
        }  # fmt: skip

    assert_same(program(LAMINA, special), program(JAX, jax.scipy.special), rtol=1e-2, weak=False)
    with pytest.raises(TypeError, match="does not accept dtype complex64"):
        special.exp1(jnp.ones(2, jnp.complex64))
    with pytest.raises(TypeError):
        special.ndtr(3)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_chlo_programs_compile(kind):
    names = ("acos acosh asin asinh atan atanh bessel_i1e cosh digamma erf erf_inv erfc lgamma sinh "
             "square tan conj").split()  # fmt: skip
    tensor = f"tensor<3x{kind}>"
    lines = [f"%{n} = chlo.{n} %a : {tensor} -> {tensor}" for n in names]
    lines += [f"%{n} = chlo.{n} %a, %a : {tensor}, {tensor} -> {tensor}"
              for n in ("zeta", "polygamma", "next_after")]  # fmt: skip
    every = [*names, "zeta", "polygamma", "next_after"]
    body = "\n".join(lines)
    text = (f"func.func @main(%a: {tensor}) -> ({', '.join([tensor] * len(every))}) {{\n{body}\n"
            f"return {', '.join('%' + n for n in every)} : {', '.join([tensor] * len(every))}\n}}")  # fmt: skip
    wide = np.array([2.0, 0.5, 3.0])
    x = jnp.asarray(wide, {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}.get(kind, "float32"))
    with lamina.enable_x64(True):
        x = x.astype("float64") if kind == "f64" else x
        got = dict(zip(every, lamina.compile_stablehlo(text)(x), strict=True))
    bound = {"f16": 5e-3, "bf16": 4e-2}.get(kind, 1e-5)
    for name, reference in (("zeta", lambda v: scipy.special.zeta(v, v)), ("lgamma", scipy.special.gammaln),
                            ("digamma", scipy.special.digamma), ("bessel_i1e", scipy.special.i1e)):  # fmt: skip
        with np.errstate(all="ignore"):
            want = reference(wide)
        ok = np.isfinite(want)
        np.testing.assert_allclose(np.asarray(got[name], np.float64)[ok], want[ok], rtol=bound)


def test_vmap_and_jit_are_the_loop():
    a, x = np.float32([0.5, 2.0, 30.0]), np.float32([[0.1, 1.0], [2.0, 3.0], [25.0, 40.0]])
    batched = lamina.vmap(lax.igamma, (0, 0))
    wide = np.repeat(a[:, None], 2, 1)
    want = np.stack([np.asarray(lax.igamma(wide[i], x[i])) for i in range(3)])
    np.testing.assert_allclose(batched(wide, x), want, rtol=1e-6)
    np.testing.assert_allclose(lamina.vmap(special.hyp1f1, (0, None, 0))(a, 1.5, a), special.hyp1f1(a, 1.5, a))
    assert jax.tree.leaves(special.logsumexp(x, axis=1, return_sign=True))[0].shape == (3,)


@pytest.mark.parametrize("name", ["igamma", "igammac", "igamma_grad_a", "random_gamma_grad"])
def test_series_end_element_by_element(name):
    """Of 16,384 elements none waits for the slowest, and none steps on for nothing."""
    text = lamina.jit(getattr(lax, name)).lower(*[np.ones(16384, np.float32)] * 2).as_text()
    assert text.count('stablehlo.composite "lamina.lanes"') == 2


@pytest.mark.parametrize("name, ulps", [("i0e", 6), ("i1e", 11)])
def test_scaled_bessel_functions_in_single_precision(name, ulps):
    """As good as JAX's over all magnitudes, on both sides of where its series change."""
    rng = np.random.default_rng(0)
    parts = rng.uniform(-10, 10, 20000), 10 ** rng.uniform(-38, 37, 20000), [8, -8, 0.0, -0.0]
    x = np.concatenate(parts).astype(np.float32)
    want = getattr(scipy.special, name)(x.astype(np.float64))
    got = np.asarray(getattr(special, name)(jnp.asarray(x)))
    fine = np.abs(want) > 1.2e-38  # of what is below, zero will do
    off = np.abs(got - want) / np.spacing(np.maximum(np.abs(want), 1.2e-38).astype(np.float32))
    assert off[fine].max() < ulps
    assert np.abs(got[~fine]).max(initial=0) < 1.3e-38
    ends = np.array([np.inf, -np.inf, np.nan], np.float32)
    assert np.array_equal(getattr(special, name)(jnp.asarray(ends)), [0, 0, np.nan], equal_nan=True)


@pytest.mark.parametrize("name, ulps", [("ndtr", 8), ("log_ndtr", 9), ("ndtri", 5), ("erfcx", 8)])
def test_normal_distribution_in_single_precision(name, ulps):
    """Computed in f32 without losing digits in the tails, as the same in f64 shows."""
    rng = np.random.default_rng(0)
    if name == "ndtri":
        small = np.exp(rng.uniform(-87, 0, 20000))
        x = np.concatenate([rng.uniform(0, 1, 20000), small, 1 - small, [0, 1, -0.0, -1, 2, 0.5]])
    else:
        x = np.concatenate([rng.uniform(-9, 9, 20000), -np.exp(rng.uniform(-80, 2.2, 20000)),
                            [-12.9, 0.0, -0.0, 1e30, -1e18 if name == "log_ndtr" else -9.0]])  # fmt: skip
    x = np.concatenate([x, [np.inf, -np.inf, np.nan]]).astype(np.float32)
    got = np.asarray(getattr(special, name)(x))
    with np.errstate(all="ignore"):
        want = getattr(scipy.special, name)(x.astype(np.float64))
        unit = np.spacing(np.maximum(np.abs(want), 1.2e-38).astype(np.float32))
        off = np.abs(got - want) / unit
        same = got == want.astype(np.float32)
    off = np.where(same | (np.isnan(got) & np.isnan(want)), 0, off)
    assert off.max() <= ulps, (x[off.argmax()], got[off.argmax()], want[off.argmax()])


def test_digamma_to_the_last_digit_of_single_precision():
    """Also beside its zeros and poles, and left of 0."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-20, 20, 3000), rng.uniform(1.461, 1.463, 500), 10 ** rng.uniform(-30, 38, 500),
                        [1.4616321, -0.50408301, -1.5734985, 9.9999, 10.0]]).astype(np.float32)  # fmt: skip
    want = np.array([float(mpmath.digamma(float(v))) for v in x])
    np.testing.assert_allclose(np.asarray(lax.digamma(x)), want, rtol=6.1e-8)
    poles = np.float32([-1, -7, -1e30, -np.inf, np.nan])
    assert np.isnan(lax.digamma(poles)).all()
    assert (np.asarray(lax.digamma(np.float32([0.0, -0.0]))) == -np.inf).all()
    assert lax.digamma(np.float32(np.inf)) == np.inf
