"""Every program of examples/ gives what JAX gave when it ran the same source."""

import re
import sys

import numpy as np
import pytest
from support.example_results import EXAMPLES, RESULTS, names, run, stored, summary


def test_every_example_has_its_results():
    assert sorted(p.stem for p in RESULTS.iterdir()) == names()


def test_every_example_is_documented():
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text()
    told = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted([*told, "digits"]) == sorted(p.stem for p in EXAMPLES.glob("*.py"))
    assert told[: len(names())] == names()


@pytest.mark.parametrize("name", names())
def test_example(name, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name])
    got = run(name, "lamina")
    want = stored(name)
    assert {*got} == {*want}
    differing = []
    for key, entry in want.items():
        found = summary(got[key])
        assert (found["shape"], found["dtype"]) == (entry["shape"], entry["dtype"]), key
        for part in ("values", "mean", "rms"):
            if part in entry and not np.allclose(
                found[part], entry[part], rtol=entry["rtol"], atol=entry["atol"], equal_nan=True
            ):
                differing.append(f"{key}, {part}: {found[part]} is not {entry[part]}")
    assert not differing, "\n".join(differing)
