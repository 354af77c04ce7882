"""The stages between a function and its machine code, each a value that can be printed.

jit(f).trace(*args) -> Traced      .jaxpr
     .lower()       -> Lowered     .as_text(), .compiler_ir(), .cost_analysis()
     .compile()     -> Compiled    callable; .as_text(stage), .cost_analysis(), .memory_analysis()
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lamina import config, value_checks
from lamina.array import Array
from lamina.core import dtypes, garbage, tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, all_equations, dce_jaxpr
from lamina.core.primitive import Primitive
from lamina.core.trace import Tracer, get_aval, has_no_value, physical
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.key_array import KeyEntry, wrap_keys
from lamina.program_key import program_key
from lamina.runtime import CompiledFunction, FastPathEntry
from lamina.runtime.cuda import CudaProgram

if TYPE_CHECKING:
    from lamina.backends.compile import Compilation

# Constants above this many bytes are passed to the program instead of being written into it.
HOIST_BYTES = 16 * 1024


class ShapeDtypeStruct:
    """The shape and dtype of an array, without the array: for tracing and as eval_shape's result.

    sharding    where the array would lie, for those who read it.
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
    ) -> None:
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        self.shape = tuple(int(d) for d in shape)
        self.dtype = dtypes.canonicalize(dtype)
        self.sharding = sharding
        self.weak_type = weak_type

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with some fields changed: shape, dtype, sharding, weak_type."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        if unknown := changes.keys() - fields.keys():
            raise TypeError(f"ShapeDtypeStruct.update: no field {', '.join(sorted(unknown))}")
        return ShapeDtypeStruct(**fields | changes)

    @property
    def aval(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype, self.weak_type)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: self.aval.size)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ShapeDtypeStruct)
            and self.aval == other.aval
            and self.sharding == other.sharding
        )

    def __hash__(self) -> int:
        return hash(self.aval)

    def __repr__(self) -> str:
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{sharding}{weak})"


def out_info(closed: ClosedJaxpr, out_tree: tree.PyTreeDef) -> Any:
    """The result's structure with a ShapeDtypeStruct for each array."""
    return tree.unflatten(
        out_tree,
        [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in closed.out_avals],
    )


# ---- from a jaxpr to something that runs ---------------------------------------------------------
@dataclasses.dataclass
class Plan:
    """A jaxpr made ready for the compiler: what it reads, what it passes through, what it donates."""

    closed: ClosedJaxpr  # only the inputs in `kept`, only the results that are computed
    name: str
    kept: tuple[int, ...]
    outputs: tuple[int, ...]  # for each result: which computed one, or ~i for input i as it is
    weak_types: tuple[bool, ...]
    hoisted: tuple[bool, ...]
    aliases: dict[int, int]
    donors: tuple[int, ...]
    arg_names: tuple[str, ...]
    result_paths: tuple[str, ...]
    callbacks: tuple[Any, ...] = ()  # known once it is lowered
    keys_out: tuple[bool, ...] = ()  # which results are random keys
    reads_keys: bool = False
    local: Any = None  # a sharding.localize.Localized where several devices run the program

    @property
    def const_args(self) -> list[Any]:
        return [c for c, h in zip(self.closed.consts, self.hoisted, strict=True) if h]

    def lower(self) -> Any:
        """The StableHLO module."""
        from lamina.interpreters.lowering import lower_module

        callbacks: list[Any] = []
        module = lower_module(
            self.closed,
            f"jit_{self.name}",
            consts_as_args=self.hoisted,
            aliases=self.aliases,
            donors=self.donors,
            arg_names=self.arg_names,
            result_paths=self.result_paths,
            callbacks=callbacks,
            num_partitions=1 if self.local is None else self.local.mesh.size,
        )
        self.callbacks = tuple(callbacks)
        return module


