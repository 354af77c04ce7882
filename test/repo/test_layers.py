"""Imports go down the layers only, and the checker that says so sees what it should."""

import ast
from pathlib import Path

import pytest

from lamina.tools import check_layers

REPO = Path(__file__).resolve().parents[2]


def test_no_import_goes_up():
    assert [str(breach) for breach in check_layers.breaches()] == []


def test_the_checker_reads_the_whole_house():
    names = {name for name, _ in check_layers.modules()}
    for folder, package in check_layers.PACKAGES.items():
        files = [p for p in (REPO / folder).rglob("*.py") if p.resolve() == p]
        assert package in names
        assert sum(name.startswith(package) for name in names) >= len(files)


@pytest.mark.parametrize(
    ("module", "imported", "fine"),
    [
        ("lamina.core.jaxpr", "lamina.lax.math", False),
        ("lamina.core.jaxpr", "numpy", True),
        ("lamina.lax.math", "lamina.dialects.stablehlo", True),
        ("lamina.lax.math", "lamina.dialects.vendors", False),
        ("lamina.lax.math", "lamina.interpreters.staging", False),
        ("lamina.interpreters.jvp", "lamina.backends.compile", False),
        ("lamina.jit.programs", "lamina.backends.compile", True),
        ("lamina.jit.programs", "torch_mlir.ir", False),
        ("lamina.backends.compile", "lamina.runtime.store", True),
        ("lamina.backends.compile", "lamina.runtime._runtime", False),
        ("lamina.backends.compile", "lamina.core", False),
        ("lamina.backends.llvm_codegen", "llvmlite.binding", True),
        ("lamina.passes.stablehlo.canonicalize.cse", "lamina.backends.target", False),
        ("lamina.passes.stablehlo.canonicalize.cse", "torch_mlir", False),
        ("lamina.dialects.vendors", "torch_mlir.ir", True),
        ("lamina.dialects.types", "torch_mlir.ir", False),
        ("lamina.runtime.store", "lamina.dialects", False),
        ("lamina.numpy.reductions", "lamina.tools.lamina_opt", False),
    ],
)
def test_the_table(module, imported, fine):
    layer = check_layers.layer_of(module)
    assert check_layers.allowed(layer, imported) is fine


def test_nobody_outside_vendors_names_the_mlir_wheel():
    """The wheel's name appears in imports of one file, so that another wheel can replace it."""
    found = []
    for name, path in check_layers.modules():
        for node in ast.walk(ast.parse(path.read_text())):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module or ""]
            if any(module.split(".")[0] == "torch_mlir" for module in modules):
                found.append(name)
    assert set(found) == {"lamina.dialects.vendors"}


def test_interpreters_are_small_and_know_no_primitive():
    """Each is one file under 400 lines that names no primitive: rules stand with primitives."""
    shown = {"ad.py": {"add_any_p", "add_jaxvals_p"}}  # a name of JAX's, for libraries
    for path in (REPO / "frontend/lamina/interpreters").glob("*.py"):
        text = path.read_text()
        assert text.count("\n") < 400, path.name
        names = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Name, ast.Attribute, ast.alias)):
                name = getattr(node, "id", None) or getattr(node, "attr", None) or node.name
                names |= {name} if name.endswith("_p") else set()
            elif isinstance(node, ast.Compare) and "primitive.name" in ast.unparse(node):
                names.add(ast.unparse(node))
        assert names <= shown.get(path.name, set()), f"{path.name}: {names}"
