"""experimental.serialize_executable: compiled programs as bytes."""

import subprocess
import sys

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina.experimental import serialize_executable as se

TABLE = np.arange(8192, dtype=np.float32)  # large enough to be given to the program, not in it


def program(x, *, scale, skipped=None):
    return {"sum": (x * scale).sum(), "same": x, "table": (TABLE + x[0])[::1024]}, scale + 1


def compiled():
    return lamina.jit(program).lower(jnp.arange(4.0), scale=2.0, skipped=3).compile()


def test_a_program_comes_back():
    before = compiled()
    blob, in_tree, out_tree = se.serialize(before)
    after = se.deserialize_and_load(blob, in_tree, out_tree)
    got, want = (f(jnp.arange(4.0) + 1, scale=3.0, skipped=0) for f in (after, before))
    assert lamina.tree.structure(got) == lamina.tree.structure(want)
    for x, y in zip(lamina.tree.leaves(got), lamina.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(x, y)
        assert lamina.typeof(x) == lamina.typeof(y)
    assert after.out_info == before.out_info and after.args_info == before.args_info
    assert "stablehlo" in after.as_text("stablehlo")
    with pytest.raises(ValueError, match="not kept"):
        after.as_text("jaxpr")
    with pytest.raises(TypeError, match="compiled with"):
        after(jnp.arange(5.0), scale=3.0, skipped=0)


def test_in_another_process(tmp_path):
    blob, _, _ = se.serialize(lamina.jit(lambda x: jnp.sin(x) + 1).lower(1.0).compile())
    (tmp_path / "blob").write_bytes(blob)
    code = (
        "import sys, lamina\nfrom lamina.experimental.serialize_executable import *\n"
        "trees = [lamina.tree.structure(t) for t in (((0.0,), {}), 0.0)]\n"
        "f = deserialize_and_load(open(sys.argv[1], 'rb').read(), *trees)\n"
        "print(float(f(0.0)), 'torch_mlir' in sys.modules)"
    )
    run = [sys.executable, "-c", code, str(tmp_path / "blob")]
    assert subprocess.run(run, capture_output=True, text=True).stdout.split() == ["1.0", "False"]


def test_what_is_refused():
    blob, in_tree, out_tree = se.serialize(compiled())
    with pytest.raises(ValueError, match="not a serialized executable"):
        se.deserialize_and_load(b"x" + blob, in_tree, out_tree)
    with pytest.raises(ValueError, match="cut off"):
        se.deserialize_and_load(blob[:-3], in_tree, out_tree)
    printing = lamina.jit(lambda x: lamina.debug.print("{}", x)).lower(1.0).compile()
    with pytest.raises(NotImplementedError, match="calls back"):
        se.serialize(printing)
    with pytest.raises(NotImplementedError, match="keys"):
        se.serialize(lamina.jit(lamina.random.split).lower(lamina.random.key(0)).compile())
    with pytest.raises(NotImplementedError, match="computes nothing"):
        se.serialize(lamina.jit(lambda x: x).lower(1.0).compile())