def plan_program(
    closed: ClosedJaxpr,
    name: str,
    donated: Sequence[bool] = (),
    keep_unused: bool = False,
    arg_names: Sequence[str] = (),
    result_paths: Sequence[str] = (),
) -> Plan:
    """Drops dead work and unread inputs, passes plain inputs through, pairs donated buffers."""
    local = _localized(closed)
    closed = closed if local is None else local.closed
    jaxpr = closed.jaxpr
    donated = list(donated) or [False] * len(jaxpr.invars)
    position = {v: i for i, v in enumerate(jaxpr.invars)}
    outputs: list[int] = []
    computed: list[Any] = []
    paths: list[str] = []
    for i, v in enumerate(jaxpr.outvars):
        at = position.get(v) if type(v) is not Literal else None  # type: ignore[arg-type]
        if at is not None and not donated[at]:
            outputs.append(~at)
            continue
        outputs.append(len(computed))
        computed.append(v)
        paths.append(result_paths[i] if i < len(result_paths) else f"[{i}]")
    slim, read = dce_jaxpr(
        Jaxpr(jaxpr.constvars, jaxpr.invars, computed, jaxpr.eqns, jaxpr.debug_info),
        [True] * len(computed),
    )
    kept = tuple(i for i, r in enumerate(read) if r or keep_unused or donated[i])
    used = {v for e in slim.eqns for v in e.invars if type(v) is not Literal} | {
        v for v in computed if type(v) is not Literal
    }
    live = [(v, c) for v, c in zip(slim.constvars, closed.consts, strict=True) if v in used]
    consts = [_constant_value(c, v.aval) for v, c in live]
    slim = Jaxpr(
        [v for v, _ in live],
        [slim.invars[i] for i in kept],
        slim.outvars,
        slim.eqns,
        slim.debug_info,
    )
    aliases, donors = _match_donations(
        [slim.invars[i].aval for i in range(len(kept))],
        [v.aval for v in computed],
        [donated[i] for i in kept],
    )
    return Plan(
        ClosedJaxpr(slim, consts),
        name,
        kept,
        tuple(outputs),
        tuple(v.aval.weak_type for v in jaxpr.outvars),
        tuple(c.nbytes > HOIST_BYTES for c in consts),
        aliases,
        donors,
        tuple(arg_names[i] for i in kept if i < len(arg_names)),
        tuple(paths),
        keys_out=tuple(v.aval.dtype == dtypes.KEY for v in jaxpr.outvars),
        reads_keys=any(v.aval.dtype == dtypes.KEY for v in jaxpr.invars),
        local=local,
    )


def _localized(closed: ClosedJaxpr) -> Any:
    """The program for each device, where several run it."""
    if not any(e.primitive.mesh is not None for e in all_equations(closed.jaxpr)):
        return None
    from lamina.sharding.localize import localize

    return localize(closed)


def _constant_value(value: Any, aval: ShapedArray) -> Any:
    """A constant as NumPy array, or as the Array it is when it is large enough to be passed."""
    if isinstance(value, Tracer):
        raise TypeError(
            "a traced value of an outer transformation is a constant of the function that is to be "
            "compiled: pass it as an argument"
        )
    if has_no_value(value):
        raise TypeError(
            f"A {type(value).__name__} does not have a value and cannot be used as a constant in a "
            "function that is compiled"
        )
    if getattr(value, "nbytes", 0) > HOIST_BYTES and get_aval(value) == aval:
        return value
    aval = aval.physical()
    return np.asarray(physical(value)).astype(aval.dtype, copy=False)


def _match_donations(
    ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], donated: Sequence[bool]
) -> tuple[dict[int, int], tuple[int, ...]]:
    free: dict[tuple[Any, Any], list[int]] = {}
    for j, a in enumerate(outs):
        free.setdefault((a.shape, a.dtype), []).append(j)
    aliases, unused = {}, []
    for i, (a, d) in enumerate(zip(ins, donated, strict=True)):
        if not d:
            continue
        places = free.get((a.shape, a.dtype))
        if places:
            aliases[i] = places.pop(0)
        else:
            unused.append(a)
    if unused:
        warnings.warn(
            "Some donated buffers were not usable: "
            + ", ".join(f"{a.dtype.name}[{','.join(map(str, a.shape))}]" for a in unused)
            + ".\nNo result has the same shape and dtype.",
            stacklevel=2,
        )
    donors = tuple(i for i, d in enumerate(donated) if d and i not in aliases)
    return aliases, donors


@dataclasses.dataclass
class Program:
    """A compiled program with what is needed to call it on the leaves of a call."""

    plan: Plan
    executable: Any
    compilation: Compilation | None

    def entry(self, out_tree: tree.PyTreeDef) -> Any:
        """What the call fast path runs; for several devices, a function of the leaves."""
        if isinstance(self.executable, CudaProgram):
            return self.executable
        if self.plan.local is not None:
            from lamina.sharding.execution import DeviceProgram

            return DeviceProgram(self.plan, self.executable, out_tree)
        keys = frozenset(i for i, is_key in enumerate(self.plan.keys_out) if is_key)
        template = _template(out_tree)
        if keys:
            template = functools.partial(_with_keys, out_tree, keys)
        entry = FastPathEntry(
            self.executable,
            self.plan.kept,
            tuple(_as_array(c) for c in self.plan.const_args),
            out_tree=template,
            weak_types=self.plan.weak_types,
            outputs=self.plan.outputs,
        )
        return KeyEntry(entry) if self.plan.reads_keys else entry


def _as_array(value: Any) -> Any:
    from lamina.runtime import to_array

    return to_array(value)


