"""`compile_stablehlo`: any StableHLO program, from wherever it comes, as a callable on arrays.

    run = lamina.compile_stablehlo("model.mlir")       # text, bytecode, a portable artifact, a path
    (y,) = run(x)

MLIR is imported when the first program is compiled.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import linecache
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lamina import config
from lamina.core.tracebacks import api_boundary
from lamina.runtime import array_from_numpy

if TYPE_CHECKING:
    from lamina.array import ArrayImpl
    from lamina.backends.compile import Compilation
    from lamina.backends.target import Target

Source = str | bytes | os.PathLike[str] | Any

_BYTECODE = b"ML\xefR"
_UNNAMED = "-"  # what MLIR calls a program that it was given as text
_SUFFIXES = (".mlir", ".stablehlo", ".mlirbc", ".bc", ".txt")


@dataclasses.dataclass(frozen=True)
class ArraySpec:
    """The shape and dtype of an argument or a result of a compiled program."""

    shape: tuple[int | None, ...]
    dtype: np.dtype
    name: str = ""

    def __str__(self) -> str:
        sizes = ("?" if size is None else str(size) for size in self.shape)
        return f"{self.dtype.name}[{','.join(sizes)}]"


class LoadedStableHLO:
    """A compiled StableHLO program. Call it with as many arrays as @main has arguments.

    It gives back a list with an array for each result of @main. Arguments are NumPy or lamina
    arrays (or Python scalars) of exactly the shapes and dtypes of `inputs`.
    """

    def __init__(self, compilation: Compilation) -> None:
        from lamina.runtime.executable import load_compiled

        self.compilation = compilation
        manifest = compilation.artifact.manifest
        self.name: str = manifest["name"]
        self.inputs = tuple(_spec(row) for row in manifest["inputs"])
        self.outputs = tuple(_spec(row) for row in manifest["outputs"])
        self._executable = load_compiled(compilation.artifact)

    def __call__(self, *arguments: Any) -> list[ArrayImpl]:
        return self._executable(_checked(self.name, arguments, self.inputs))

    def on_devices(self, arguments: Sequence[Sequence[Any]]) -> list[list[ArrayImpl]]:
        """Runs the program on several devices at once, which meet in its collectives:
        arguments[d] are those of device d, and the result has a list for each device. One that is
        compiled for GPUs runs on the first ones."""
        from lamina.array import ArrayImpl
        from lamina.runtime import Executable, run_on_devices, run_on_gpus, to_array
        from lamina.runtime.executable import load_on_gpus

        executable = self._executable
        checked = [_checked(self.name, tuple(given), self.inputs) for given in arguments]
        arrays = [[x if isinstance(x, ArrayImpl) else to_array(x) for x in row] for row in checked]
        if isinstance(executable, Executable):
            return run_on_devices(executable, arrays)
        if not executable.on_gpu:
            return run_on_devices(executable.executable(), arrays)
        gpus = load_on_gpus(self.compilation.artifact, (), range(len(arrays)))
        return run_on_gpus(gpus.executables, arrays)

    def __repr__(self) -> str:
        given = ", ".join(map(str, self.inputs))
        made = ", ".join(map(str, self.outputs))
        return f"<{self.name}: ({given}) -> ({made})>"

    def as_text(self, stage: str = "stablehlo") -> str:
        """The program at a stage: stablehlo, optimized, fused, planned, linalg, schedule, llvm, asm, hlo or
        manifest."""
        return self.compilation.text(stage)

    def cost_analysis(self) -> dict[str, float]:
        """flops, transcendentals and "bytes accessed" of one call."""
        return dict(self.compilation.artifact.manifest["cost"])

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, results, results in donated arguments, temporaries and code."""
        return dict(self.compilation.artifact.manifest["memory"])


