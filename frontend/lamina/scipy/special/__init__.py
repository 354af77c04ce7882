"""Special functions with SciPy's names."""

# ruff: noqa: F401
from lamina.scipy.special.bessel import bessel_jn, i0, i0e, i1, i1e
from lamina.scipy.special.entropy import (
    boxcox,
    boxcox1p,
    entr,
    expit,
    kl_div,
    log_softmax,
    logit,
    logsumexp,
    rel_entr,
    softmax,
    xlog1py,
    xlogy,
)  # fmt: skip
from lamina.scipy.special.error_functions import (
    dawsn,
    erf,
    erfc,
    erfcx,
    erfinv,
    fresnel,
    wofz,
)  # fmt: skip
from lamina.scipy.special.exponential_integrals import exp1, expi, expn, sici, spence
from lamina.scipy.special.gamma_functions import (
    bernoulli,
    beta,
    betainc,
    betaln,
    comb,
    digamma,
    factorial,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
    polygamma,
    zeta,
)  # fmt: skip
from lamina.scipy.special.hypergeometric import hyp1f1, hyp2f1
from lamina.scipy.special.normal import erfcinv, log_ndtr, ndtr, ndtri, owens_t
from lamina.scipy.special.spherical import sph_harm_y
