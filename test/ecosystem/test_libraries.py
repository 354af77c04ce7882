"""Libraries written for JAX run on lamina, and compute what they compute on JAX.

The results beside were written by `python PROGRAM.py > results/PROGRAM.json` with JAX 0.10.2.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-m", "lamina.as_jax", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("program", ["modules", "optimisers", "solvers"])
def test_results_are_those_on_jax(program) -> None:
    done = run(str(HERE / f"{program}.py"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = json.loads((HERE / "results" / f"{program}.json").read_text())
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if name == "error":
            assert found[name] == value
        else:
            np.testing.assert_allclose(found[name], value, rtol=2e-4, atol=1e-6, err_msg=name)


def test_what_is_not_there_is_named(tmp_path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nimport jax, jax._src.core, jax.scipy.special\nassert sys.argv[1:] == ['a']\n"
        "assert jax._src.core.Tracer is jax.core.Tracer\n"
        "assert jax.random is sys.modules['jax.random'] and jax.lib.__version__ == jax.__version__\n"
        "print(jax.__version__, jax.numpy.__name__)\nimport jax.experimental.nowhere.at_all\n"
    )
    done = run(str(program), "a")
    assert done.stdout.split() == ["0.12.0", "lamina.numpy"]
    assert "No module named 'jax.experimental.nowhere" in done.stderr
    assert "no file 'nowhere.py'" in run("nowhere.py").stderr


def test_jax_itself_may_not_be_there() -> None:
    code = "import jax, lamina.as_jax"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert "import lamina.as_jax before anything that imports jax" in done.stderr
