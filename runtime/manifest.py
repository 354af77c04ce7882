"""What an artifact's manifest must hold to be loaded, checked before anything believes it."""

from __future__ import annotations

import re
from typing import Any

# Compiled, and kept by `re`, when an artifact is first checked: not by every import.
_DTYPE = r"bool|u?int(2|4|8|16|32|64)|bfloat16|float(16|32|64)|float[468]_e\w+|complex(64|128)"
_SYMBOL = r"[A-Za-z_.$][A-Za-z0-9_.$]*"  # LLVM ends the process for an empty one
_MOST_BYTES = 2**63 - 1


def problem_of(manifest: Any) -> str | None:
    """What is wrong with a manifest, or None. See `Artifact` for the keys."""
    if not isinstance(manifest, dict):
        return "the manifest is not a table"
    for key, kind in (("name", str), ("inputs", list), ("outputs", list)):
        if not isinstance(manifest.get(key), kind):
            return f"the manifest's {key!r} is missing, or not of type {kind.__name__}"
    if not _is_size(manifest.get("arena_bytes")):
        return "the manifest's 'arena_bytes' is not a size"
    target = manifest.get("target", {})  # by default this processor
    kinds: dict[str, type] = {"vector_bits": int, "machine": dict}
    if not isinstance(target, dict) or not all(
        isinstance(value, kinds.get(key, str)) for key, value in target.items()
    ):
        return "the manifest's 'target' does not describe one"
    on_gpu = target.get("kind") == "cuda"
    if on_gpu and not _is_size(manifest.get("scratch")):
        return "the manifest's 'scratch' is not a size"
    code: dict[str, type] = (
        {"device_kernels": dict, "launch_plan": list} if on_gpu else {"entry": str}
    )
    for key, of in code.items():
        if not isinstance(manifest.get(key), of):
            return f"the manifest's {key!r} is missing, or not of type {of.__name__}"
    imports = manifest.get("imports", [])
    if not isinstance(imports, list) or not all(map(_is_symbol, imports)):
        return "the manifest's 'imports' are not names of symbols"
    if not on_gpu and not _is_symbol(manifest["entry"]):
        return "the manifest's 'entry' is not the name of a symbol"
    cost = manifest.get("cost", {})
    if not isinstance(cost, dict) or not all(map(_is_number, cost.values())):
        return "the manifest's 'cost' is not a table of numbers"
    count = len(manifest["inputs"])
    for row in (*manifest["inputs"], *manifest["outputs"]):
        if (wrong := _problem_of_array(row, count)) is not None:
            return wrong
    return None


def _problem_of_array(row: Any, inputs: int) -> str | None:
    if not isinstance(row, dict) or not isinstance(row.get("shape"), list):
        return f"{row!r} does not describe an array"
    if not isinstance(row.get("dtype"), str) or not re.fullmatch(_DTYPE, row["dtype"]):
        return f"there are no arrays of {row.get('dtype')!r}"
    size = 16  # the most that an element takes
    for n in row["shape"]:
        if not _is_size(n):
            return f"{n!r} is not the size of a dimension"
        size *= n
    if size > _MOST_BYTES:
        return f"an array of shape {row['shape']} fits no memory"
    alias = row.get("alias_of")
    if alias is not None and not (_is_size(alias) and alias < inputs):
        return f"{alias!r} is not the number of an argument"
    return None


def _is_symbol(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(_SYMBOL, value) is not None


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_BYTES


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
