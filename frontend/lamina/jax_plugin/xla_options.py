"""XLA's own compiler options (`xla_...`): checked as XLA checks them, then left aside.

    jit(f, compiler_options={"xla_embed_ir_in_executable": True})      # does nothing here
    jit(f, compiler_options={"xla_embed_ir_in_executable": "maybe"})   # not a valid bool value
    jit(f, compiler_options={"xla_no_such_option": 1})                 # no such option

Which options there are, and of which types, is another list in each release of XLA. The jaxlib that is
installed has it, but gives it to nobody: its CPU compiler is asked to compile an empty program with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from lamina.jax_plugin.failures import PluginError

_NO_DUMPS = (("xla_dump_to", "nowhere"), ("xla_enable_dumping", False))
"""Of an option that is given twice XLA takes the last: nothing is written of the empty program."""

_EMPTY = b"""
module @nothing attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() { return }
}"""


def check_xla_options(options: Mapping[str, Any]) -> None:
    """Raises PluginError with XLA's own message for a name that it does not know, and for a value that
    an option does not take."""
    import jax  # noqa: F401 (it tells jaxlib to log no more than warnings)

    _jax: Any
    xla_client: Any
    _jax, xla_client = (import_module(f"jaxlib.{name}") for name in ("_jax", "xla_client"))
    given = xla_client.CompileOptions()
    given.env_option_overrides = [*options.items(), *_NO_DUMPS]
    client = xla_client.make_cpu_client()
    devices = _jax.DeviceList(tuple(client.devices()[:1]))
    try:
        client.compile_and_load(_EMPTY, devices, given)
    except _jax.JaxRuntimeError as error:
        message = str(error).removeprefix("INVALID_ARGUMENT: ")
        raise PluginError("INVALID_ARGUMENT", message) from None
