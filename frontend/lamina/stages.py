"""The stages between a function and its machine code, each a value that can be printed.

jit(f).trace(*args) -> Traced      .jaxpr
     .lower()       -> Lowered     .as_text(), .compiler_ir(), .cost_analysis()
     .compile()     -> Compiled    callable; .as_text(stage), .cost_analysis(), .memory_analysis()
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, Self, TypeVar, overload, runtime_checkable

import numpy as np

from lamina import guards
from lamina.array import Device
from lamina.core import garbage, tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr
from lamina.core.library import library
from lamina.core.trace import Tracer, get_aval
from lamina.core.tracebacks import api_boundary
from lamina.jit.compiler_options import CompilerOptions as CompilerOptions
from lamina.jit.compiler_options import Settings, applied, current, settings_of
from lamina.jit.program_plan import Plan, plan_program
from lamina.jit.programs import Program, build
from lamina.records import Record
from lamina.shape_dtype import out_info

__all__ = [
    "ArgInfo",
    "Compiled",
    "CompilerOptions",
    "Lowered",
    "MemoryAnalysis",
    "Traced",
    "Wrapped",
]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class ArgInfo(Record):
    """An argument of a program: its type, and whether results may take its buffer over."""

    _aval: ShapedArray
    donated: bool

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)


@runtime_checkable
class Wrapped(Protocol[P, R]):
    """What `jit` gives: a function with stages."""

    @property
    def __name__(self) -> str:
        """The function's name."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs it."""

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    # Not P without its first parameter: checkers lose all of them behind functools.partial.
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Wrapped[..., R]: ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Its jaxpr for such arguments."""

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Its StableHLO for such arguments."""

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of its results for such arguments."""

    def clear_cache(self) -> None:
        """Forgets what was compiled for it."""


class Traced:
    """A function traced for given types: a jaxpr, with the structure of arguments and results."""

    def __init__(
        self,
        jaxpr: ClosedJaxpr,
        fun_name: str,
        in_tree: Any,
        out_tree: Any,
        donated: Sequence[bool],
        keep_unused: bool,
        arg_names: Sequence[str],
        result_paths: Sequence[str],
        static_argnums: Sequence[int],
        static_argnames: Sequence[str],
        target: Any = None,
        device: Any = None,
        settings: Settings = (),
        requested: Any = None,
    ) -> None:
        self.target, self.device, self.settings = target, device, settings
        self.jaxpr, self.fun_name, self.requested = jaxpr, fun_name, requested
        self.in_tree, self.out_tree = in_tree, out_tree
        self._donated, self._keep_unused = tuple(donated), keep_unused
        self._arg_names, self._result_paths = tuple(arg_names), tuple(result_paths)
        self._static = (tuple(static_argnums), frozenset(static_argnames))
        self.with_refs: Callable[..., Any] | None = None
        """Of a function of values that refs hold, how what is compiled of it is called with refs."""

    @property
    def in_avals(self) -> Any:
        """The argument types, as ((args...), {kwargs})."""
        return tree.unflatten(self.in_tree, self.jaxpr.in_avals)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The numbers of the arrays, among all arguments' arrays, that are donated."""
        return tuple(i for i, donated in enumerate(self._donated) if donated)

    @property
    def args_info(self) -> Any:
        """The arguments' structure with an ArgInfo for each array."""
        infos = map(ArgInfo, self.jaxpr.in_avals, self._donated)
        return tree.unflatten(self.in_tree, list(infos))

    @property
    def out_info(self) -> Any:
        """The result's structure with a ShapeDtypeStruct for each array."""
        return out_info(self.jaxpr, self.out_tree)

    @api_boundary
    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """The StableHLO module for this jaxpr.

        lowering_platforms  for which it is to be: the module is the same for all of them.
        """
        plan = plan_program(
            self.jaxpr,
            self.fun_name,
            self._donated,
            self._keep_unused,
            self._arg_names,
            self._result_paths,
            self.requested,
        )
        with applied(self.settings), garbage.held_off():
            return Lowered(plan, self)


