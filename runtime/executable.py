"""Loads an artifact: links its object files in this process and gives an `Executable`.

llvmlite's LLJIT does the linking. It is imported on the first load only: `import lamina` and calls
of what is loaded already do without it.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import itertools
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from lamina.forks import new_lock
from lamina.runtime import _runtime
from lamina.runtime.artifact import Artifact
from lamina.runtime.deferred import DeferredProgram, is_for_gpu
from lamina.runtime.processor import ProcessorError, check_processor

# What the estimate takes a core to do in a second. It decides whether the first calls are queued or
# run at once; after those it is known how long they take.
_BYTES_PER_SECOND = 10e9
_FLOPS_PER_SECOND = 10e9
_TRANSCENDENTALS_PER_SECOND = 1e9

# Programs kept loaded beyond what is in use: those made again (a closure jitted in a loop) need no
# linking. Each takes pages and the linker's tables beside its object code, and some eight mappings of
# memory, of which Linux gives a process 65,530; LLVM ends the process when it gets none.
_MOST_LOADED_BYTES = 32 << 20
_LEAST_LOADED_BYTES = 64 << 10

# How many libraries an LLJIT links. It keeps 9 KB of each that was dropped until it goes itself, with the last of
# them; it takes 1 ms to make, as much as linking one, and 110 KB.
_MOST_LINKED = 64  # memory

_LOOKS_FOR_SIGNALS = "lamina_interrupted"
"""What loops of nobody knows how many steps call."""

_GEMM = re.compile(r"scipy_cblas_([sdcz])gemm")

_lock = new_lock()
_loaded: OrderedDict[bytes, Any] = OrderedDict()  # used last at the end
_code_bytes: dict[bytes, int] = {}
_names = itertools.count()
_lljit: Any = None
_linked_by_lljit = 0
_blas: ctypes.CDLL | None = None


class LoadError(RuntimeError):
    """An artifact whose code cannot be linked into this process."""


HostCallback = tuple[Callable[..., Any], Sequence[Any], Sequence[Any], str]
"""A Python function that code calls, the (dtype, shape) of what it takes and gives, and where the
user has it ("" where that is not known)."""


def load(
    artifact: Artifact, callbacks: Sequence[HostCallback] = (), device: int | None = None
) -> _runtime.Executable | DeferredProgram:
    """The artifact as a callable on arrays. Its code stays loaded as long as the result lives.

    callbacks  the functions that the code calls by their positions here.
    device     the number of the GPU, for a program for one; without it, such a program is loaded
               when it is called, on this process's first.

    Equal artifacts without callbacks give the same Executable while it is among those used last.

    Raises:
        LoadError: the processor lacks what it was compiled for, a symbol it imports is unknown, or the
            objects do not link.
    """
    on_gpu = is_for_gpu(artifact)
    if not on_gpu or device is not None:
        return _loaded_on(artifact, callbacks, device if on_gpu else None)

    @functools.cache
    def on_first() -> _runtime.Executable:
        from lamina.runtime import processes
        from lamina.runtime.cuda import check_runs

        check_runs(artifact)
        return _loaded_on(artifact, callbacks, processes.current().own_gpu())

    return DeferredProgram(artifact, on_first)


class CliqueExecutable:
    """A program of several GPUs: an Executable for each that is here."""

    def __init__(self, executables: Sequence[_runtime.Executable]) -> None:
        self.executables = executables

    manifest = property(lambda self: self.executables[0].manifest)


def load_on_gpus(
    artifact: Artifact, callbacks: Sequence[HostCallback], devices: Sequence[int]
) -> CliqueExecutable:
    """The artifact of a program that these GPUs, of a mesh and in its order, run together, on those of this
    process. Kept as those of `load` are. Raises RuntimeError where NCCL is not there."""
    from lamina.runtime.cuda import load_on, members_of_clique

    def linked() -> CliqueExecutable:
        seconds = _seconds(artifact)
        return CliqueExecutable(
            [
                load_on(artifact, member.number, _spec, seconds, callbacks, member)
                for member in members_of_clique(devices)
            ]
        )

    return linked() if callbacks else _kept(artifact, repr(tuple(devices)), linked)


def load_compiled(
    artifact: Artifact, callbacks: Sequence[HostCallback] = (), device: int | None = None
) -> _runtime.Executable | DeferredProgram:
    """The same for what was compiled just now, which may be for others to run: where this processor
    lacks something, `load` raises its error when the program is called."""
    try:
        check_processor({} if is_for_gpu(artifact) else artifact.manifest["target"])
    except ProcessorError:
        return DeferredProgram(artifact, lambda: _loaded_on(artifact, callbacks, None))
    return load(artifact, callbacks, device)


def _loaded_on(
    artifact: Artifact, callbacks: Sequence[HostCallback], device: int | None
) -> _runtime.Executable:
    """The program, from among those used last or loaded now: on this GPU, or (None) on the CPU."""
    if callbacks:
        return _linked(artifact, callbacks, device)
    where = "" if device is None else str(device)
    return _kept(artifact, where, lambda: _linked(artifact, (), device))


_Held = TypeVar("_Held", _runtime.Executable, CliqueExecutable)


def _kept(artifact: Artifact, where: str, linked: Callable[[], _Held]) -> _Held:
    """What is loaded of an artifact at a place, from among those used last or `linked` now."""
    digest = artifact.digest() + where.encode()
    with _lock:
        held = _loaded.get(digest)
        if held is not None:
            _loaded.move_to_end(digest)
            return held
    executable = linked()
    with _lock:
        _loaded[digest] = executable
        _code_bytes[digest] = _LEAST_LOADED_BYTES + sum(map(len, artifact.objects.values()))
        while sum(_code_bytes.values()) > _MOST_LOADED_BYTES:
            oldest, _ = _loaded.popitem(last=False)
            del _code_bytes[oldest]
    return executable


def _linked(
    artifact: Artifact, callbacks: Sequence[HostCallback], device: int | None
) -> _runtime.Executable:
    if device is None:
        return _link(artifact, callbacks)
    from lamina.runtime.cuda import load_on

    return load_on(artifact, device, _spec, _seconds(artifact), callbacks)


def _link(artifact: Artifact, callbacks: Sequence[HostCallback]) -> _runtime.Executable:
    manifest = artifact.manifest
    entry = manifest["entry"]
    code = Code(artifact, artifact.objects, (entry,))
    outputs = manifest["outputs"]
    try:
        return _runtime.Executable(
            name=manifest["name"],
            entry=code.addresses[entry],
            inputs=[_spec(value) for value in manifest["inputs"]],
            outputs=[_spec(value) for value in outputs],
            aliases=[value.get("alias_of") for value in outputs],
            arena_bytes=manifest["arena_bytes"],
            seconds=_seconds(artifact),
            loops_for_long=_LOOKS_FOR_SIGNALS in manifest.get("imports", ()),
            code=code,
            manifest=manifest,
            callbacks=callbacks,
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise LoadError(f"{manifest['name']}: its manifest contradicts itself: {error}") from None


def _seconds(artifact: Artifact) -> float:
    return estimated_seconds(artifact.manifest.get("cost", {}))


def forget_devices() -> None:
    """Drops the programs kept for GPUs: their driver is another one from now on."""
    with _lock:
        for digest, held in list(_loaded.items()):
            if held.manifest.get("target", {}).get("kind") == "cuda":
                del _loaded[digest], _code_bytes[digest]


def estimated_seconds(cost: dict[str, float]) -> float:
    """About how long a call takes on one core, from the manifest's cost."""
    return (
        cost.get("bytes accessed", 0.0) / _BYTES_PER_SECOND
        + cost.get("flops", 0.0) / _FLOPS_PER_SECOND
        + cost.get("transcendentals", 0.0) / _TRANSCENDENTALS_PER_SECOND
    )


