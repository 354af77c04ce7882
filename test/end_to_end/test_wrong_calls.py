"""Calls that can't be answered: what is said about them, and where JAX makes them, too, its class."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from support.oracle import judge as oracle

import lamina
import lamina.numpy as jnp

X = np.arange(3, dtype=np.float32)


def mask_of_numbers(m):
    m.np.sum(m.np.asarray(X), where=m.np.asarray([1, 0, 1]))


def uneven_padding(m):
    m.np.pad(m.np.ones((3, 4)), ((1, 2), (3,)))


def two_cotangents(m):
    _, back = m.vjp(lambda x: x, X)
    back(X, X)


def integer_into_float_carry(m):
    m.lax.scan(lambda carry, x: (1, x), 0.0, X)


def text_from_grad(m):
    m.grad(lambda x: "text")(1.0)


def no_cotangents(m):
    f = m.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x, x), lambda x, c: None)
    m.grad(f)(1.0)


def cut_at_a_float(m):
    m.np.split(m.np.asarray(X), [1.5])


def uneven_axes(m):
    m.np.tensordot(m.np.ones((3, 4)), m.np.ones((3, 4)), axes=((0,), (0, 1)))


def half_a_decimal(m):
    m.np.round(m.np.asarray(X), 1.5)


def number_for_sharding(m):
    m.jit(lambda x: x, in_shardings=3)(X)


WORDS = {
    no_cotangents: "Custom VJP bwd rule must produce an output with the same container",
    cut_at_a_float: "",
    uneven_axes: "tensordot requires",
    half_a_decimal: "'float' object cannot be interpreted as an integer",
    number_for_sharding: "in_shardings",
    mask_of_numbers: "sum: where must be None or a boolean array",
    uneven_padding: "`pad_width` entries must",
    two_cotangents: "called with 2 arguments",
    integer_into_float_carry: "scan body function carry input and carry output must have equal types",
    text_from_grad: "",
}


@pytest.mark.parametrize("call", WORDS, ids=lambda f: f.__name__)
def test_errors_are_jax_s(call):
    kinds = set()
    for m in (oracle.JAX, oracle.LAMINA):
        with pytest.raises((TypeError, ValueError)) as e:
            call(m)
        assert WORDS[call] in str(e.value), (m.name, str(e.value))
        kinds.add(type(e.value))
    assert len(kinds) == 1


def test_lambdas_have_their_names_in_messages():
    for call in (lambda: lamina.grad(lambda x: "text")(1.0), lambda: lamina.jit(lambda x: "text")(1.0)):
        with pytest.raises(TypeError, match=rf"function <lambda> at {re.escape(__file__)}:\d+ returned"):
            call()
    with pytest.raises(TypeError, match="Error interpreting argument to <lambda>"):
        lamina.jit(lambda x: x)("text")


def test_a_target_is_text():
    from lamina.backends.target import TargetError

    for call in (
        lambda: lamina.jit(lambda x: x, target=3)(X),
        lambda: lamina.jit(lambda x: x).lower(X).compile(target=3),
        lambda: lamina.compile_stablehlo("func.func @main() { return }", target=3),
    ):
        with pytest.raises(TargetError, match="a target is text such as 'cpu' or 'cuda:sm_90a', got 3"):
            call()


def test_stages_of_a_program_that_computes_nothing_are_those_of_others():
    compiled = lamina.jit(lambda x: x).lower(X).compile()
    assert compiled.as_text("fused").startswith("// nothing is computed")
    with pytest.raises(ValueError, match="no stage 'fuzed'; there are stablehlo, optimized, fused"):
        compiled.as_text("fuzed")


@pytest.mark.parametrize("way", (lambda f: f, lamina.jit), ids=("eager", "jit"))
def test_results_beyond_all_memory(way):
    with pytest.raises(MemoryError, match=r"out of memory: f32\[8589934592,8589934592\].* at .*test_wrong_"):
        way(lambda x: jnp.ones((1 << 33, 1 << 33)) * x)(1.0)
    with pytest.raises(TypeError, match="shapes have no sizes over 9223372036854775807, got "):
        way(lambda x: jnp.ones((1 << 63,)) * x)(1.0)


@pytest.mark.parametrize(
    ("variable", "words"),
    {
        "LAMINA_LANES": "'nonsense': expected one of auto, select, branch",
        "LAMINA_LOG": "'nonsense': expected some of cache, compile, distributed, partition, retrace; got nonsense",
        "LAMINA_DUMP": "LAMINA_DUMP: no folder can be made there: ",
    }.items(),
)
def test_variables(variable, words, tmp_path):
    file = tmp_path / "file"
    file.touch()
    given = str(file / "folder") if variable == "LAMINA_DUMP" else "nonsense"
    done = subprocess.run(
        [sys.executable, "-c", "import lamina; lamina.jit(lambda x: x + 1)(1.0)"],
        env=os.environ | {variable: given, "LAMINA_CACHE": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert words in done.stderr


def test_a_topic_is_no_word():
    known = "cache, compile, distributed, partition, retrace"
    with pytest.raises(ValueError, match=f"log: expected some of {known}; got re"):
        lamina.config.update("log", "retrace")
    with pytest.raises(ValueError, match="got nonsense"), lamina.config.log({"nonsense"}):
        pass


def test_a_mesh_is_made_of_devices():
    with pytest.raises(TypeError, match=r"A mesh is made of devices, as lamina.devices\(\) gives them, got 1"):
        lamina.sharding.Mesh([1, 2], ("i",))