def _with_keys(out_tree: tree.PyTreeDef, keys: frozenset[int], leaves: list[Any]) -> Any:
    return tree.unflatten(out_tree, wrap_keys(leaves, keys))


def _template(out_tree: tree.PyTreeDef) -> Any:
    """The result's structure holding 0, 1, 2, ..., or a function that builds it where the fast path
    does not know a container in it."""
    sample = tree.unflatten(out_tree, list(range(out_tree.num_leaves)))
    return sample if _plain(sample) else functools.partial(tree.unflatten, out_tree)


def _plain(x: Any) -> bool:
    if x is None or type(x) is int:
        return True
    if type(x) is dict:
        return all(map(_plain, x.values()))
    return type(x) in (tuple, list) and all(map(_plain, x))


def compile_program(
    closed: ClosedJaxpr,
    name: str,
    *,
    donated: Sequence[bool] = (),
    keep_unused: bool = False,
    arg_names: Sequence[str] = (),
    result_paths: Sequence[str] = (),
) -> Program:
    """Compiles a jaxpr for the host, or finds it in the disk store."""
    with garbage.held_off():
        return _build(plan_program(closed, name, donated, keep_unused, arg_names, result_paths))


def _build(plan: Plan, module: Any = None, target: Any = None) -> Program:
    from lamina.runtime.artifact import Artifact, ArtifactError
    from lamina.runtime.executable import load
    from lamina.runtime.store import default_store

    if not plan.closed.jaxpr.outvars and not plan.closed.effects and target is None:
        return Program(plan, lambda args: [], None)
    store = default_store() if target is None and module is None else None
    key = program_key(plan) if store is not None else None
    if store is not None and key is not None:
        data = store.get("alias", key)
        if data is not None:
            try:
                artifact = Artifact.from_bytes(data)
            except ArtifactError:
                artifact = None
            if artifact is not None:
                _log("cache", f"{plan.name}: found in {store.directory}")
                return Program(plan, load(artifact), _compilation_of(artifact))
    from lamina.backends.compile import compile_module

    compilation = compile_module(
        plan.lower() if module is None else module, target=target, name=f"jit_{plan.name}"
    )
    _log(
        "compile",
        f"{plan.name}: {len(plan.closed.jaxpr.eqns)} equations"
        + (", found in the store" if compilation.from_cache else ""),
    )
    if store is not None and key is not None:
        store.put("alias", key, compilation.artifact.to_bytes())
    return Program(plan, load(compilation.artifact, plan.callbacks), compilation)


def _compilation_of(artifact: Any) -> Any:
    from lamina.compiled_text import StoredCompilation

    return StoredCompilation(artifact)


def _log(topic: str, text: str) -> None:
    if config.logs(topic):
        print(f"lamina: {text}", file=sys.stderr)


@cache_on_jaxpr
def _jaxpr_entry(closed: ClosedJaxpr, name: str) -> FastPathEntry:
    out_tree = tree.structure([0] * len(closed.jaxpr.outvars))
    return compile_program(closed, name).entry(out_tree)


def run_jaxpr(closed: ClosedJaxpr, name: str, args: Sequence[Any]) -> list[Any]:
    """Runs a jaxpr, compiled once."""
    for x in args:
        if isinstance(x, Tracer):
            from lamina.interpreters.staging import raise_leaked

            raise_leaked(x)
    entry = _jaxpr_entry(closed, name)
    if value_checks.active():
        return value_checks.checked(name, entry, args, closed)
    return entry(args)


