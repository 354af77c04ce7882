"""XLA's own options in compiler_options: what XLA takes does nothing, what it refuses is refused in its words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamina import config


def _compiled(options):
    return jax.jit(lambda x: jnp.sqrt(x) + 1).lower(np.float32(4)).compile(compiler_options=options)


@pytest.mark.parametrize(
    "options",
    [
        {"xla_embed_ir_in_executable": True},
        {"xla_dump_max_hlo_modules": 200, "xla_gpu_auto_spmd_partitioning_memory_budget_ratio": 0.5},
        {"xla_disable_hlo_passes": "fusion,algsimp"},
        {"xla_dump_hlo_as_text": True},
        {"xla_cpu_enable_fast_math": False, "matrix_products": "kernel"},
    ],
)
def test_what_xla_takes_is_taken(on_lamina, capfd, options):
    assert _compiled(options)(np.float32(4)) == 3
    assert not capfd.readouterr().out


def test_files_are_not_written_of_a_check(on_lamina, tmp_path):
    _compiled({"xla_dump_to": str(tmp_path)})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options, message",
    [
        ({"xla_embed_ir_in_executable": "maybe"}, "xla_embed_ir_in_executable, 'maybe' is not a valid bool value"),
        ({"xla_dump_max_hlo_modules": 2.5}, "xla_dump_max_hlo_modules, '2.5' is not a valid int32 value"),
        ({"xla_no_such_option": 1}, "No such compile option: 'xla_no_such_option'"),
        ({"no_such_option": 1}, "No such compile option: 'no_such_option'"),
        ({"matrix_products": "nobody"}, "matrix_products"),
    ],
)
def test_what_xla_refuses_is_refused(on_lamina, options, message):
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        _compiled(options)


def test_the_log_says_what_does_nothing(on_lamina, capfd):
    with config.log({"compile"}):
        _compiled({"xla_embed_ir_in_executable": False})
    assert "left aside, being XLA's: xla_embed_ir_in_executable" in capfd.readouterr().err