class Lowered:
    """A program in StableHLO."""

    def __init__(self, plan: Plan, traced: Traced) -> None:
        self._plan, self._traced = plan, traced
        self._settings = current()
        self._module = plan.lower()

    in_tree = property(lambda self: self._traced.in_tree)
    out_tree = property(lambda self: self._traced.out_tree)
    in_avals = property(lambda self: self._traced.in_avals)
    args_info = property(lambda self: self._traced.args_info)
    out_info = property(lambda self: self._traced.out_info)
    donate_argnums = property(lambda self: self._traced.donate_argnums)

    def compiler_ir(self, dialect: str = "stablehlo") -> Any:
        """The MLIR module; for dialect "hlo" what gives its text by as_hlo_text()."""
        if dialect == "hlo":
            from lamina.backends.hlo_text import HloModule

            return HloModule(self._module, f"jit_{self._plan.name}")
        _check_dialect(dialect)
        return self._module

    def as_text(self, dialect: str = "stablehlo", *, debug_info: bool = False) -> str:
        """The module as text: dialect "stablehlo", "hlo", or "jaxpr" for what it was made of; with
        debug_info MLIR has each operation's source location."""
        from lamina.dialects import serialize

        if dialect == "jaxpr":
            return str(self._traced.jaxpr)
        if dialect == "hlo":
            return self.compiler_ir("hlo").as_hlo_text()
        _check_dialect(dialect)
        return serialize.to_text(self._module, debug_info=debug_info)

    def as_bytecode(self) -> bytes:
        """The module as MLIR bytecode."""
        from lamina.dialects import serialize

        return serialize.to_bytecode(self._module)

    def as_portable_artifact(self, version: str | None = None) -> bytes:
        """The module in StableHLO's versioned format, readable by other tools and versions."""
        from lamina.dialects import serialize

        return serialize.to_portable_artifact(self._module, version=version)

    def cost_analysis(self) -> dict[str, float]:
        """Estimated flops, transcendentals and bytes accessed of the program as written."""
        from lamina.backends.cost import module_cost

        return module_cost(self._module)

    @api_boundary
    def compile(
        self,
        compiler_options: dict[str, Any] | None = None,
        device_assignment: Sequence[Any] | None = None,
        *,
        target: Any = None,
    ) -> Compiled:
        """Machine code for `target` (a Target or its name, such as "cpu:x86-64-v3" or "cuda:sm_90a";
        by default the device that a call with the arguments given to `lower` runs on).

        compiler_options   as in jit, whose own they go before.
        device_assignment  the devices that run it, where it was lowered over a mesh without devices; of any other,
                           those that it is for.

        Raises RuntimeError where devices are to be named and are not, or are more or fewer, ValueError where the
        program is for other devices.
        """
        plan = self._plan_on(device_assignment)
        settings = (*self._settings, *settings_of(compiler_options))
        with applied(settings), garbage.held_off():
            return self._compiled(plan, target)

    def _plan_on(self, devices: Sequence[Any] | None) -> Plan:
        requested = self._plan.requested
        if requested is None or not requested.is_to_come:
            mine = [Device("cpu", 0)] if requested is None else list(requested.mesh.device_list)
            if devices is not None and list(devices) != mine:
                raise ValueError(
                    "device_assignment passed to `.compile` must match the device_assignment calculated from array "
                    f"shardings and out_shardings. Got {list(devices)} for a program on {mine}"
                )
            return self._plan
        if devices is None:
            raise RuntimeError(
                "device_assignment cannot be `None` during compilation of what was lowered over a mesh without "
                "devices. Please pass a tuple of devices to `.compile(device_assignment=)`"
            )
        if len(devices) != requested.mesh.size:
            raise RuntimeError(
                f"Length of device_assignment {len(devices)} is not equal to the size {requested.mesh.size} of the "
                "mesh over which the program was lowered"
            )
        return dataclasses.replace(self._plan, requested=requested.over(devices))

    def _compiled(self, plan: Plan, target: Any) -> Compiled:
        target = self._traced.target if target is None else target
        if target is None:
            from lamina.placement import gpu_named

            device = gpu_named(self._traced.device)
            return Compiled(build(plan, device=device, lowered=self._module), self._traced)
        from lamina.backends.target import Target

        target = target if target is None or isinstance(target, Target) else Target.parse(target)
        return Compiled(build(plan, plan.lower(), target), self._traced)