class Code:
    """Linked machine code; unloaded when the last reference goes."""

    def __init__(
        self,
        artifact: Artifact,
        objects: Mapping[str, bytes],
        exports: Sequence[str],
        imports: Sequence[str] = (),
        keeps: object = None,
    ) -> None:
        """Links some objects of an artifact, or made for it.

        exports  symbols whose addresses are to be known.
        imports  symbols from outside beside those that the artifact imports.
        keeps    what is to live as long, such as other code that this calls.

        Raises LoadError.
        """
        import llvmlite.binding as llvm

        manifest = artifact.manifest
        try:
            check_processor(manifest.get("target", {}))
        except ProcessorError as error:
            raise LoadError(f"[{manifest['name']}] does not run here: {error}") from None
        outside = dict(_import(symbol) for symbol in (*manifest.get("imports", ()), *imports))
        builder = llvm.JITLibraryBuilder()
        for data in objects.values():
            builder.add_object_img(data)
        for symbol, address in (*outside.items(), *_conversions()):
            builder.import_symbol(symbol, address)
        for symbol in exports:
            builder.export_symbol(symbol)
        try:
            # Dropping the library frees its code.
            self._library = builder.link(_linker(), f"lamina{next(_names)}")
        except RuntimeError as error:
            raise LoadError(f"[{manifest['name']}] does not link: {error}") from error
        self.addresses: dict[str, int] = {symbol: self._library[symbol] for symbol in exports}
        self._keeps = keeps


