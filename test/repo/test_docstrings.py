"""The examples in docstrings of public functions do what they show."""

import doctest
import importlib
import inspect

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

NAMESPACES = [
    "lamina", "lamina.numpy", "lamina.numpy.linalg", "lamina.numpy.fft", "lamina.lax", "lamina.random", "lamina.nn",
    "lamina.nn.initializers", "lamina.scipy.special", "lamina.scipy.linalg", "lamina.scipy.stats", "lamina.tree",
    "lamina.tree_util", "lamina.image", "lamina.sharding", "lamina.export", "lamina.ops", "lamina.debug",
    "lamina.dlpack", "lamina.profiler", "lamina.ref",
]  # fmt: skip

COMPLETE: list[str] = [
    "lamina.numpy", "lamina.numpy.linalg", "lamina.numpy.fft", "lamina.random", "lamina.tree",
    "lamina.tree_util", "lamina.dlpack", "lamina.scipy.linalg",
]  # fmt: skip
"""Namespaces in which every function documents its arguments, where it has some, and shows an example."""


def functions(namespace: str) -> dict[str, object]:
    """The public functions of a namespace by name, those that are another's under a second name once."""
    module = importlib.import_module(namespace)
    names = [name for name in getattr(module, "__all__", None) or dir(module) if not name.startswith("_")]
    found: dict[int, tuple[str, object]] = {}
    for name in names:
        value = getattr(module, name, None)
        if not callable(value) or inspect.isclass(value):
            continue
        if (getattr(value, "__module__", None) or "lamina").startswith("lamina"):  # not NumPy's own
            found.setdefault(id(value), (name, value))
    return dict(found.values())


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_examples_run(namespace):
    parser, flags = doctest.DocTestParser(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    reports: list[str] = []
    runner = doctest.DocTestRunner(optionflags=flags)
    for name, function in functions(namespace).items():
        text = inspect.getdoc(function) or ""
        given = {"lamina": lamina, "jnp": jnp, "np": np, "lax": lamina.lax}
        example = parser.get_doctest(text, given, f"{namespace}.{name}", None, None)
        runner.run(example, out=reports.append)
    assert not runner.failures, "".join(reports)


def test_every_function_shows_an_example():
    without = [
        f"{namespace}.{name}"
        for namespace in COMPLETE
        for name, function in functions(namespace).items()
        if ">>> " not in (inspect.getdoc(function) or "")
    ]
    assert not without


def test_every_function_documents_its_arguments():
    missing = []
    for namespace in COMPLETE:
        for name, function in functions(namespace).items():
            text = inspect.getdoc(function) or ""
            try:
                parameters = inspect.signature(function).parameters.values()
            except (TypeError, ValueError):
                continue
            words = [p.name for p in parameters if not p.name.startswith("_") and p.kind is not p.VAR_KEYWORD]
            missing += [f"{namespace}.{name}: {word}" for word in words if word not in text]
    assert not missing
