"""Under `lamina.as_jax`, messages and classes bear JAX's names; settings are read from its variables."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lamina

ERRORS = """
import lamina.as_jax, jax, jax.numpy as jnp, traceback, warnings
warnings.simplefilter("error")
x = jnp.ones(3)
wrong = [
    lambda: jax.jit(lambda x: 1 if x else 2)(x[0]),
    lambda: jax.jit(int)(x[0]),
    lambda: jax.jit(lambda x: [4, 5][x])(1),
    lambda: jnp.hypot(1j, x), lambda: jnp.sin("a"), lambda: jnp.sin([1.0]), lambda: jnp.sin(x, out=x),
    lambda: jnp.nothing, lambda: jax.nothing, lambda: jax.lax.nothing, lambda: jnp.array(None),
    lambda: x.__setitem__(0, 1), lambda: memoryview(x)[0:1].__setitem__(0, 1.0), lambda: x.flat,
    lambda: jnp.fromfile("f"), lambda: jax.random.split(x), lambda: jax.jvp(jnp.sin, (x, x), (x,)),
    lambda: jax.Array(), lambda: type(x)(), lambda: jnp.array("a"), lambda: jnp.ufunc("f", 1, 1),
    lambda: x["a"], lambda: x.at[0].set("a"), lambda: jnp.zeros(3, "float64"), lambda: jnp.arange(x),
    lambda: jax.config.nothing, lambda: jax.grad(lambda x: x)(1), lambda: jnp.add.at(x, 0, 1),
    lambda: jax.config.update("jax_nothing", 1), lambda: jax.devices("cuda"),
]
for f in wrong:
    try:
        f()
    except Exception as error:
        print(traceback.format_exception_only(error))
    else:
        raise AssertionError(f.__code__.co_firstlineno)
print(repr(jnp.float32), jnp.sin, jnp.add, type(x), type(jax.random.key(0)), jax.Array)
"""

CLASSES = """
import lamina.as_jax, jax, jax.numpy as jnp, pickle, sys
x = jnp.ones(3)
print(type(x).__module__, type(x).__name__, jax.Array.__module__, jax.errors.JAXTypeError.__name__)
jax.jit(lambda x: print(type(x).__module__.startswith("jax.")))(x)
assert pickle.loads(pickle.dumps(type(x))) is type(x) and issubclass(type(x), jax.Array)
assert pickle.loads(pickle.dumps(jax.Array)) is jax.Array
assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
print(jax.config.jax_enable_x64, jax.config.jax_disable_jit)
"""


def run(code: str, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_messages_speak_of_jax() -> None:
    said = run(ERRORS).splitlines()
    assert len(said) > 25
    for line in said:
        assert "lamina" not in line.lower().replace("/lamina/", ""), line


def test_classes_and_settings_are_jax_s() -> None:
    said = run(CLASSES, JAX_ENABLE_X64="1", JAX_DISABLE_JIT="1", LAMINA_DISABLE_JIT="0").split()
    assert said == ["jaxlib._jax", "ArrayImpl", "jax", "JAXTypeError", "True", "True", "False"]


MODULES = sorted(Path(lamina.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("part", range(4))
def test_no_error_is_raised_with_the_name_written_out(part: int) -> None:
    """`core/library.py` has the name that messages use."""
    found = [
        f"{module}:{node.lineno}"
        for module in MODULES[part::4]
        if module.parent.name != "as_jax"
        for raised in ast.walk(ast.parse(module.read_text()))
        if isinstance(raised, ast.Raise)
        for node in ast.walk(raised)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.search(r"\blamina\b(?![-/])|LAMINA_", node.value)
    ]
    assert not found
