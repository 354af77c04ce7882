"""Settings: each has a name, a `LAMINA_<NAME>` environment variable, a default and a meaning.

`config.update("enable_x64", True)` sets one for the process; `with enable_x64(True): ...` sets it
for a block in the current thread. JAX's spelling (`jax_enable_x64`, `jax_platform_name`,
`jax_compilation_cache_dir`) is accepted by `update`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lamina.core.library import library
from lamina.core.option import Option as Option
from lamina.core.option import boolean, choice, flag, is_boolean, words
from lamina.core.option import call_key as call_key
from lamina.core.option import on_change as on_change
from lamina.core.option import options as options
from lamina.core.option import read as read
from lamina.core.option import trace_key as trace_key
from lamina.core.option import update as update
from lamina.core.option import values as values
from lamina.core.precision_names import check_precision

if TYPE_CHECKING:
    from lamina.core.command_line import config_with_absl as config_with_absl
    from lamina.core.command_line import parse_flags_with_absl as parse_flags_with_absl

__all__ = [
    "ELSEWHERE",
    "Option",
    "allow_f16_reductions",
    "array_garbage_collection_guard",
    "auto_pcast",
    "cache_dir",
    "call_key",
    "check_tracer_leaks",
    "config_with_absl",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "disable_jit",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "explain_cache_misses",
    "jax2tf_associative_scan_reductions",
    "lanes",
    "legacy_prng_key",
    "log",
    "log_compiles",
    "logs",
    "matrix_products",
    "no_collectives",
    "no_execution",
    "no_tracing",
    "num_cpu_devices",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "on_change",
    "options",
    "parse_flags_with_absl",
    "partitioner_seconds",
    "platforms",
    "profiling",
    "program_bytes",
    "program_depth",
    "program_operations",
    "read",
    "reader_bytes",
    "reader_seconds",
    "remove_size_one_mesh_axis_from_type",
    "softmax_custom_jvp",
    "thread_guard",
    "threefry_partitionable",
    "trace_key",
    "traceback_filtering",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "update",
    "values",
]


def _platforms(text: str) -> tuple[str, ...]:
    # JAX knows lamina's CPU devices, which it has as a plugin, as the backend "lamina".
    known = {"gpu": "cuda", "lamina": "cpu"}
    words = text.replace(",", " ").split()
    names = tuple(dict.fromkeys(known.get(word, word) for word in words))
    for name in names:
        if name not in ("cpu", "cuda"):
            raise ValueError(f"expected cpu, cuda or both; got {name!r}")
    return names or ("cpu", "cuda")


def _as_platforms(given: Any) -> tuple[str, ...]:
    return _platforms(given if isinstance(given, str) else ",".join(given or ()))


def _keep_cache_in(directory: str | None) -> None:
    """For the store, which reads the variable whenever a program is compiled."""
    if directory is None:
        os.environ.pop("LAMINA_CACHE_DIR", None)
    else:
        os.environ["LAMINA_CACHE_DIR"] = os.fspath(directory)


def _topics(text: str) -> frozenset[str]:
    topics = words(text)
    _check_topics(topics)
    return topics


def _count(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError("expected a whole number")
    return int(text)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("expected a number of seconds") from None


def _is_positive(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(f"expected a positive number, got {value!r}")


def _check_topics(topics: Any) -> None:
    known = {"retrace", "compile", "cache", "partition", "distributed"}
    if isinstance(topics, str) or not known.issuperset(topics):
        got = topics if isinstance(topics, str) else ", ".join(map(str, topics))
        raise ValueError(f"expected some of {', '.join(sorted(known))}; got {got}")


def _are_axis_names(value: Any) -> None:
    if value is not None and not isinstance(value, (set, frozenset)):
        raise ValueError(f"expected a set of names of axes, got {value!r}")


def _no_key_reuse(value: Any) -> None:
    if value:
        raise ValueError(f"{library.name} does not look for random keys that are used twice")


enable_x64 = flag(
    "enable_x64",
    False,
    "64-bit integers, floats and complex numbers are kept.",
    affects_trace=True,
)
numpy_rank_promotion = choice(
    "numpy_rank_promotion",
    ("allow", "warn", "raise"),
    "What broadcasting arrays of different rank does.",
    affects_trace=True,
)
numpy_dtype_promotion = choice(
    "numpy_dtype_promotion",
    ("standard", "strict"),
    "strict: arrays of different dtypes do not combine; Python scalars take the array's.",
    affects_trace=True,
)
default_matmul_precision: Option[str | None] = Option(
    "default_matmul_precision",
    "default",
    "Precision of dots that name none: default, high, highest.",
    parse=str,
    check=check_precision,
    affects_trace=True,
    other="highest",
)
matrix_products = choice(
    "matrix_products",
    ("auto", "kernel", "shared", "library"),
    "Who does matrix products: code that lamina generates for their shapes (kernel), on CPUs the packed product that "
    "all products of a type share wherever it can (shared), a library wherever it can "
    "(OpenBLAS, on GPUs cuBLASLt), or the fastest of them (auto): on a CPU by a model of measured times, "
    "on a GPU by measuring when a program is first loaded.",
    affects_trace=True,
    of_programs=True,
)
lanes = choice(
    "lanes",
    ("auto", "select", "branch"),
    "How vmap does a while_loop or cond whose predicate is batched: every lane does what any does "
    "(select), each goes its own way (branch), or what costs less (auto).",
    affects_trace=True,
)
threefry_partitionable = flag(
    "threefry_partitionable",
    True,
    "Random bits are computed by JAX's partitionable scheme.",
    affects_trace=True,
)
num_cpu_devices = Option(
    "num_cpu_devices",
    -1,
    "How many virtual devices the CPU is; by default one.",
    parse=int,
)
platforms: Option[tuple[str, ...]] = Option(
    "platforms",
    ("cpu", "cuda"),
    "The platforms that may be used, the default one first: cpu, cuda or both.",
    parse=_platforms,
    convert=_as_platforms,
    other=("cpu",),
)
cache_dir: Option[str | None] = Option(
    "cache_dir",
    None,
    "The folder of the disk cache; by default `$XDG_CACHE_HOME/lamina`.",
    parse=str,
    then=_keep_cache_in,
)
default_device: Option[Any] = Option(
    "default_device",
    None,
    "The device of new arrays that nobody places: a Device, or a platform's name.",
    parse=lambda text: text or None,
    affects_trace=True,
)
default_prng_impl = choice(
    "default_prng_impl",
    ("threefry2x32", "rbg", "unsafe_rbg", "threefry4x32", "philox2x32", "philox4x32"),
    "The generator of new random keys, and that raw keys are for.",
    affects_trace=True,
)
disable_jit = flag(
    "disable_jit", False, "jit runs its function eagerly, op by op.", affects_trace=True
)
debug_nans = flag(
    "debug_nans",
    False,
    "A program that gives a NaN is run again op by op; FloatingPointError names the op and the line.",
    affects_trace=True,
)
debug_infs = flag("debug_infs", False, "The same for infinities.", affects_trace=True)
profiling = Option(
    "profiling",
    False,
    "Calls are timed for lamina.profiler, which sets this.",
    parse=boolean,
    check=is_boolean,
    affects_calls=True,
)
debug_key_reuse: Option[bool] = Option(
    "debug_key_reuse",
    False,
    "Accepted for JAX's programs: there is no such check, and True raises ValueError.",
    parse=boolean,
    check=_no_key_reuse,
)
check_tracer_leaks = flag(
    "check_tracer_leaks", False, "Raise when a tracer outlives the trace that made it."
)
enable_checks = flag("enable_checks", False, "Type-check every jaxpr that is made.")
traceback_filtering = choice(
    "traceback_filtering",
    ("auto", "hide_frames", "off", "tracebackhide", "remove_frames", "quiet_remove_frames"),
    "off: errors out of jit show all frames. auto, and the others that JAX knows: the user's only.",
)
log: Option[frozenset[str]] = Option(
    "log",
    frozenset(),
    "Topics to log: retrace, compile, cache, partition. A line has its topic and how long that took.",
    parse=_topics,
    check=_check_topics,
    other=frozenset({"compile"}),
)
log_compiles = flag("log_compiles", False, "Log each compilation, as the topic compile does.")
explain_cache_misses = flag(
    "explain_cache_misses",
    False,
    "Log why a function is traced again, as the topic retrace does.",
)
_GUARDS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
transfer_guard = choice(
    "transfer_guard",
    _GUARDS,
    "What becomes of values on the host that turn into arrays without being asked to (the _explicit "
    "levels: by device_put, too): nothing, a line in the log, an error.",
    affects_calls=True,
)


def _guard(name: str, doc: str) -> Option[str | None]:
    return choice(name, (None, *_GUARDS), doc, affects_calls=True)


transfer_guard_host_to_device = _guard(
    "transfer_guard_host_to_device", "The same for the host to a device; None: as transfer_guard."
)
transfer_guard_device_to_host = _guard(
    "transfer_guard_device_to_host",
    "Accepted for JAX's programs: nothing is copied from a CPU, and copies from GPUs are not watched.",
)
transfer_guard_device_to_device = _guard(
    "transfer_guard_device_to_device",
    "Accepted for JAX's programs: copies between devices are not watched.",
)
no_tracing = flag("no_tracing", False, "jit raises where it would have to trace a function.")
no_execution = flag(
    "no_execution",
    False,
    "Programs are traced and compiled, but running one raises.",
    affects_calls=True,
)
allow_f16_reductions = flag(
    "allow_f16_reductions",
    True,
    "Off: lax.reduce_sum refuses float16 and bfloat16.",
    affects_trace=True,
)
legacy_prng_key = choice(
    "legacy_prng_key",
    ("allow", "warn", "error"),
    "What random functions do that are given a raw key, as PRNGKey makes it.",
    affects_trace=True,
)
enable_custom_prng = flag(
    "enable_custom_prng", False, "PRNGKey makes typed keys, as random.key does.", affects_trace=True
)
no_collectives: Option[frozenset[str] | None] = Option(
    "no_collectives",
    None,
    "Accepted for JAX's programs: names of mesh axes. Programs on sharded arrays hold no collectives but "
    "those of shard_map, which it does not concern.",
    parse=lambda text: words(text) or None,
    check=_are_axis_names,
    convert=lambda value: None if value is None else frozenset(value),
)
auto_pcast = flag(
    "auto_pcast",
    True,
    "Off: in a shard_map's body the operands of an operation vary along the same mesh axes, or that is an error: "
    "each lax.pcast is written out.",
    affects_trace=True,
)
thread_guard = flag(
    "thread_guard", False, "Accepted for JAX's programs: there is one process, so nothing to guard."
)
array_garbage_collection_guard = choice(
    "array_garbage_collection_guard",
    ("allow", "log", "fatal"),
    "Accepted for JAX's programs: arrays that wait for garbage collection are not looked for.",
)
remove_size_one_mesh_axis_from_type = flag(
    "remove_size_one_mesh_axis_from_type",
    False,
    "Types say nothing of explicit mesh axes of size 1.",
    affects_trace=True,
)
jax2tf_associative_scan_reductions = flag(
    "jax2tf_associative_scan_reductions",
    False,
    "Accepted for JAX's programs: there is no jax2tf.",
)
softmax_custom_jvp = flag(
    "softmax_custom_jvp",
    True,
    "Accepted for JAX's programs: the derivative of softmax is the same either way.",
)

program_operations = Option(
    "program_operations",
    1_000_000,
    "The most operations that a program may have with its calls inlined; one that has more is refused.",
    parse=_count,
    check=_is_positive,
)
program_bytes = Option(
    "program_bytes",
    2 << 30,
    "The most bytes of text or bytecode that compile_stablehlo, lamina-opt and lamina-compile read.",
    parse=_count,
    check=_is_positive,
)
program_depth = Option(
    "program_depth",
    500,
    "How deep brackets may be nested in the text of a program that they read.",
    parse=_count,
    check=_is_positive,
)
reader_bytes = Option(
    "reader_bytes",
    4 << 30,
    "The most memory that the process which reads bytecode may take for one program.",
    parse=_count,
    check=_is_positive,
)
partitioner_seconds = Option(
    "partitioner_seconds",
    600.0,
    "The most time that Shardy may take for one of JAX's programs over several devices.",
    parse=_seconds,
    check=_is_positive,
)
reader_seconds = Option(
    "reader_seconds",
    60.0,
    "The most time that it may take for one program.",
    parse=_seconds,
    check=_is_positive,
)

_LOGGING_FLAGS = {"compile": log_compiles, "retrace": explain_cache_misses}

ELSEWHERE = {
    "LAMINA_CACHE": "0, off: no disk cache.",
    "LAMINA_COLLECTIVE_TIMEOUT": "Seconds after which devices stop waiting for each other.",
    "LAMINA_CUDA_ARCH": "The architecture that programs on GPUs are compiled for, such as sm_90 for an "
    "sm_90a without wgmma; by default the GPU's own.",
    "LAMINA_CUDA_GRAPHS": "0, off: programs on GPUs are launched kernel by kernel.",
    "LAMINA_CUDA_SYNC": "1: wait after each kernel on a GPU, so that an error names the one that failed.",
    "LAMINA_DUMP": "A folder for each program's form at every stage, in files numbered in that order "
    "that index.txt lists; of programs that are compiled, not of those found in the disk cache (LAMINA_CACHE=0).",
    "LAMINA_DUMP_PASSES": "changed, all: what follows each pass (or each that changed something), too.",
    "LAMINA_COMPILE_WORKERS": "Processes that compile kernels of large programs beside this one, 0 for "
    "none; by default one for each idle CPU, eight at most, where enough is left to compile.",
    "LAMINA_MACHINE": "The machine that code is scheduled for, by name, such as znver5, instead of this one: sizes of "
    "caches, what a task costs, who does matrix products (docs/machines.md). Instructions stay this processor's.",
    "LAMINA_MPI": "What carries messages between processes: the path of a library of MPI's standard ABI, or "
    "mpi4py; by default what is found (docs/scaling.md).",
    "LAMINA_NUM_THREADS": "Threads of parallel kernels, which `lamina.set_num_threads` changes; by "
    "default the CPUs this process may use.",
    "LAMINA_PROCESSOR": "The processor that this process takes its own to be, as one with fewer features: "
    "a level of x86-64 and, with `+` before each, further features by LLVM's names, such as `x86-64-v3` or "
    "`x86-64-v4+avx512vnni`.",
    "LAMINA_TIMING": "1: times and statistics of the passes of each compilation, the longest first, and "
    "their sum.",
    "LAMINA_VERIFY": "1: verify a program and its kernels after each of their pipelines, not only "
    "kernels before LLVM.",
}
"""Environment variables that the compiler and the runtime read themselves."""


def warn_of_misspelt(environment: Iterable[str]) -> None:
    """Warns of variables that are nearly one of ours, but for those with words beside its: they are another
    program's."""
    known = {option.variable for option in options().values() if option.is_setting} | ELSEWHERE.keys()
    for name in environment:
        if not name.startswith("LAMINA_") or name in known:
            continue
        import difflib
        import warnings

        for close in difflib.get_close_matches(name, known, 1, 0.8):
            if set(close.split("_")) <= set(name.split("_")):
                continue
            warnings.warn(f"environment variable {name} is no setting: is {close} meant?", stacklevel=2)


warn_of_misspelt(os.environ)


def logs(topic: str) -> bool:
    """Whether a topic is to be logged.

    topic  "retrace", "compile", "cache", "partition" or "distributed".

    >>> with lamina.config.log_compiles(True):
    ...     print(lamina.config.logs("compile"))
    True
    """
    return topic in log.value or (topic in _LOGGING_FLAGS and _LOGGING_FLAGS[topic].value)


_OF_COMMAND_LINES = ("config_with_absl", "parse_flags_with_absl")


def __getattr__(name: str) -> Any:
    if name in _OF_COMMAND_LINES:
        from lamina.core import command_line

        return getattr(command_line, name)
    if name == "x64_enabled":  # JAX's other name for it
        return enable_x64.value
    short = name.removeprefix("jax_")
    if short != name and short in options():
        return options()[short].value
    if name == "jax_platform_name":
        return platforms.value[0]
    if name == "jax_compilation_cache_dir":
        return cache_dir.value
    raise AttributeError(f"module '{library}.config' has no attribute {name!r}")