class DynamicStableHLO:
    """A StableHLO program that leaves sizes of its arguments open (`None` in `inputs`).

    It is compiled anew for the shapes of each call that it has not met before; for the values of
    its scalar integer arguments, too, where sizes inside depend on these.
    """

    def __init__(self, module: Any, target: Target | None, name: str) -> None:
        from lamina.dialects.serialize import to_text

        self.name = name
        self.inputs = tuple(_argument_specs(module))
        self._text = to_text(module, debug_info=True)
        self._target = target
        self._scalars = [
            position
            for position, spec in enumerate(self.inputs)
            if spec.shape == () and spec.dtype.kind in "iu"
        ]
        self._sized_by_values = False
        self._compiled: dict[Any, LoadedStableHLO] = {}

    def __call__(self, *arguments: Any) -> list[ArrayImpl]:
        arrays = _checked(self.name, arguments, self.inputs)
        return self.specialize(*arrays)(*arrays)

    def specialize(self, *arguments: Any) -> LoadedStableHLO:
        """The program compiled for arguments like these."""
        from lamina.passes.framework.base import CompileError

        arrays = _checked(self.name, arguments, self.inputs)
        shapes = tuple(tuple(array.shape) for array in arrays)
        values = tuple((i, int(np.asarray(arrays[i]))) for i in self._scalars)
        key = (shapes, values if self._sized_by_values else ())
        if key not in self._compiled:
            try:
                self._compiled[key] = self._compile(*key)
            except CompileError:
                if self._sized_by_values or not values:
                    raise
                self._compiled[shapes, values] = self._compile(shapes, values)
                self._sized_by_values = True
                key = (shapes, values)
        return self._compiled[key]

    def _compile(
        self, shapes: tuple[tuple[int, ...], ...], values: tuple[tuple[int, int], ...]
    ) -> LoadedStableHLO:
        from lamina.backends.stages import specialized
        from lamina.dialects.context import parse
        from lamina.dialects.types import tensor_type
        from lamina.dialects.vendors import ir

        module = parse(self._text)
        with module.context, ir.Location.unknown():
            types = [tensor_type(s, spec.dtype) for s, spec in zip(shapes, self.inputs)]
        module = specialized(module, types, dict(values))
        return _loaded(module, self._target, self.name)

    def __repr__(self) -> str:
        return f"<{self.name}: ({', '.join(map(str, self.inputs))}) -> ...>"


@api_boundary
def compile_stablehlo(
    source: Source,
    *,
    target: Target | str | None = None,
    name: str | None = None,
    num_replicas: int | None = None,
    isolate: bool | None = None,
) -> LoadedStableHLO | DynamicStableHLO:
    """A StableHLO program compiled for `target` (by default this machine's processor).

    `source` is MLIR text, MLIR bytecode or a StableHLO portable artifact as bytes, the path of a
    file with one of these, or an MLIR module. Its public function @main is what a call runs. Where
    @main leaves sizes open, the result compiles for each new set of argument shapes when called.

    name          what reports and symbols call it; None: the module's own name.
    num_replicas  how many devices run it together (by default what the module says): see the
                  result's `on_devices`. With one, collectives give what they are given.
    isolate       whether a process of its own, which a damaged program may bring down, reads the
                  program first: by default it does with bytecode, which MLIR trusts. Text is looked
                  over here. A module is taken as it is.

    Raises:
        ParseError: it is no program, with the line that is wrong; or it is beyond the limits that
            settings say (`program_bytes`, `program_depth`, `reader_bytes`, `reader_seconds`).
        CompileError: it can't be compiled, with the operation and its line; or it has more operations
            than the setting `program_operations` says.
        TargetError: there is no backend for the target.

    >>> text = lamina.jit(jnp.sin).lower(jnp.zeros(2)).as_text()
    >>> [np.asarray(y).tolist() for y in lamina.compile_stablehlo(text)(np.zeros(2, "float32"))]
    [[0.0, 0.0]]
    """
    from lamina.backends.target import Target

    chosen = target if target is None or isinstance(target, Target) else Target.parse(target)
    module = read_module(source, isolate)
    with with_source(source):
        if num_replicas is not None:
            module = _for_devices(module, num_replicas)
        if config.matrix_products.value != "auto" or config.lanes.value == "select":
            module = _with_settings(module)
        if any(None in spec.shape for spec in _argument_specs(module)):
            return DynamicStableHLO(module, chosen, name or _name_of(module))
        return _loaded(module, chosen, name)


def _loaded(module: Any, target: Target | None, name: str | None) -> LoadedStableHLO:
    from lamina.backends.compile import compile_module
    from lamina.runtime.executable import LoadError

    compiled = functools.partial(
        compile_module,
        module,
        target=target,
        name=name,
        most_operations=config.program_operations.value,
    )
    compilation = compiled()
    try:
        return LoadedStableHLO(compilation)
    except LoadError:  # what the store has is no program
        if not compilation.from_cache:
            raise
    return LoadedStableHLO(compiled(anew=True))


def _with_settings(module: Any) -> Any:
    """A copy of a module that says what settings say where it does not."""
    from lamina.dialects.context import parse
    from lamina.dialects.serialize import to_text
    from lamina.interpreters.lowering import note_settings

    copy = parse(to_text(module, debug_info=True))
    note_settings(copy)
    return copy


def _for_devices(module: Any, count: int) -> Any:
    """A copy of a module that says how many replicas run it."""
    from lamina.dialects.vendors import ir

    with module.context, ir.Location.unknown():
        copy = ir.Module.parse(str(module))
        word = ir.IntegerType.get_signless(32)
        for what, n in (("replicas", count), ("partitions", 1)):
            copy.operation.attributes[f"mhlo.num_{what}"] = ir.IntegerAttr.get(word, n)
    return copy


