"""What the programs of examples/ compute, run by lamina or by JAX: the stored results.

    python test/support/example_results.py [NAME...]    # writes examples/results/NAME.json, by JAX

An example is run by JAX by replacing the word `lamina` in its source: the API is the same. Entries
are kept whole up to 16 numbers; larger ones as 16 numbers spread evenly, their mean and root mean
square. Tolerances are edited in the files by hand, and kept when the values are written again.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

EXAMPLES = Path(__file__).parents[2] / "examples"
RESULTS = EXAMPLES / "results"
# Whole applications, with reports and timings of their own: nothing is stored for them.
DEMOS = (
    "data_parallel",
    "digits",
    "flax_by_jax",
    "pipeline",
    "ring_attention",
    "sharded_batch",
    "sharded_layers",
    "sharded_weights",
)
KEPT = 16


def names() -> list[str]:
    """The examples whose results are stored."""
    return sorted(p.stem for p in EXAMPLES.glob("*.py") if p.stem not in DEMOS)


def run(name: str, library: str) -> dict[str, Any]:
    """What an example calls `result` after it ran as a script with this library."""
    path = EXAMPLES / f"{name}.py"
    source = re.sub(r"\blamina\b", library, path.read_text())
    scope: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    exec(compile(source, str(path), "exec"), scope)
    return scope["result"]


def summary(x: Any) -> dict[str, Any]:
    """Shape, dtype and some numbers of a result."""
    x = np.asarray(x)
    flat = x.reshape(-1)
    kept = {"shape": list(x.shape), "dtype": str(x.dtype)}
    if x.size <= KEPT:
        return kept | {"values": flat.tolist()}
    wide = flat.astype(np.float64)
    where = np.linspace(0, x.size - 1, KEPT).astype(int)
    size = float(np.sqrt(np.mean(wide**2)))
    return kept | {"values": flat[where].tolist(), "mean": float(wide.mean()), "rms": size}


def stored(name: str) -> dict[str, dict[str, Any]]:
    """The stored entries of an example; none where it has none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write(name: str) -> None:
    """Stores what JAX computes, with the tolerances that were there."""
    before = stored(name)
    entries = {}
    for key, x in sorted(run(name, "jax").items()):
        entry = summary(x)
        exact = not np.issubdtype(np.asarray(x).dtype, np.inexact)
        default = {"rtol": 0.0, "atol": 0.0} if exact else {"rtol": 1e-4, "atol": 1e-5}
        entries[key] = entry | {k: before.get(key, {}).get(k, default[k]) for k in default}
    lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in entries.items())
    (RESULTS / f"{name}.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    for each in sys.argv[1:] or names():
        write(each)
