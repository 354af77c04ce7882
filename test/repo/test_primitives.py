"""Every primitive is sampled, its family's lowering is tested, and the generated pages are fresh."""

from __future__ import annotations

from pathlib import Path

import pytest
from primitive_samples import ROWS

from lamina import lax
from lamina.core import OWED, Primitive
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
    names = {**vars(lax), **vars(lax.linalg)}
    exported = {p for p in names.values() if isinstance(p, Primitive)}
    assert not [p for _, found in FIRST_ORDER for p in found if p not in exported]


def test_no_lowering_is_owed() -> None:
    assert not [p for _, found in FIRST_ORDER for p in found if p.lowering is OWED]


@pytest.mark.parametrize("page", gen_docs.PAGES)
def test_generated_pages_are_fresh(page: str) -> None:
    assert (REPO / "docs" / page).read_text() == gen_docs.PAGES[page](), "run `make docs`"
