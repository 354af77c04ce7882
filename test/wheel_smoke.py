"""Run by `make wheel-smoke` with an installed wheel, from a folder that is not the checkout."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

os.environ["LAMINA_CACHE_DIR"] = tempfile.mkdtemp()


def check_files() -> None:
    """The package comes from the environment, holds all folders and no sources of C++."""
    import lamina

    package = Path(lamina.__file__).parent
    assert package.is_relative_to(sys.prefix), package
    for part in ("dialects", "passes", "backends", "runtime", "tools", "lax", "numpy"):
        assert (package / part / "__init__.py").exists(), part
    assert (package / "py.typed").exists()
    assert not list(package.rglob("*.cpp")) and not list(package.rglob("__pycache__/*.mlir"))


def check_programs() -> None:
    """A gradient through jit, compiled here, and again from the cache in another process."""
    import lamina
    import lamina.numpy as jnp

    def loss(w, x):
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    w = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    x = np.linspace(0, 1, 20, dtype=np.float32).reshape(5, 4)
    value, gradient = lamina.jit(lamina.value_and_grad(loss))(w, x)
    t = np.tanh(x @ w)
    np.testing.assert_allclose(np.asarray(value), np.mean(t**2), rtol=1e-5)
    np.testing.assert_allclose(
        np.asarray(gradient), x.T @ (2 * t * (1 - t**2)) / t.size, rtol=1e-4, atol=1e-6
    )


def check_commands() -> None:
    """The console scripts are installed and start."""
    for command in ("lamina-opt", "lamina-compile"):
        path = Path(sys.executable).parent / command
        subprocess.run([path, "--help"], check=True, capture_output=True)


if __name__ == "__main__":
    check_files()
    check_programs()
    if len(sys.argv) == 1:
        check_commands()
        subprocess.run([sys.executable, "-I", __file__, "again"], check=True)
        print("the wheel works")
