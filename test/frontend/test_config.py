"""Settings: names, environment variables, context managers, threads."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import config


def python(code: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **env}, text=True,
                          capture_output=True, timeout=600)  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), [
    ("1", True), ("true", True), ("ON", True), ("yes", True), ("0", False), ("False", False), ("", False),
])  # fmt: skip
def test_environment_variables_set_booleans(value, expected):
    done = python(
        "from lamina import config; print(config.enable_x64.value)", LAMINA_ENABLE_X64=value
    )
    assert done.stdout.strip() == str(expected), done.stderr


def test_a_bad_environment_variable_is_named():
    done = python("import lamina", LAMINA_ENABLE_X64="maybe")
    assert done.returncode != 0
    assert "environment variable LAMINA_ENABLE_X64='maybe': expected a boolean" in done.stderr


def test_a_value_in_the_environment_is_one_that_the_setting_takes():
    done = python("import lamina", LAMINA_DEFAULT_MATMUL_PRECISION="exact")
    assert done.returncode == 1
    assert "LAMINA_DEFAULT_MATMUL_PRECISION='exact': expected None or one of" in done.stderr


def test_a_misspelt_variable_is_told():
    done = python("import lamina", LAMINA_ENABLE_X46="1", LAMINA_OF_ANOTHER_PROGRAM="1",
                  LAMINA_TEST_PLATFORMS="cpu")  # fmt: skip
    assert done.returncode == 0
    assert "LAMINA_ENABLE_X46 is no setting: is LAMINA_ENABLE_X64 meant?" in done.stderr
    assert done.stderr.count("is no setting") == 1
    assert "ANOTHER" not in done.stderr


def test_x64_from_the_environment_reaches_the_arrays():
    code = "import lamina.numpy as jnp; print(jnp.asarray(1.0).dtype, jnp.arange(3).dtype)"
    assert python(code, LAMINA_ENABLE_X64="1").stdout.split() == ["float64", "int64"]
    assert python(code).stdout.split() == ["float32", "int32"]


def test_every_setting_has_a_variable_and_a_text():
    for name, option in config.options().items():
        assert option.variable == f"LAMINA_{name.upper()}"
        assert option.doc.endswith(".") or ":" in option.doc


def test_the_table_has_every_variable_that_is_read():
    root = Path(__file__).resolve().parents[2]
    sources = [
        file.read_text()
        for folder in ("frontend", "dialects", "passes", "backends", "runtime")
        for ending in ("*.py", "*.cpp")
        for file in (root / folder).rglob(ending)
    ]
    quoted = {name for text in sources for name in re.findall(r'"(LAMINA_[A-Z0-9_]+)"', text)}
    known = {option.variable for option in config.options().values()} | set(config.ELSEWHERE)
    assert quoted <= known, quoted - known


def test_update_takes_jax_s_spelling_too():
    try:
        for name in ("enable_x64", "jax_enable_x64", "lamina_enable_x64"):
            config.update(name, True)
            assert config.enable_x64.value and jnp.asarray(1.0).dtype == np.float64
            config.update(name, False)
            assert jnp.asarray(1.0).dtype == np.float32
        assert config.jax_enable_x64 is False
        lamina.config.update("jax_enable_x64", True)
        assert config.jax_enable_x64 is True
    finally:
        config.update("enable_x64", False)


def test_unknown_names_are_refused_with_suggestions():
    with pytest.raises(AttributeError, match="option: jax_nonsense. Known options:.*enable_x64"):
        config.update("jax_nonsense", 1)
    with pytest.raises(AttributeError, match="Did you mean debug_nans"):
        config.update("jax_debug_nan", True)
    with pytest.raises(AttributeError, match="has no attribute 'jax_nonsense'"):
        config.jax_nonsense  # noqa: B018


def test_values_are_checked_and_read():
    with pytest.raises(ValueError, match="config option enable_x64: expected a boolean"):
        config.update("enable_x64", "foo")
    with pytest.raises(
        ValueError, match="numpy_rank_promotion: expected one of allow, warn, raise"
    ):
        with lamina.numpy_rank_promotion("maybe"):
            pass
    with lamina.numpy_rank_promotion("raise"):
        assert config.read("jax_numpy_rank_promotion") == "raise"
        assert config.values()["numpy_rank_promotion"] == "raise"
    done = python("import lamina", LAMINA_TRANSFER_GUARD="never")
    assert "LAMINA_TRANSFER_GUARD='never': expected one of allow" in done.stderr


def test_context_managers_nest_and_restore():
    assert not config.enable_x64.value
    with lamina.enable_x64(True):
        assert jnp.asarray(1.0).dtype == np.float64
        with lamina.enable_x64(False):
            assert jnp.asarray(1.0).dtype == np.float32
        assert jnp.asarray(1.0).dtype == np.float64
    assert jnp.asarray(1.0).dtype == np.float32
    with pytest.raises(ZeroDivisionError):
        with lamina.enable_x64():
            assert config.enable_x64.value
            raise ZeroDivisionError
    assert not config.enable_x64.value


def test_context_managers_are_of_their_thread():
    seen = {}
    inside, done = threading.Event(), threading.Event()

    def work():
        with lamina.enable_x64(True):
            seen["inner"] = jnp.asarray(1.0).dtype.name
            inside.set()
            done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    seen["outer"] = jnp.asarray(1.0).dtype.name
    done.set()
    thread.join()
    assert seen == {"inner": "float64", "outer": "float32"}


def test_process_wide_settings_reach_other_threads():
    seen = []
    try:
        config.update("enable_x64", True)
        thread = threading.Thread(target=lambda: seen.append(jnp.asarray(1.0).dtype.name))
        thread.start()
        thread.join()
    finally:
        config.update("enable_x64", False)
    assert seen == ["float64"]


def test_what_affects_traces_is_in_the_key():
    key = config.trace_key()
    with lamina.enable_x64(True):
        assert config.trace_key() != key
    with config.default_matmul_precision("highest"):
        assert config.trace_key() != key
    with config.check_tracer_leaks(True):
        assert config.trace_key() == key
    assert config.trace_key() == key


def test_checks_check_every_jaxpr():
    def f(x):
        y = jnp.sin(x)
        y.variable.aval = y.variable.aval.update(shape=(7,))
        return y

    with config.enable_checks(True), pytest.raises(lamina.errors.JaxprTypeError, match="sin at"):
        lamina.make_jaxpr(f)(1.0)


FLAGS = """
import lamina
lamina.config.parse_flags_with_absl()
lamina.config.parse_flags_with_absl()
print(config.enable_x64.value, config.platforms.value, config.debug_nans.value)
"""


def test_settings_on_the_command_line():
    code = "from lamina import config" + FLAGS
    run = subprocess.run(
        [sys.executable, "-c", code, "--jax_enable_x64", "--jax_platforms=cpu", "--own=3", "--", "--jax_debug_nans"],
        text=True, capture_output=True, timeout=600,
    )  # fmt: skip
    assert run.stdout.split("\n")[0] == "True ('cpu',) False", run.stderr
    wrong = subprocess.run([sys.executable, "-c", code, "--jax_num_cpu_devices=many"], text=True,
                           capture_output=True, timeout=600)  # fmt: skip
    assert "flag --jax_num_cpu_devices=many" in wrong.stderr


def test_settings_are_read_with_a_program_s_own_flags():
    code = """
import absl.app, absl.flags, lamina
absl.flags.DEFINE_integer("own", 1, "")
lamina.config.config_with_absl()
absl.app.run(lambda argv: print(lamina.config.enable_x64.value, absl.flags.FLAGS.own, argv[1:]))
"""
    run = subprocess.run([sys.executable, "-c", code, "--own=3", "--jax_enable_x64=true", "rest"], text=True,
                         capture_output=True, timeout=600)  # fmt: skip
    assert run.stdout == "True 3 ['rest']\n", run.stderr
