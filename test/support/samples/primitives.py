"""Sample applications of every primitive in lamina.lax: one table, used by all generic tests.

A row names the primitive, applies it as `function(lax, *arrays)` (so that lamina.lax and jax.lax
can both run it) and describes the arrays. Give rows for what could differ: ranks (0 too), empty
arrays, dtypes, parameters. `numpy` is an independent reference; without one JAX is. The rows are in
the modules beside this one, by family.
"""

from __future__ import annotations

import importlib

from support.samples.sample import ROWS as ROWS

FAMILIES = (
    "elementwise", "comparisons", "shapes", "reductions", "products", "windows", "indexing", "order",
    "collectives", "linalg",
)  # fmt: skip
for _family in FAMILIES:
    importlib.import_module(f"support.samples.{_family}")
