"""Every pass is one documented file with a test at the mirrored path."""

from dataclasses import is_dataclass
from pathlib import Path

import pytest

from lamina.passes import registry

REPO = Path(__file__).resolve().parents[2]

PASSES = registry.all_passes()


def test_there_are_passes():
    assert len(PASSES) >= 10


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_is_no_dataclass(name):
    """Half a millisecond each, in every process; `Pass` itself reads the options."""
    assert not is_dataclass(PASSES[name])


@pytest.mark.parametrize("name", PASSES)
def test_what_a_pass_is_left_out_without_is_read_from_its_file(name):
    assert registry.only_with(name) == PASSES[name].only_with, "on one line, names in quotes"


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_is_documented(name):
    text = registry.documentation(PASSES[name])
    first = text.splitlines()[0] if text else ""
    assert first.endswith("."), "the docstring's first line is a sentence: what the pass does"
    assert len(text.splitlines()) > 1, "then: when it does nothing, and its test as the example"


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_its_test(name):
    level, stem = PASSES[name].__module__.split(".")[-2:]
    test = REPO / "test" / "passes" / level / f"{stem}.mlir"
    assert test.exists()
    text = test.read_text()
    assert "RUN:" in text and "CHECK" in text and name in text
    assert test.relative_to(REPO).as_posix() in registry.documentation(PASSES[name]), (
        "the docstring names its test: `example: test/passes/...`"
    )
