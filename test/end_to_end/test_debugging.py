"""debug_nans, named_scope, promotion modes, logging, tracebacks: what settings do to programs."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax


def _root(x):
    return jnp.sqrt(x) - 1


PROGRAMS = {
    "jit": (lamina.jit(lambda x: jnp.log(x) + 1), -1.0, "log"),
    "eager": (jnp.log, -1.0, "log"),
    "scan": (lamina.jit(lambda x: lax.scan(lambda c, _: (_root(c), None), x, None, length=5)), 9.0, "sqrt"),
    "while": (lamina.jit(lambda x: lax.while_loop(lambda c: c > -9, _root, x)), 9.0, "sqrt"),
    "cond": (lamina.jit(lambda x: lax.cond(x < 0, jnp.sqrt, jnp.sin, x)), -1.0, "sqrt"),
    "nested": (lamina.jit(lambda x: lamina.jit(jnp.sqrt)(x)), -1.0, "sqrt"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_debug_nans_names_the_operation_and_the_line(name, capsys):
    fun, x, operation = PROGRAMS[name]
    with lamina.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        fun(x)
    assert f"invalid value (nan) encountered in {operation}\nat {__file__}:" in str(caught.value)
    lamina.block_until_ready(fun(x))  # without the setting nobody minds


def test_debug_nans_of_mapped_functions_and_of_donated_arguments():
    on = lamina.sharding.Mesh(np.array(lamina.devices()[:1]), ("x",))
    spec = lamina.sharding.PartitionSpec("x")
    mapped = lamina.shard_map(lambda x: 0.0 / x, mesh=on, in_specs=spec, out_specs=spec)
    given_away = lamina.jit(lambda x: 0.0 / x, donate_argnums=0)
    with lamina.debug_nans(True):
        for f in (mapped, lamina.jit(mapped), lamina.pmap(lambda x: 0.0 / x)):
            assert f(jnp.ones(1)) == 0
            with pytest.raises(FloatingPointError, match="Invalid value .nan. encountered in sharded computation"):
                f(jnp.zeros(1))
        with pytest.raises(FloatingPointError, match="encountered in div"):
            given_away(jnp.zeros(2))


def test_debug_infs_and_fine_programs():
    f = lamina.jit(lambda x: 1 / x)
    with lamina.debug_infs(True):
        assert f(2.0) == 0.5
        with pytest.raises(FloatingPointError, match="invalid value .inf. encountered in div"):
            f(0.0)
    with lamina.debug_nans(True):
        assert np.isinf(f(0.0))


def test_strict_promotion_joins_python_scalars_only():
    i, f = jnp.ones(2, "int32"), jnp.ones(2)
    with lamina.numpy_dtype_promotion("strict"):
        assert (f + 1).dtype == np.float32 and (i + 1).dtype == np.int32
        for bad in (lambda: f + i, lambda: i + 1.5, lambda: jnp.where(True, f, i)):
            with pytest.raises(lamina.errors.TypePromotionError, match="promotion=strict"):
                bad()
    assert (f + i).dtype == np.float32


def test_scopes_are_in_locations_and_in_the_manifest():
    @lamina.named_scope("outer")
    def f(x):
        with lamina.named_scope("inner"):
            y = jnp.sin(x)
        return jnp.cumsum(y)

    lowered = lamina.jit(f).lower(jnp.ones(4))
    text = lowered.as_text(debug_info=True)
    assert '"outer/inner/sin"' in text and '"outer/cumsum"' in text
    scopes = {row.get("scope") for row in lowered.compile().artifact.manifest["kernels"]}
    assert scopes & {"outer/inner", "outer"}
    with pytest.raises(TypeError, match="must be a string"):
        lamina.named_scope(3).__enter__()


def test_logging_flags_say_what_is_compiled_and_why(capsys):
    f = lamina.jit(lambda x: x * 3.25)
    with lamina.log_compiles(), lamina.explain_cache_misses():
        f(1.0)
        f(jnp.ones(3))
    text = capsys.readouterr().err
    assert "equations" in text and "is traced again: new shapes" in text
    f(jnp.ones(2))
    assert capsys.readouterr().err == ""


def _user(x):
    return jnp.zeros(3) + jnp.zeros(4)


def test_tracebacks_show_the_users_frames():
    with lamina.config.traceback_filtering("auto"), pytest.raises(TypeError) as caught:
        lamina.jit(_user)(1.0)
    files = {f.filename for f in traceback.extract_tb(caught.value.__traceback__)}
    assert files == {__file__}
    assert caught.value.__notes__[-1].startswith("For simplicity, lamina's own frames are left out")
    assert "LAMINA_TRACEBACK_FILTERING" in caught.value.__notes__[-1]
    with lamina.config.traceback_filtering("off"), pytest.raises(TypeError) as caught:
        lamina.jit(lambda x: _user(x))(1.0)
    files = {f.filename for f in traceback.extract_tb(caught.value.__traceback__)}
    assert len(files) > 1


def test_log_is_a_record_of_pythons_log(caplog):
    with caplog.at_level("INFO", logger="lamina.debug"):
        lamina.jit(lambda x: lamina.debug.log("x is {x}", x=x, ordered=True))(jnp.arange(2))
        lamina.debug.log(ordered=True)("{}", 3)
        lamina.effects_barrier()
    assert [r.getMessage() for r in caplog.records] == ["x is [0 1]", "3"]
    with pytest.raises(ValueError, match="Unused keyword"):
        lamina.debug.log("x", y=1)


def test_effects_of_callbacks_have_classes():
    jaxpr = lamina.make_jaxpr(lambda: lamina.debug.print("a", ordered=True))()
    assert [type(e) for e in jaxpr.effects] == [lamina.debug.OrderedDebugEffect]
    jaxpr = lamina.make_jaxpr(lambda: lamina.debug.print("a"))()
    assert [type(e) for e in jaxpr.effects] == [lamina.debug.DebugEffect]


def test_pictures_of_shardings(capsys):
    lamina.debug.visualize_array_sharding(jnp.ones((4, 4)))
    assert capsys.readouterr().out == "┌─────────┐\n│  CPU 0  │\n└─────────┘\n"
    found = []
    lamina.jit(lambda x: lamina.debug.inspect_array_sharding({"a": x}, callback=found.append))(jnp.ones(3))
    assert [s.num_devices for s in found] == [1]
    with pytest.raises(ValueError, match="1 and 2 dimensions"):
        lamina.debug.visualize_array_sharding(jnp.ones((2, 2, 2)))