def read_module(source: Source, isolate: bool | None = None) -> Any:
    """The MLIR module in any of the forms that compile_stablehlo takes."""
    from lamina.dialects.shardy import without_shardings
    from lamina.dialects.vendors import ir
    from lamina.interpreters.foreign_programs import foreign_program

    if isinstance(source, ir.Module):
        return source
    if isinstance(source, bytearray | memoryview):
        source = bytes(source)
    if not isinstance(source, str | bytes | os.PathLike):
        raise TypeError(
            "compile_stablehlo takes MLIR text, bytes, a path or an MLIR module, not "
            f"{type(source).__name__}"
        )
    name, content = _content(source)
    if isinstance(content, str):
        content = without_shardings(content)
    return foreign_program(content, name, isolate)


@contextlib.contextmanager
def with_source(source: Source) -> Iterator[None]:
    """Errors raised inside point at the lines of `source`, which MLIR itself knows only as "-"."""
    from lamina.dialects.parse_error import NOT_UTF8, ParseError, is_about_encoding
    from lamina.passes.framework.base import CompileError

    try:
        yield
    except (RuntimeError, UnicodeError) as error:
        if not is_about_encoding(error):
            raise
        is_named = isinstance(source, str | bytes | os.PathLike)
        raise ParseError(_content(source)[0] if is_named else "<module>", NOT_UTF8) from None
    except CompileError as error:
        if isinstance(source, str | bytes | os.PathLike):
            name, content = _content(source)
            if isinstance(content, str):
                lines = content.splitlines(keepends=True)
                linecache.cache[name] = (len(content), None, lines, name)
            error.frames = [
                dataclasses.replace(frame, file=name) if frame.file == _UNNAMED else frame
                for frame in error.frames
            ]
        raise


def _content(source: str | bytes | os.PathLike[str]) -> tuple[str, str | bytes]:
    """What to call the program, and its text, or its bytes where it is bytecode."""
    name = "<stablehlo>"
    content: str | bytes
    if isinstance(source, os.PathLike) or (isinstance(source, str) and _is_path(source)):
        name, content = os.fspath(source), Path(source).read_bytes()
    else:
        content = source
    if isinstance(content, bytes) and not content.startswith(_BYTECODE):
        with contextlib.suppress(UnicodeDecodeError):  # else the parser says what it is not
            content = content.decode()
    return name, content


def _is_path(source: str) -> bool:
    """Whether text names a file: a program does not end like one."""
    return "\n" not in source and source.endswith(_SUFFIXES)


def _spec(row: dict[str, Any]) -> ArraySpec:
    from lamina.runtime.executable import dtype_named

    return ArraySpec(tuple(row["shape"]), dtype_named(row["dtype"]), row.get("name", ""))


def _argument_specs(module: Any) -> list[ArraySpec]:
    """What @main takes; nothing where it takes other than arrays, which the compiler then says."""
    from lamina.dialects.types import DYNAMIC, dtype_of
    from lamina.dialects.vendors import ir

    symbols = ir.SymbolTable(module.operation)
    if "main" not in symbols:
        return []
    types = symbols["main"].operation.attributes["function_type"].value.inputs
    try:
        return [
            ArraySpec(tuple(None if size == DYNAMIC else size for size in of.shape), dtype_of(of))
            for of in types
            if isinstance(of, ir.RankedTensorType)
        ]
    except TypeError:
        return []


def _name_of(module: Any) -> str:
    attributes = module.operation.attributes
    return attributes["sym_name"].value if "sym_name" in attributes else "module"


def _checked(program: str, arguments: tuple[Any, ...], specs: tuple[ArraySpec, ...]) -> list[Any]:
    """The arguments as arrays of the types that the program takes."""
    if len(arguments) != len(specs):
        raise TypeError(f"[{program}] takes {len(specs)} arguments, {len(arguments)} were given")
    return [
        _as_array(program, position, given, spec)
        for position, (given, spec) in enumerate(zip(arguments, specs))
    ]


def _as_array(program: str, position: int, given: Any, spec: ArraySpec) -> Any:
    """The argument as an array, which must be of the type that the program takes."""
    from lamina.array import ArrayImpl

    if not isinstance(given, ArrayImpl):
        if isinstance(given, (bool, int, float, complex)):
            given = _scalar(program, position, given, spec)
        given = np.asarray(given)
    fits = len(given.shape) == len(spec.shape) and all(
        wanted is None or size == wanted for size, wanted in zip(given.shape, spec.shape)
    )
    if not fits or given.dtype != spec.dtype:
        got = ArraySpec(tuple(given.shape), np.dtype(given.dtype))
        raise TypeError(f"[{program}] argument {position}: {spec} expected, got {got}")
    return given if isinstance(given, ArrayImpl) else array_from_numpy(given)


def _scalar(program: str, position: int, given: Any, spec: ArraySpec) -> np.ndarray:
    try:
        return np.asarray(given, dtype=spec.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(
            f"[{program}] argument {position}: {spec} expected, got {given!r} ({error})"
        ) from None
