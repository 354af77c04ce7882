"""The StableHLO builders of lamina.dialects, loaded when the first lowering rule asks for one.

Rule code says `from lamina.lax import hlo` at its top and `hlo.add(x, y)` within a rule, so that
importing lamina loads no MLIR.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    from lamina.dialects import stablehlo

    value = globals()[name] = getattr(stablehlo, name)
    return value
