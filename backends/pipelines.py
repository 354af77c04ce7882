"""Every pipeline, on one page: what happens to a program, in order.

A pipeline is a tuple of pass names, each with its options in braces, our own and upstream's alike.
"""

from __future__ import annotations

# A module as it comes from outside or from the frontend -> only @main, nothing redundant.
STABLEHLO_INPUT = (
    "stablehlo-legalize-composite-to-call",
    "inline",
    "symbol-dce",
)

# Only for modules with dynamic sizes: what the arguments' static shapes imply, then static ops.
STABLEHLO_REFINE = (
    "stablehlo-refine-shapes",
    "stablehlo-canonicalize-dynamism",
)
