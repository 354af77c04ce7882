"""`hlo` for users' lowering rules: StableHLO's builders, and its ops by the names of their classes.

The wheel has no Python classes of StableHLO ops. `hlo.AddOp(x, y).result` is `hlo.add(x, y)`.
"""

from __future__ import annotations

import re
from typing import Any

from lamina.core.library import library
from lamina.dialects import stablehlo as _builders
from lamina.dialects.vendors import ir

# Classes whose names are not those of the op they are of.
_SHORT = {
    "Div": "divide",
    "Exp": "exponential",
    "Expm1": "exponential_minus_one",
    "Log1p": "log_plus_one",
    "Max": "maximum",
    "Min": "minimum",
    "Mul": "multiply",
    "Neg": "negate",
    "Pow": "power",
    "Rem": "remainder",
    "And": "and_",
    "Or": "or_",
    "Not": "not_",
    "While": "while_",
    "If": "if_",
}


def __getattr__(name: str) -> Any:
    if name.endswith("Op"):
        short = name.removesuffix("Op")
        mnemonic = _SHORT.get(short) or re.sub(r"(?<!^)(?=[A-Z])", "_", short).lower()
        builder = getattr(_builders, mnemonic, None)
        if builder is not None:
            return _op_class(builder)
    elif hasattr(_builders, name):
        return getattr(_builders, name)
    raise AttributeError(f"hlo has no {name!r}; {library}.dialects.stablehlo lists its builders")


def _op_class(builder: Any) -> Any:
    """A builder that takes ops of one result as operands, and gives the op it made."""

    def make(*args: Any, **kwargs: Any) -> Any:
        out = builder(*map(_value, args), **kwargs)
        values = [out] if isinstance(out, ir.Value) else list(out)
        return values[0].owner

    return make


def _value(x: Any) -> Any:
    return x.result if isinstance(x, (ir.Operation, ir.OpView)) else x
