"""Runs the programs beside on lamina and compares with what they gave on JAX.

    build/libraries/bin/python test/libraries/run.py [--plugin] [PROGRAM ...]

With --plugin JAX itself runs them, on lamina as its backend (docs/jax.md); else lamina takes JAX's place.
`make libraries` makes that environment. The results were written by `python PROGRAM.py >
results/PROGRAM.json`, with JAX 0.12.0 and the versions in requirements.txt.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
LIBRARIES = {
    "linen_training": "flax",
    "nnx_training": "flax",
    "haiku_nets": "dm-haiku",
    "numpyro_models": "numpyro",
    "tfp_distributions": "tfp-nightly",
    "distrax_flows": "distrax",
    "rlax_losses": "rlax",
    "tinygp_regression": "tinygp",
    "penzai_models": "penzai",
}
BY_PLUGIN = {
    "blackjax_sampling": "blackjax",
    "diffrax_equations": "diffrax",
    "equinox_models": "equinox",
    "flax_by_jax": "flax",
    "jaxopt_solvers": "jaxopt",
    "keras_training": "keras",
    "optax_training": "optax",
    "optimistix_solvers": "optimistix",
    "orbax_checkpoints": "orbax-checkpoint",
}
"""Run by JAX on lamina alone: they reach into JAX's inside, where `lamina.as_jax` does not follow; or
test/ecosystem runs the library there."""


def numbers(value: Any) -> list[float]:
    """All numbers in nested lists and dictionaries, in a fixed order."""
    if isinstance(value, dict):
        return [x for key in sorted(value) for x in numbers(value[key])]
    return [x for v in value for x in numbers(v)] if isinstance(value, list) else [float(value)]


def difference(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """How results differ; "" where they do not."""
    if found.keys() != expected.keys():
        return f"names of results: {sorted(found)} for {sorted(expected)}"
    for name, value in expected.items():
        try:
            np.testing.assert_allclose(
                numbers(found[name]), numbers(value), rtol=2e-3, atol=1e-4, err_msg=name
            )
        except AssertionError as error:
            return str(error)
    return ""


def run(program: str, as_plugin: bool) -> bool:
    """Whether a program gives JAX's results; says so, or what is wrong."""
    python = [sys.executable, "-W", "ignore", *([] if as_plugin else ["-m", "lamina.as_jax"])]
    command = [*python, str(HERE / f"{program}.py")]
    environment = {**os.environ, "JAX_PLATFORMS": "lamina"} if as_plugin else None
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    seconds = time.perf_counter() - start
    wrong = done.stderr[-4000:]
    if done.returncode == 0:
        expected = json.loads((HERE / "results" / f"{program}.json").read_text())
        wrong = difference(json.loads(done.stdout.splitlines()[-1]), expected)
    library = (LIBRARIES | BY_PLUGIN)[program]
    named = f"{library} {importlib.metadata.version(library)}"
    said = f"NOT as on JAX\n{wrong}" if wrong else "as on JAX"
    print(f"{program:18} {named:36} {seconds:5.1f} s  {said}", flush=True)
    return not wrong


def main(chosen: list[str]) -> None:
    """Runs these programs, by default all; exits with 1 where one differs. With --plugin among them, by
    JAX on lamina."""
    as_plugin = "--plugin" in chosen
    programs = [name for name in chosen if name != "--plugin"] or list(
        LIBRARIES | BY_PLUGIN if as_plugin else LIBRARIES
    )
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        right = list(pool.map(run, programs, [as_plugin] * len(programs)))
    sys.exit(not all(right))


if __name__ == "__main__":
    main(sys.argv[1:])
