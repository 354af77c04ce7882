"""Which of JAX's public names lamina has, namespace by namespace: docs/numpy.md; and which of its
primitives: docs/primitives.md.

JAX's names are kept in jax_names.txt and jax_primitives.txt, because JAX is no dependency of
lamina; run as a script where it is installed, this file writes them anew.
"""

from __future__ import annotations

import gc
import importlib
from pathlib import Path
from types import ModuleType

NAMES = Path(__file__).with_name("jax_names.txt")
PRIMITIVES = Path(__file__).with_name("jax_primitives.txt")
_HEAD = "# {} names of JAX {}, one namespace a line; written by tools/jax_coverage.py.\n"


def jax_names() -> dict[str, list[str]]:
    """The public names of each namespace of JAX; "." is the top."""
    found = {}
    for line in NAMES.read_text().splitlines():
        if line and not line.startswith("#"):
            path, _, names = line.partition(":")
            found[path] = names.split()
    return found


# What JAX has a primitive for and lamina another way.
_OTHERWISE = {
    "functions over other primitives": (
        "approx_top_k composite cumlogsumexp device_put mulhi platform_index ragged_dot_general "
        "random_gamma scaled_dot scaled_matmul scatter-sub select_and_gather_add select_and_scatter "
        "select_and_scatter_add stack tile unstack"
    ),
    "keys are pytrees of words, handled by functions": (
        "random_bits random_clone random_fold_in random_seed random_split random_unwrap random_wrap"
    ),
    "the same under another name": (
        "call closed_call custom_jvp_call_jaxpr custom_vmap_call debug_callback debug_print "
        "io_callback name pure_callback remat2"
    ),
    "run when traced, on the mesh's devices": "reshard shard_map sharding_constraint",
}


def missing_primitives(here: set[str]) -> list[str]:
    """Lines of Markdown on JAX's primitives that are not among these names."""
    missing = set(PRIMITIVES.read_text().split()) - here
    lines = ["", "## JAX's primitives that are not here", ""]
    for how, names in _OTHERWISE.items():
        found = sorted(missing & set(names.split()))
        lines.append(f"- {how}: {', '.join(f'`{n}`' for n in found)}")
        missing -= set(found)
    lines.append(f"- not there: {', '.join(f'`{n}`' for n in sorted(missing))}")
    return lines


def missing_names(path: str, names: list[str]) -> list[str]:
    """Those of JAX's names of a namespace that lamina has not."""
    try:
        module = importlib.import_module("lamina" if path == "." else f"lamina.{path}")
    except ModuleNotFoundError:
        return names
    return [name for name in names if not hasattr(module, name)]


def page(note: str) -> str:
    """The table of all namespaces, and the names that are missing."""
    rows, gaps = [], []
    total = here = 0
    for path, names in jax_names().items():
        missing = missing_names(path, names)
        shown = "lamina" if path == "." else f"lamina.{path}"
        rows.append(f"| `{shown}` | {len(names)} | {len(names) - len(missing)} | {len(missing)} |")
        total, here = total + len(names), here + len(names) - len(missing)
        if missing:
            gaps += ["", f"## Missing in `{shown}`", "", ", ".join(f"`{n}`" for n in missing)]
    lines = [
        "# JAX's names", "", note,
        f"Of {total} public names of JAX's namespaces lamina has {here}. Each row counts the names "
        "that JAX has there, those that lamina has, and those missing, which are listed below.",
        "", "| namespace | JAX | here | missing |", "|---|---|---|---|", *rows, *gaps,
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _write() -> None:
    jax = importlib.import_module("jax")
    lines, count = [], 0
    for path in jax_names():
        module = importlib.import_module("jax" if path == "." else f"jax.{path}")
        names = sorted(
            n for n in dir(module)
            if not n.startswith("_") and not isinstance(getattr(module, n, None), ModuleType)
        )  # fmt: skip
        lines.append(f"{path}: {' '.join(names)}\n")
        count += len(names)
    kind = importlib.import_module("jax.extend.core").Primitive
    primitives = {x.name for x in gc.get_objects() if isinstance(x, kind)}
    PRIMITIVES.write_text("".join(f"{name}\n" for name in sorted(primitives)))
    NAMES.write_text(_HEAD.format(count, jax.__version__) + "".join(lines))


if __name__ == "__main__":
    _write()