def compile_primitive(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    """The function that applies one primitive to arrays; compiles once for each types of operands."""
    from lamina.interpreters.staging import trace_to_jaxpr

    of_keys: dict[Any, Any] = {}  # what the fast path does not read

    def miss(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        signature = tuple(map(get_aval, args)) if of_keys else ()
        if signature in of_keys:
            return of_keys[signature](args), None
        for x in args:
            if isinstance(x, Tracer):
                from lamina.interpreters.staging import raise_leaked

                raise_leaked(x)

        def fun(*tracers: Any) -> list[Any]:
            out = primitive.bind(*tracers, **params)
            return list(out) if primitive.multiple_results else [out]

        closed = trace_to_jaxpr(fun, [get_aval(x) for x in args])
        out: Any = list(range(len(closed.jaxpr.outvars))) if primitive.multiple_results else 0
        entry = compile_program(closed, primitive.name).entry(tree.structure(out))
        if value_checks.active():
            return value_checks.checked_primitive(primitive, params, entry, list(args)), None
        if any(isinstance(x, Array) and x.placement is not None for x in args):
            from lamina import placement

            found = placement.common_devices(args, lambda i: f"operand {i}", primitive.name)
            result = entry(list(args))
            return placement.place_results(found, placement.by_shape(args), result), None
        if isinstance(entry, KeyEntry):
            of_keys[tuple(map(get_aval, args))] = entry
        return entry(list(args)), entry

    return CompiledFunction(miss)


# ---- what users hold -----------------------------------------------------------------------------
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
    ) -> None:
        self.jaxpr, self.fun_name = jaxpr, fun_name
        self.in_tree, self.out_tree = in_tree, out_tree
        self._donated, self._keep_unused = tuple(donated), keep_unused
        self._arg_names, self._result_paths = tuple(arg_names), tuple(result_paths)
        self._static = (tuple(static_argnums), frozenset(static_argnames))

    @property
    def in_avals(self) -> Any:
        """The argument types, as ((args...), {kwargs})."""
        return tree.unflatten(self.in_tree, self.jaxpr.in_avals)

    @property
    def out_info(self) -> Any:
        """The result's structure with a ShapeDtypeStruct for each array."""
        return out_info(self.jaxpr, self.out_tree)

    def lower(self) -> Lowered:
        """The StableHLO module for this jaxpr."""
        plan = plan_program(
            self.jaxpr,
            self.fun_name,
            self._donated,
            self._keep_unused,
            self._arg_names,
            self._result_paths,
        )
        return Lowered(plan, self)


class Lowered:
    """A program in StableHLO."""

    def __init__(self, plan: Plan, traced: Traced) -> None:
        self._plan, self._traced = plan, traced
        self._module = plan.lower()

    in_tree = property(lambda self: self._traced.in_tree)
    out_tree = property(lambda self: self._traced.out_tree)
    in_avals = property(lambda self: self._traced.in_avals)
    out_info = property(lambda self: self._traced.out_info)

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

    def compile(
        self, compiler_options: dict[str, Any] | None = None, *, target: Any = None
    ) -> Compiled:
        """Machine code for `target` (a Target or its name, such as "cuda:sm_90a"; by default this
        machine)."""
        if compiler_options:
            raise ValueError(f"unknown compiler options: {sorted(compiler_options)}")
        if target is None:
            return Compiled(_build(self._plan), self._traced)
        from lamina.backends.target import Target

        target = Target.parse(target) if isinstance(target, str) else target
        return Compiled(_build(self._plan, self._plan.lower(), target), self._traced)


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
    out_info = property(lambda self: self._traced.out_info)

    @property
    def from_cache(self) -> bool:
        """Whether the machine code came from the disk store."""
        return bool(getattr(self._program.compilation, "from_cache", False))

    @property
    def artifact(self) -> Any:
        """The program as files: manifest and objects."""
        compilation = self._program.compilation
        return None if compilation is None else compilation.artifact

    def as_text(self, stage: str | None = None) -> str:
        """A form of the program: jaxpr, stablehlo, optimized, fused, planned, linalg, llvm, asm (for
        GPUs gpu and ptx), hlo, manifest. Without a stage: the fused and the planned module."""
        if stage == "jaxpr":
            return str(self._traced.jaxpr)
        compilation = self._program.compilation
        if compilation is None:
            return "// nothing is computed: every result is an argument\n"
        if stage is None:
            return f"{compilation.text('fused')}\n{compilation.text('planned')}"
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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        nums, names = self._traced._static
        dynamic = tuple(x for i, x in enumerate(args) if i not in nums)
        dynamic_kwargs = {k: v for k, v in kwargs.items() if k not in names}
        leaves, in_tree = tree.flatten((dynamic, dynamic_kwargs))
        if in_tree != self._traced.in_tree:
            raise TypeError(
                f"Function compiled with input pytree does not match the input pytree it was called "
                f"with: compiled for {self._traced.in_tree}, called with {in_tree}"
            )
        where = self._traced._arg_names
        for i, (x, want) in enumerate(zip(leaves, self._traced.jaxpr.in_avals, strict=True)):
            if isinstance(x, Tracer):
                raise TypeError(
                    "Cannot apply lamina transformations to a function lowered and compiled for a "
                    f"particular signature. Detected argument of Tracer type {type(x).__name__}."
                )
            got = get_aval(x)
            weak_ok = got.weak_type and got.shape == want.shape and type(x) in (int, float, complex)
            if (got.shape, got.dtype) != (want.shape, want.dtype) and not weak_ok:
                name = where[i] if i < len(where) else f"leaf {i}"
                raise TypeError(
                    "Argument types differ from the types for which this computation was compiled. "
                    f"Argument {name!r} compiled with {want.str_long()} and called with "
                    f"{got.str_long()}"
                )
            if got.dtype != want.dtype:
                leaves[i] = np.asarray(x, want.dtype)
        return self._entry(leaves)


@dataclasses.dataclass(frozen=True)
class MemoryAnalysis:
    """Bytes that one call of a compiled program needs."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
