"""Every pass is one documented file with a test at the mirrored path."""

from dataclasses import is_dataclass
from pathlib import Path

import pytest

from lamina.passes.framework import registry

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
    *folders, stem = PASSES[name].__module__.split(".")[2:]
    test = REPO.joinpath("test", "passes", *folders, f"{stem}.mlir")
    assert test.exists()
    text = test.read_text()
    assert "RUN:" in text and "CHECK" in text and name in text
    assert test.relative_to(REPO).as_posix() in registry.documentation(PASSES[name]), (
        "the docstring names its test: `example: test/passes/...`"
    )


def test_no_two_passes_of_a_level_have_one_file_name():
    """A pass is found by level and file name, whatever its folder."""
    for name, kind in PASSES.items():
        assert registry.find(name) is kind


def test_no_folder_holds_more_than_one_sees_at_a_glance():
    for folder in (REPO / "passes").rglob("*/"):
        assert len(list(folder.glob("*.py"))) <= 25, folder
