"""Every primitive is sampled, its family's lowering is tested, and the generated pages are fresh."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.samples.functions import has_derivative
from support.samples.primitives import ROWS
from support.samples.sample import Sample

from lamina import lax
from lamina.core import NO_OPERANDS, NOT_DIFFERENTIABLE, OWED, Primitive
from lamina.tools import gen_docs

REPO = Path(__file__).resolve().parents[2]
FIRST_ORDER = [
    (m, found) for m, found in gen_docs.families() if m.__name__.startswith("lamina.lax")
]


@pytest.mark.parametrize("family", [m.__name__.rpartition(".")[2] for m, _ in FIRST_ORDER])
def test_a_family_has_a_lowering_test(family: str) -> None:
    assert (REPO / "test" / "lowering" / f"{family}.filecheck.py").exists()


def test_every_primitive_has_a_row() -> None:
    sampled = {s.primitive for s in ROWS}
    assert not [p for _, found in FIRST_ORDER for p in found if p not in sampled]


def test_every_primitive_is_exported() -> None:
    public = [getattr(module, name) for module in (lax, lax.linalg) for name in dir(module)]
    exported = {p for p in public if isinstance(p, Primitive)}
    assert not [p for _, found in FIRST_ORDER for p in found if p not in exported]


def test_no_lowering_is_owed() -> None:
    assert not [p for _, found in FIRST_ORDER for p in found if p.lowering is OWED]


@pytest.mark.parametrize("page", gen_docs.PAGES)
def test_generated_pages_are_fresh(page: str) -> None:
    assert (REPO / "docs" / page).read_text() == gen_docs.PAGES[page](), "run `make docs`"


def test_every_rule_of_a_primitive_has_a_row() -> None:
    """The generic tests see its derivatives, if it has any, and its batches."""
    found: dict[Primitive, list[Sample]] = {}
    for sample in ROWS:
        found.setdefault(sample.primitive, []).append(sample)
    every = [p for _, family in FIRST_ORDER for p in family]
    differentiable = [p for p in every if p.jvp not in (NOT_DIFFERENTIABLE, OWED)]
    assert not [p for p in differentiable if not any(map(has_derivative, found[p]))]
    batched = [p for p in every if p.batching is not NO_OPERANDS]
    assert not [p for p in batched if not any(s.vmap for s in found[p])]