def _linker() -> Any:
    """The LLJIT that the next artifact is a library of. Libraries keep theirs as long as they live."""
    import llvmlite.binding as llvm

    global _lljit, _linked_by_lljit
    with _lock:
        if _lljit is None or _linked_by_lljit >= _MOST_LINKED:
            _linked_by_lljit = 0
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            # JITLink reserves one range for each object. LLVM's older linker maps sections one by one:
            # in holes far apart their references do not reach, which ends the process.
            machine = llvm.Target.from_default_triple().create_target_machine()
            _lljit = llvm.create_lljit_compiler(
                machine, use_jit_link=True, suppress_errors=True
            )
        _linked_by_lljit += 1
        return _lljit


def _spec(value: dict[str, Any]) -> tuple[np.dtype, tuple[int, ...]]:
    return dtype_named(value["dtype"]), tuple(value["shape"])


def dtype_named(name: str) -> np.dtype:
    """The dtype of a NumPy or ml_dtypes name, such as "float32" or "bfloat16"."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        known = getattr(ml_dtypes, name, None)
        if known is None:
            raise LoadError(f"there are no arrays of {name!r}") from None
        return np.dtype(known)


def _import(symbol: str) -> tuple[str, int]:
    """The address of a symbol that generated code calls."""
    own = _runtime.symbols()
    if symbol in own:
        return symbol, own[symbol]
    if symbol.startswith("scipy_"):
        try:
            address = _address(getattr(_openblas(), symbol))
        except AttributeError as error:
            raise LoadError(f"OpenBLAS has no {symbol}") from error
        gemm = _GEMM.fullmatch(symbol)
        return symbol, _runtime.split_gemm(gemm[1], address) if gemm else address
    return symbol, _process_symbol(symbol)


@functools.cache
def _conversions() -> tuple[tuple[str, int], ...]:
    """Functions to and from f16 and bf16, which LLVM calls for processors without instructions."""
    return tuple(_runtime.conversions().items())


_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def _openblas() -> ctypes.CDLL:
    """OpenBLAS from the scipy-openblas32 wheel, loaded on first use, without threads of its own.

    Its threads wait for each other in the middle of a product: where a core is busy elsewhere that
    costs milliseconds. Ours each do a part of the result, and take over parts not yet begun.
    """
    global _blas
    with _lock:
        if _blas is None:
            path = _library_of_wheel("scipy_openblas32")
            threads = os.environ.get(_BLAS_THREADS)
            os.environ[_BLAS_THREADS] = "1"  # others would be started now, and wait for work for 0.1 s by spinning
            try:
                _blas = ctypes.CDLL(path)
            finally:
                if threads is None:
                    del os.environ[_BLAS_THREADS]
                else:
                    os.environ[_BLAS_THREADS] = threads
            _blas.scipy_openblas_set_num_threads(1)
    return _blas


def _library_of_wheel(package: str) -> str:
    """The shared library in a package's folder `lib`. (The package itself would look for its version first, which
    takes 36 ms.)"""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    folder = os.path.join(spec.submodule_search_locations[0], "lib")
    return os.path.join(folder, next(name for name in os.listdir(folder) if name.startswith("libscipy_openblas")))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _process_symbol(symbol: str) -> int:
    """The address of a function of the C or mathematics library."""
    for library in _system_libraries():
        try:
            return _address(getattr(library, symbol))
        except AttributeError:
            continue
    raise LoadError(f"compiled code needs the symbol {symbol}, which nothing here provides")


def _system_libraries() -> Iterable[ctypes.CDLL]:
    yield ctypes.CDLL(None)
    yield ctypes.CDLL("libm.so.6")
