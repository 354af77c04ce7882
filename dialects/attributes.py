"""Reading the attributes of ops, and the names of those by which one pass tells the next.

Names that are written and read in one file alone are constants there.
"""

from __future__ import annotations

from typing import Any

from lamina.dialects.vendors import ir

# Of a module, and of a control kernel's function.
MATRIX_PRODUCTS = "lamina.matrix_products"  # kernel, library: who does them; without it, the faster
LANES_TOGETHER = "lamina.lanes_together"  # of a module: loops over lanes stay loops over whole arrays
MACHINE = "lamina.machine"  # of a module: the machine that it is for, see passes/framework/machine.py

# Of a kernel's function.
KIND = "lamina.kind"  # scalar, loop, input, rows, output, library, update, control
REASON = "lamina.reason"
SCHEDULE = "lamina.schedule"  # in which loops its generics run, in words: see passes/schedule/words.py
CANDIDATES = "lamina.candidates"  # ... and what else was considered
LIBRARY = "lamina.library"  # what does it, where the kind is library
COLLECTIVE = "lamina.collective"  # the library of a kernel that is one collective
FORM = "lamina.form"  # of a control kernel for GPUs: see stablehlo/step_form.py
ALONE_NS = "lamina.alone_ns"
SCRATCH_BYTES = "lamina.scratch_bytes"
DYNAMIC_SHARED_BYTES = "lamina.dynamic_shared_bytes"
TENSOR_MAPS = "lamina.tensor_maps"
TASK = "lamina.task"  # of a parallel loop's declaration: the function that does a part of it
RANGE = "lamina.range"  # ... and from where to where
LANES = "lamina.lanes"  # of a control kernel that runs each lane of a batch by itself: how many

# Of its arguments and results, and of @main's.
INOUT = "lamina.inout"  # of an argument: the result that is written in its place
MAY_ALIAS = "lamina.may_alias"  # the results that may be written in its place
ALIAS_OF = "lamina.alias_of"  # of a result: the argument whose buffer it is

# Of an argument of @main that the program may overwrite: either, as frontends write them.
DONATION = ("tf.aliasing_output", "jax.buffer_donor")

# Of a planned @main.
ARGUMENTS = "lamina.arguments"  # how many of its arguments are the program's, before results
ARENA_BYTES = "lamina.arena_bytes"
OWN_BYTES = "lamina.own_bytes"  # of the arena, on a control kernel's stack
UNUSED_DONATIONS = "lamina.unused_donations"

# Of calls, loops and conversions.
BEGUN = "lamina.begun"  # of a call that is waited for later
WAIT = "lamina_collective_end"  # the function of the runtime that waits for it
TEAM = "lamina.team"  # of calls in a row that run at the same time
TRIP_COUNT = "lamina.trip_count"
COUNTED = "lamina.counted"  # of a loop that counts up to a limit, which is known when it runs
NATIVE = "lamina.native"  # of a rounding: it may do what the processor does with denormals


def attributes_of(op: ir.Operation, *names: str) -> dict[str, ir.Attribute]:
    """Those of an op's attributes that it has, by name."""
    return {name: op.attributes[name] for name in names if name in op.attributes}


def attributes_of_each(function: ir.Operation, which: str, count: int) -> list[Any]:
    """Those of each of a function's arguments (`arg_attrs`) or results (`res_attrs`), of which there are so many."""
    return list(function.attributes[which]) if which in function.attributes else [{}] * count


def string_of(op: ir.Operation, name: str) -> str:
    """A string that an op was given; empty where it was not."""
    attributes = op.attributes
    return ir.StringAttr(attributes[name]).value if name in attributes else ""


def integer_of(op: ir.Operation, name: str, default: int = 0) -> int:
    """An integer that an op was given."""
    attributes = op.attributes
    return ir.IntegerAttr(attributes[name]).value if name in attributes else default


def flag(op: ir.Operation, name: str) -> bool:
    """Whether an op has an option set; custom calls have theirs in backend_config."""
    attributes = op.attributes
    if op.name == "stablehlo.custom_call":
        if "backend_config" not in attributes:
            return False
        attributes = ir.DictAttr(attributes["backend_config"])
    return name in attributes and ir.BoolAttr(attributes[name]).value


def updated_arguments(function: ir.Operation) -> dict[int, int]:
    """The results of a function that are written in an argument's place, and the argument."""
    if "arg_attrs" not in function.attributes:
        return {}
    given = [ir.DictAttr(each) for each in function.attributes["arg_attrs"]]
    return {
        ir.IntegerAttr(attributes[INOUT]).value: argument
        for argument, attributes in enumerate(given)
        if INOUT in attributes
    }
