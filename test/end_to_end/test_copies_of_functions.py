"""Jitted functions are copied as functions are, and pickled, so that other processes may call them."""

import copy
import pickle
import subprocess
import sys

import pytest

import lamina
import lamina.numpy as jnp


@lamina.jit
def doubled(x):
    return x * 2


def tripled(x, times=1):
    return x * 3 * times


by_another_name = lamina.jit(tripled, static_argnums=1)


class Model:
    def __init__(self):
        self.step = lamina.jit(lambda x: x + 1)
        self.weights = jnp.ones(3)


@pytest.mark.parametrize("copied", (copy.copy, copy.deepcopy))
def test_copies(copied):
    assert copied(doubled) is doubled
    assert copied(by_another_name)(2.0, 2) == 12
    model = copied(Model())
    assert model.step(1.0) == 2 and model.weights.tolist() == [1, 1, 1]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol):
    assert pickle.loads(pickle.dumps(doubled, protocol)) is doubled
    again = pickle.loads(pickle.dumps(by_another_name, protocol))
    assert again(2.0, 2) == 12
    assert again.lower(2.0, 3).compile()(2.0) == 18
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(lamina.jit(lambda x: x), protocol)


PROGRAM = """
import multiprocessing
from functions import doubled, tripled
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(*pool.map(doubled, [1.0, 2.0]), *pool.map(tripled, [1.0]))
"""
FUNCTIONS = """
import lamina
@lamina.jit
def doubled(x):
    return x * 2
def _tripled(x):
    return x * 3
tripled = lamina.jit(_tripled)
"""


def test_another_process_calls_them(tmp_path):
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.stdout == "2.0 4.0 3.0\n", done.stderr
