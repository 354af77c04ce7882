"""Public functions document their arguments, and the examples in their docstrings do what they show."""

import doctest
import enum
import functools
import importlib
import inspect
import pkgutil
from typing import NewType

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina.tools.jax_coverage import jax_names

# Those of the interpreters that libraries register primitives by.
INTERPRETERS = ("ad", "batching_rules", "mlir", "partial_eval")


def public_modules() -> list[str]:
    """Modules that users import: those of the top, those that are namespaces of JAX's, and what lies in the
    packages of optional ones and says what it has."""
    found = {"lamina", *(f"lamina.{name}" for name in lamina._MODULES)}
    found |= {f"lamina.{name}" for name in ("config", "errors", "lax", "numpy", "tree", "tree_util")}
    found |= {f"lamina.{name}" for name in jax_names() if name != "."}
    for package in ("experimental", "extend", "example_libraries"):
        parent = importlib.import_module(f"lamina.{package}")
        for child in pkgutil.iter_modules(parent.__path__, f"{parent.__name__}."):
            if child.ispkg or hasattr(importlib.import_module(child.name), "__all__"):
                found.add(child.name)
    return sorted(found | {f"lamina.interpreters.{name}" for name in INTERPRETERS})


@functools.cache
def functions(namespace: str) -> dict[str, object]:
    """The public functions of a namespace by name, those that are another's under a second name once."""
    module = importlib.import_module(namespace)
    names = [name for name in getattr(module, "__all__", None) or dir(module) if not name.startswith("_")]
    found: dict[int, tuple[str, object]] = {}
    for name in names:
        value = getattr(module, name, None)
        if not callable(value) or inspect.isclass(value) or isinstance(value, (enum.Enum, NewType)):
            continue
        if (getattr(value, "__module__", None) or "lamina").startswith("lamina"):  # not NumPy's own
            found.setdefault(id(value), (name, value))
    return dict(found.values())


def array_methods() -> dict[str, object]:
    """The public methods of arrays; properties are told by their names."""
    names = [name for name in dir(lamina.Array) if not name.startswith("_")]
    found = {name: inspect.getattr_static(lamina.Array, name) for name in names}
    return {name: value for name, value in found.items() if not isinstance(value, property)}


PUBLIC = public_modules()


def run_examples(place: str, found: dict[str, object]) -> None:
    parser, flags = doctest.DocTestParser(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    reports: list[str] = []
    runner = doctest.DocTestRunner(optionflags=flags)
    for name, function in found.items():
        text = inspect.getdoc(function) or ""
        given = {"lamina": lamina, "jnp": jnp, "np": np, "lax": lamina.lax}
        example = parser.get_doctest(text, given, f"{place}.{name}", None, None)
        runner.run(example, out=reports.append)
    assert not runner.failures, "".join(reports)


@pytest.mark.parametrize("namespace", PUBLIC)
def test_examples_run(namespace):
    run_examples(namespace, functions(namespace))


def test_examples_of_array_methods_run():
    run_examples("lamina.Array", array_methods())


def test_every_function_shows_an_example():
    places = [(namespace, functions(namespace)) for namespace in PUBLIC]
    without = [
        f"{place}.{name}"
        for place, found in [*places, ("lamina.Array", array_methods())]
        for name, function in found.items()
        if ">>> " not in (inspect.getdoc(function) or "")
    ]
    assert not without


def test_every_function_documents_its_arguments():
    missing = []
    for namespace in PUBLIC:
        for name, function in functions(namespace).items():
            text = inspect.getdoc(function) or ""
            try:
                parameters = inspect.signature(function).parameters.values()
            except (TypeError, ValueError):
                continue
            words = [p.name for p in parameters if not p.name.startswith("_") and p.kind is not p.VAR_KEYWORD]
            missing += [f"{namespace}.{name}: {word}" for word in words if word not in text]
    assert not missing
