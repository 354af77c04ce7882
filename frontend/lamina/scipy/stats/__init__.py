"""Probability distributions with SciPy's names, each a module, and statistics of samples.

A distribution's module is loaded when it is first named.
"""

from __future__ import annotations

import importlib as _importlib

from lamina.core.library import library as _library

_MODULES = frozenset({
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma",
    "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial",
    "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "t", "truncnorm", "uniform",
    "vonmises", "wrapcauchy",
})  # fmt: skip
_NAMES = {
    "gaussian_kde": "kde", "mode": "summaries", "rankdata": "summaries", "sem": "summaries",
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _importlib.import_module(f"lamina.scipy.stats.{name}")
    if name in _NAMES:
        module = _importlib.import_module(f"lamina.scipy.stats.{_NAMES[name]}")
        value = globals()[name] = getattr(module, name)
        return value
    raise AttributeError(f"module '{_library}.scipy.stats' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES})
