"""A program of JAX's made one of lamina's: in the module itself, before any pass runs."""

from __future__ import annotations

from typing import Any

from lamina.jax_plugin.async_collectives import join_async_collectives
from lamina.jax_plugin.compile_options import CompileOptions
from lamina.jax_plugin.facts import Facts
from lamina.jax_plugin.host_calls import HostCall, bind_host_calls
from lamina.jax_plugin.layouts import lay_out
from lamina.jax_plugin.tokens import drop_tokens
from lamina.records import Record

_COUNTS = ("mhlo.num_replicas", "mhlo.num_partitions")


class Adopted(Record):
    """What a module does not say any more."""

    name: str
    facts: Facts
    calls: tuple[HostCall, ...]
    """The functions of this process that it calls by their numbers."""


def adopt(module: Any, options: CompileOptions, shardings: list[list[str]]) -> Adopted:
    """Rewrites a module in place, so that the compiler takes it as it takes its own.

    shardings  of its arguments and results, as Facts has them.

    Raises NotImplementedError for handlers that need what is not there.
    """
    from lamina.dialects.vendors import ir

    attributes = module.operation.attributes
    name = attributes["sym_name"].value if "sym_name" in attributes else "program"
    with module.context, ir.Location.unknown():
        word = ir.IntegerType.get_signless(32)
        counts = (options.num_replicas, options.num_partitions)
        for which, count in zip(_COUNTS, counts, strict=True):
            attributes[which] = ir.IntegerAttr.get(word, count)
        facts = Facts.of_module(module, drop_tokens(module), shardings, lay_out(module))
        join_async_collectives(module)
        calls = bind_host_calls(module)
    return Adopted(name, facts, calls)