def _check_dialect(dialect: str) -> None:
    if dialect not in ("stablehlo", "mhlo"):
        raise ValueError(
            f"Unrecognized dialect {dialect!r}: a lowered program is in 'stablehlo' or 'hlo'; "
            "later forms come from .compile().as_text(stage)"
        )


class Compiled:
    """A program in machine code, for one kind of arguments."""

    def __init__(self, program: Program, traced: Traced) -> None:
        self._program, self._traced = program, traced
        self._entry = program.entry(traced.out_tree)

    in_tree = property(lambda self: self._traced.in_tree)
    out_tree = property(lambda self: self._traced.out_tree)
    in_avals = property(lambda self: self._traced.in_avals)
    args_info = property(lambda self: self._traced.args_info)
    donate_argnums = property(lambda self: self._traced.donate_argnums)

    @property
    def out_info(self) -> Any:
        """The result's structure with a ShapeDtypeStruct for each array, which says where it lies if devices share
        the program."""
        if self._program.layout is None:
            return self._traced.out_info
        return tree.map(lambda x, place: x.update(sharding=place), self._traced.out_info, self.output_shardings)

    @property
    def input_shardings(self) -> Any:
        """Where the arguments lie, as ((args...), {kwargs})."""
        plan, layout = self._program.plan, self._program.layout
        requested = self._traced.requested
        if requested is None or requested.is_to_come:
            places = [self._whole()] * len(self._traced.jaxpr.in_avals)
        else:
            places = [place or self._whole() for place in requested.inputs]
        if layout is not None:
            for i, sharding in zip(plan.kept, layout.inputs, strict=True):
                places[i] = sharding
        return tree.unflatten(self.in_tree, places)

    @property
    def output_shardings(self) -> Any:
        """Where the results lie, in a tree as theirs."""
        plan, layout = self._program.plan, self._program.layout
        inputs = tree.leaves(self.input_shardings)
        whole = self._whole()
        places = [
            inputs[~at] if at < 0 else whole if layout is None else layout.outputs[at]
            for at in plan.outputs
        ]
        return tree.unflatten(self.out_tree, places)

    @property
    def input_formats(self) -> Any:
        """How the arguments lie, as ((args...), {kwargs}): their layouts, all row-major, and shardings."""
        from lamina.sharding.formats import format_of

        shapes = [aval.shape for aval in self._traced.jaxpr.in_avals]
        return tree.unflatten(self.in_tree, list(map(format_of, shapes, tree.leaves(self.input_shardings))))

    @property
    def output_formats(self) -> Any:
        """How the results lie, in a tree as theirs."""
        from lamina.sharding.formats import format_of

        shapes = [aval.shape for aval in self._traced.jaxpr.out_avals]
        return tree.unflatten(self.out_tree, list(map(format_of, shapes, tree.leaves(self.output_shardings))))

    def _whole(self) -> Any:
        """How arrays lie that are not cut."""
        from lamina.sharding import NamedSharding, P, SingleDeviceSharding

        program = self._program
        if program.layout is not None:
            return NamedSharding(program.layout.mesh, P())
        return SingleDeviceSharding(program.device or Device("cpu", 0))

    def _check_places(self, leaves: Sequence[Any]) -> None:
        """Raises ValueError for arguments that were put elsewhere than the program takes them."""
        from lamina.placement import place_of

        wrong = []
        for i, sharding in enumerate(tree.leaves(self.input_shardings)):
            place = place_of(leaves[i])
            if place is not None and not place.is_equivalent_to(sharding, np.ndim(leaves[i])):
                names = self._traced._arg_names
                name = names[i] if i < len(names) else f"leaf {i}"
                wrong.append(f"* argument {name}: got {place}, compiled for {sharding}")
        if wrong:
            raise ValueError(
                "Computation was compiled for input shardings that disagree with the shardings of arguments passed to "
                "it. Here are the mismatches:\n" + "\n".join(wrong)
            )

    @property
    def from_cache(self) -> bool:
        """Whether the machine code came from the disk store."""
        return bool(getattr(self._program.compilation, "from_cache", False))

    @property
    def artifact(self) -> Any:
        """The program as files: manifest and objects."""
        compilation = self._program.compilation
        return None if compilation is None else compilation.artifact

    @api_boundary
    def as_text(self, stage: str | None = None) -> str:
        """A form of the program: jaxpr, stablehlo, optimized, fused, planned, linalg, schedule, llvm, asm (for
        GPUs gpu and ptx), hlo, manifest. One that is partitioned has "partitioned", too: what each
        device does, as StableHLO. Without a stage: the fused and the planned module, and before these, of
        one that several devices share, what each of them does as HLO text, with what moves between them."""
        if stage == "jaxpr":
            return str(self._traced.jaxpr)
        plan = self._program.plan
        if stage == "partitioned":
            if plan.requested is None:
                raise ValueError("no stage 'partitioned': this program was not partitioned")
            stage = "stablehlo"
        elif stage == "stablehlo" and plan.requested is not None:
            from lamina.dialects.serialize import to_text

            return to_text(plan.lower(), verified=True)
        compilation = self._program.compilation
        if compilation is None:
            if stage is not None:
                from lamina.backends.stages import check_stage

                check_stage(stage)
            return "// nothing is computed: every result is an argument\n"
        if stage is None:
            stages = ["fused", "planned"] if self._program.layout is None else ["hlo", "fused", "planned"]
            return "\n".join(map(compilation.text, stages))
        return compilation.text(stage)

    def cost_analysis(self) -> dict[str, float]:
        """flops, transcendentals and "bytes accessed" of one call."""
        artifact = self.artifact
        return dict(artifact.manifest["cost"]) if artifact is not None else {"flops": 0.0}

    def memory_analysis(self) -> MemoryAnalysis:
        """Bytes of arguments, results, temporaries and code."""
        artifact = self.artifact
        m = artifact.manifest["memory"] if artifact is not None else {}
        return MemoryAnalysis(
            *(int(m.get(k, 0)) for k in ("argument", "output", "alias", "temp", "generated_code"))
        )

    def runtime_executable(self) -> Any:
        """The loaded executable."""
        return self._program.executable

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._traced.with_refs is not None:
            return self._traced.with_refs(self._call, args, kwargs)
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        nums, names = self._traced._static
        leaves, in_tree = tree.flatten((args, kwargs))
        if in_tree != self._traced.in_tree and self._traced._static:  # static arguments may be given as well
            dynamic = tuple(x for i, x in enumerate(args) if i not in nums)
            dynamic_kwargs = {k: v for k, v in kwargs.items() if k not in names}
            leaves, in_tree = tree.flatten((dynamic, dynamic_kwargs))
        if in_tree != self._traced.in_tree:
            raise TypeError(
                f"Function compiled with input pytree does not match the input pytree it was called "
                f"with: compiled for {self._traced.in_tree}, called with {in_tree}"
            )
        where, wrong = self._traced._arg_names, []
        for i, (x, want) in enumerate(zip(leaves, self._traced.jaxpr.in_avals, strict=True)):
            if isinstance(x, Tracer):
                raise TypeError(
                    f"Cannot apply {library.name} transformations to a function lowered and compiled for a "
                    f"particular signature. Detected argument of Tracer type {type(x).__name__}."
                )
            got = get_aval(x)
            weak_ok = got.weak_type and got.shape == want.shape and type(x) in (int, float, complex)
            if (got.shape, got.dtype) != (want.shape, want.dtype) and not weak_ok:
                name = where[i] if i < len(where) else f"leaf {i}"
                wrong.append(f"Argument {name!r} compiled with {want.str_long()} and called with {got.str_long()}")
            elif got.dtype != want.dtype:
                leaves[i] = np.asarray(x, want.dtype)
        if wrong:
            raise TypeError(
                "Argument types differ from the types for which this computation was compiled. The mismatches are:\n"
                + "\n".join(wrong)
            )
        if self._program.layout is not None:
            self._check_places(leaves)
        guards.check_transfers(leaves)
        guards.refuse_execution(self._traced.fun_name)
        return self._entry(leaves)


class MemoryAnalysis(Record):
    """Bytes that one call of a compiled program needs."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
