"""Settings that forbid something, and contexts of the user's own, with JAX as the oracle."""

import logging

import jax
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

ONES = np.ones(3, np.float32)


def outcome(call):
    try:
        call()
    except Exception as e:
        return next(c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins")
    return "done"


def outcomes(m, programs):
    """What becomes of each program, jitted functions and arrays made before the setting holds."""
    return {name: outcome(call) for name, call in programs(m).items()}


def both(setting, value, programs):
    got, want = ({}, {})
    for m, into in ((lamina, got), (jax, want)):
        made = programs(m)
        with getattr(m, setting)(value):
            into.update({name: outcome(call) for name, call in made.items()})
    assert got == want
    return got


def test_no_tracing_lets_known_functions_run():
    def programs(m):
        known, new = m.jit(lambda x: x + 1), m.jit(lambda x: x * 2)
        x = m.numpy.asarray(ONES)
        known(x)
        return {"known": lambda: known(x), "new": lambda: new(x),
                "jaxpr": lambda: m.make_jaxpr(lambda x: x * 2)(x)}  # fmt: skip

    assert both("no_tracing", True, programs)["new"] == "RuntimeError"
    with lamina.no_tracing(True), pytest.raises(RuntimeError, match="tracing add_one at .*test_guards"):
        def add_one(x):
            return x + 1

        lamina.jit(add_one)(ONES)


def test_no_execution_still_compiles():
    def programs(m):
        known = m.jit(lambda x: x + 1)
        x = m.numpy.asarray(ONES)
        known(x)
        lowered = m.jit(lambda x: x * 3).lower(x)
        compiled = lowered.compile()
        return {"known": lambda: known(x), "new": lambda: m.jit(lambda x: x * 2)(x),
                "one operation": lambda: m.numpy.sin(x), "compile": lowered.compile,
                "compiled": lambda: compiled(x), "read": lambda: np.asarray(x)}  # fmt: skip

    assert both("no_execution", True, programs)["known"] == "RuntimeError"
    assert float(lamina.jit(lambda x: x + 1)(1.0)) == 2.0


@pytest.mark.parametrize("setting", [
    "transfer_guard", "transfer_guard_host_to_device", "transfer_guard_device_to_host",
    "transfer_guard_device_to_device",
])  # fmt: skip
@pytest.mark.parametrize("level", ["allow", "disallow", "disallow_explicit"])
def test_transfer_guards(setting, level):
    def programs(m):
        known = m.jit(lambda x: x + 1)
        x = m.numpy.asarray(ONES)
        known(x), known(ONES), x + 1
        return {"array": lambda: known(x), "host": lambda: known(ONES), "again": lambda: known(ONES),
                "operator": lambda: x + ONES, "scalar": lambda: x + 1,
                "asarray": lambda: m.numpy.asarray(ONES), "list": lambda: m.numpy.array([1.0, 2.0]),
                "device_put": lambda: m.device_put(ONES), "device_get": lambda: m.device_get(x)}  # fmt: skip

    both(setting, level, programs)


def test_transfers_are_logged(caplog):
    with lamina.transfer_guard("log"), caplog.at_level(logging.WARNING):
        lamina.jit(lambda x: x + 1)(ONES)
        lamina.device_put(ONES)
    assert [r.getMessage() for r in caplog.records] == [
        "host-to-device transfer: aval=ShapedArray(float32[3])"
    ]
    with pytest.raises(lamina.errors.JaxRuntimeError, match="Disallowed host-to-device transfer"):
        with lamina.transfer_guard("disallow"):
            jnp.asarray(ONES)


@pytest.mark.parametrize("level", ["allow", "warn", "error"])
@pytest.mark.filterwarnings("ignore:Legacy uint32 key")
def test_raw_keys_where_they_are_not_wanted(level):
    def programs(m):
        key, raw = m.random.key(0), np.zeros(2, np.uint32)
        return {"typed": lambda: m.random.uniform(key), "raw": lambda: m.random.uniform(raw),
                "split": lambda: m.random.split(raw), "wrap": lambda: m.random.wrap_key_data(raw)}  # fmt: skip

    both("legacy_prng_key", level, programs)
    if level == "warn":
        with lamina.legacy_prng_key(level), pytest.warns(UserWarning, match="Legacy uint32 key"):
            lamina.random.fold_in(np.zeros(2, np.uint32), 1)


def test_custom_prng_makes_typed_keys():
    for m in (lamina, jax):
        with m.enable_custom_prng(True):
            assert str(m.random.PRNGKey(3).dtype) == "key<fry>"
        assert m.random.PRNGKey(3).dtype == np.uint32


def test_sums_of_narrow_floats():
    def programs(m):
        x = m.numpy.ones(3, "bfloat16")
        return {"lax": lambda: m.lax.reduce(x, np.asarray(0, x.dtype), m.lax.add, (0,)),
                "numpy": lambda: m.numpy.sum(x), "mean": lambda: m.numpy.mean(x),
                "jit": lambda: m.jit(m.numpy.sum)(x)}  # fmt: skip

    assert both("allow_f16_reductions", False, programs)["lax"] == "ValueError"


def test_user_contexts_are_no_settings():
    settings = set(lamina.config.options())
    context = lamina.make_user_context(5)
    assert set(lamina.config.options()) == set(lamina.config.values()) == settings
    assert context.value == 5


def test_user_contexts_are_part_of_jits_key():
    for m in (lamina, jax):
        context, traced = m.make_user_context(5), []

        @m.jit
        def f(x, context=context, traced=traced):
            traced.append(context.value)
            return x

        f(1.0)
        for value in (1, 2, 1, 5):
            with context(value):
                f(1.0)
        f(1.0)
        assert traced == [5, 1, 2]
    with pytest.raises(TypeError, match="unhashable"):
        lamina.make_user_context([])


def test_settings_that_are_accepted_or_refused():
    for setting, value in (
        ("thread_guard", True), ("array_garbage_collection_guard", "log"),
        ("remove_size_one_mesh_axis_from_type", True), ("jax2tf_associative_scan_reductions", True),
    ):  # fmt: skip
        with getattr(lamina, setting)(value):
            assert lamina.config.values()[setting] == value
    with lamina.sharding.no_collectives({"x"}):
        assert lamina.config.no_collectives.value == {"x"}


def test_kinds_of_inlining():
    for m in (lamina, jax):
        for kind, calls in ((m.Inline.JAX_EARLY, 0), (False, 1), (m.Inline.XLA_LATE, 1)):
            jaxpr = m.make_jaxpr(m.jit(lambda x: x + 1, inline=kind))(1.0)
            assert sum(e.primitive.name in ("jit", "pjit") for e in jaxpr.eqns) == calls
    with pytest.raises(ValueError, match="Invalid inline option: 'late'"):
        lamina.jit(lambda x: x, inline="late")
    assert lamina.CompilerEffortLevel("O2") is lamina.CompilerEffortLevel.O2
    assert [x.value for x in lamina.CompilerEffortLevel] == [x.value for x in jax.CompilerEffortLevel]


def test_memories_are_places():
    x = jnp.ones(3)
    for space in lamina.memory.Space:
        assert lamina.device_put({"a": x}, space)["a"].tolist() == [1, 1, 1]
        assert lamina.jit(lambda x, s=space: lamina.device_put(x, s) + 1)(x).tolist() == [2, 2, 2]
    assert [s.name for s in lamina.memory.Space] == [s.name for s in jax.memory.Space]
