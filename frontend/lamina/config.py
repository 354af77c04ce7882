"""Settings: each has a name, a `LAMINA_<NAME>` environment variable, a default and a meaning.

`config.update("enable_x64", True)` sets one for the process; `with enable_x64(True): ...` sets it
for a block in the current thread. JAX's spelling (`jax_enable_x64`) is accepted by `update`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_options: dict[str, Option] = {}
_listeners: list[Callable[[str], None]] = []


class Option(Generic[T]):
    """One setting. Calling it gives a context manager that sets it for a block.

    `affects_trace` marks settings that are part of jit's cache key, `affects_calls` those that only
    the fast path of calls must know, `of_programs` those that one program can be given in its
    compiler_options.
    """

    def __init__(
        self,
        name: str,
        default: T,
        doc: str,
        *,
        parse: Callable[[str], T],
        check: Callable[[Any], None] | None = None,
        affects_trace: bool = False,
        affects_calls: bool = False,
        of_programs: bool = False,
        values: tuple[str, ...] = (),
    ) -> None:
        self.name, self.doc, self.parse, self.affects_trace = name, doc, parse, affects_trace
        self.default, self.check, self.values = default, check, values
        self.affects_calls, self.of_programs = affects_trace or affects_calls, of_programs
        text = os.environ.get(self.variable)
        try:
            value: T = parse(text) if text is not None else default
        except ValueError as e:
            raise ValueError(f"environment variable {self.variable}={text!r}: {e}") from None

        class Values(threading.local):
            """A thread's value hides the process's, which is the class's."""

        Values.value = value  # type: ignore[attr-defined]
        self._values: Any = Values()
        _options[name] = self

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "LAMINA_" + self.name.upper()

    @property
    def value(self) -> T:
        found: T = self._values.value
        return found

    def set(self, value: T) -> None:
        """Sets the process-wide value; ValueError where it is none that the setting takes."""
        self.checked(value)
        type(self._values).value = value
        if self.affects_calls:
            _changed("process")

    def checked(self, value: Any) -> None:
        """Raises ValueError where the setting does not take this value."""
        try:
            if self.check is not None:
                self.check(value)
        except ValueError as e:
            raise ValueError(f"config option {self.name}: {e}") from None

    @contextmanager
    def __call__(self, new_val: T = True) -> Iterator[None]:  # type: ignore[assignment]
        self.checked(new_val)
        had = "value" in vars(self._values)
        old = self._values.value
        self._values.value = new_val
        if self.affects_calls:
            _nesting.depth += 1
            _changed("thread")
        try:
            yield
        finally:
            if had:
                self._values.value = old
            else:
                del self._values.value
            if self.affects_calls:
                _nesting.depth -= 1
                _changed("thread" if _nesting.depth else "thread ends")


class _Nesting(threading.local):
    depth = 0  # how many `with option(...)` blocks this thread is in


_nesting = _Nesting()


def _changed(scope: str) -> None:
    for listener in _listeners:
        listener(scope)


def on_change(listener: Callable[[str], None]) -> None:
    """Calls `listener(scope)` whenever a setting that affects calls changes: for the "process",
    for this "thread", or when this thread goes back to the process's settings ("thread ends")."""
    _listeners.append(listener)
    listener("process")


def trace_key() -> tuple[Any, ...]:
    """The values of all settings that affect what is traced."""
    return tuple(o.value for o in _options.values() if o.affects_trace)


def call_key() -> tuple[Any, ...]:
    """The values of all settings that a call's fast path has to know."""
    return tuple(o.value for o in _options.values() if o.affects_calls)


def _option(name: str) -> Option:
    short = name.removeprefix("jax_").removeprefix("lamina_")
    if short in _options:
        return _options[short]
    import difflib

    close = difflib.get_close_matches(short, _options, 3)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    raise AttributeError(
        f"Unrecognized config option: {name}.{hint} Known options: {', '.join(sorted(_options))}"
    )


def update(name: str, value: Any) -> None:
    """Sets a setting by name; `jax_` and `lamina_` prefixes are accepted.

    Raises AttributeError for an unknown name, with suggestions; ValueError for a value that the
    setting does not take.
    """
    _option(name).set(value)


def read(name: str) -> Any:
    """The value of a setting, by name as in update."""
    return _option(name).value


def values() -> dict[str, Any]:
    """The values of all settings by name."""
    return {name: option.value for name, option in _options.items()}


def options() -> dict[str, Option]:
    """All settings by name."""
    return dict(_options)


def logs(topic: str) -> bool:
    """Whether a topic (retrace, compile, cache) is to be logged."""
    return topic in log.value or (topic in _LOGGING_FLAGS and _LOGGING_FLAGS[topic].value)


def __getattr__(name: str) -> Any:
    short = name.removeprefix("jax_")
    if short != name and short in _options:
        return _options[short].value
    raise AttributeError(f"module 'lamina.config' has no attribute {name!r}")


def _boolean(text: str) -> bool:
    value = {
        "1": True,
        "true": True,
        "on": True,
        "yes": True,
        "0": False,
        "false": False,
        "off": False,
        "no": False,
        "": False,
    }.get(text.lower())
    if value is None:
        raise ValueError("expected a boolean: 1, 0, true, false, on, off")
    return value


def _words(text: str) -> frozenset[str]:
    return frozenset(w for w in text.replace(",", " ").split() if w)


def _is_boolean(value: Any) -> None:
    if not isinstance(value, (bool, int)):
        raise ValueError(f"expected a boolean, got {value!r}")


def _flag(name: str, default: bool, doc: str, *, affects_trace: bool = False) -> Option[bool]:
    return Option(
        name, default, doc, parse=_boolean, check=_is_boolean, affects_trace=affects_trace
    )


def _choice(
    name: str,
    values: tuple[str, ...],
    doc: str,
    *,
    affects_trace: bool = False,
    of_programs: bool = False,
) -> Option[str]:
    """A setting that is one of these words, by default the first."""

    def check(value: Any) -> None:
        if value not in values:
            raise ValueError(f"expected one of {', '.join(values)}; got {value!r}")

    def parse(text: str) -> str:
        check(text)
        return text

    return Option(
        name,
        values[0],
        doc,
        parse=parse,
        check=check,
        affects_trace=affects_trace,
        of_programs=of_programs,
        values=values,
    )


enable_x64 = _flag(
    "enable_x64",
    False,
    "64-bit integers, floats and complex numbers are kept.",
    affects_trace=True,
)
numpy_rank_promotion = _choice(
    "numpy_rank_promotion",
    ("allow", "warn", "raise"),
    "What broadcasting arrays of different rank does.",
    affects_trace=True,
)
numpy_dtype_promotion = _choice(
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
    affects_trace=True,
)
matrix_products = _choice(
    "matrix_products",
    ("auto", "kernel", "library"),
    "Who does matrix products: code that lamina generates (kernel), a library wherever it can "
    "(OpenBLAS, on GPUs cuBLASLt), or the faster of them (auto): on a CPU by a model of measured times, "
    "on a GPU by measuring when a program is first loaded.",
    affects_trace=True,
    of_programs=True,
)
lanes = Option(
    "lanes",
    "auto",
    "How vmap does a while_loop or cond whose predicate is batched: every lane does what any does "
    "(select), each goes its own way (branch), or what costs less (auto).",
    parse=str,
    affects_trace=True,
)
threefry_partitionable = _flag(
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
def _platforms(text: str) -> tuple[str, ...]:
    names = tuple("cuda" if w == "gpu" else w for w in text.replace(",", " ").split())
    for name in names:
        if name not in ("cpu", "cuda"):
            raise ValueError(f"expected cpu, cuda or both; got {name!r}")
    return names or ("cpu", "cuda")


platforms: Option[tuple[str, ...]] = Option(
    "platforms",
    ("cpu", "cuda"),
    "The platforms that may be used, the default one first: cpu, cuda or both.",
    parse=_platforms,
)
default_device: Option[Any] = Option(
    "default_device",
    None,
    "The device of new arrays that nobody places: a Device, or a platform's name.",
    parse=lambda text: text or None,
    affects_trace=True,
)
default_prng_impl = _choice(
    "default_prng_impl",
    ("threefry2x32", "rbg", "unsafe_rbg", "threefry4x32", "philox2x32", "philox4x32"),
    "The generator of new random keys, and that raw keys are for.",
    affects_trace=True,
)
disable_jit = _flag(
    "disable_jit", False, "jit runs its function eagerly, op by op.", affects_trace=True
)
debug_nans = _flag(
    "debug_nans",
    False,
    "A program that gives a NaN is run again op by op; FloatingPointError names the op and the line.",
    affects_trace=True,
)
debug_infs = _flag("debug_infs", False, "The same for infinities.", affects_trace=True)
profiling = Option(
    "profiling",
    False,
    "Calls are timed for lamina.profiler, which sets this.",
    parse=_boolean,
    check=_is_boolean,
    affects_calls=True,
)
def _no_key_reuse(value: Any) -> None:
    if value:
        raise ValueError("lamina does not look for random keys that are used twice")


debug_key_reuse: Option[bool] = Option(
    "debug_key_reuse",
    False,
    "Accepted for JAX's programs: there is no such check, and True raises ValueError.",
    parse=_boolean,
    check=_no_key_reuse,
)
check_tracer_leaks = _flag(
    "check_tracer_leaks", False, "Raise when a tracer outlives the trace that made it."
)
enable_checks = _flag("enable_checks", False, "Type-check every jaxpr that is made.")
traceback_filtering = _choice(
    "traceback_filtering",
    ("auto", "hide_frames", "off"),
    "auto, hide_frames: errors out of jit show the user's frames only. off: lamina's, too.",
)
log: Option[frozenset[str]] = Option(
    "log", frozenset(), "Topics to log: retrace, compile, cache.", parse=_words
)
log_compiles = _flag("log_compiles", False, "Log each compilation, as the topic compile does.")
explain_cache_misses = _flag(
    "explain_cache_misses",
    False,
    "Log why a function is traced again, as the topic retrace does.",
)
transfer_guard = _choice(
    "transfer_guard",
    ("allow", "log", "disallow", "log_explicit", "disallow_explicit"),
    "Accepted for JAX's programs: on a CPU nothing is transferred.",
)
softmax_custom_jvp = _flag(
    "softmax_custom_jvp",
    True,
    "Accepted for JAX's programs: the derivative of softmax is the same either way.",
)

_LOGGING_FLAGS = {"compile": log_compiles, "retrace": explain_cache_misses}

ELSEWHERE = {
    "LAMINA_CACHE": "0, off: no disk cache.",
    "LAMINA_CACHE_DIR": "The folder of the disk cache; by default `$XDG_CACHE_HOME/lamina`.",
    "LAMINA_COLLECTIVE_TIMEOUT": "Seconds after which devices stop waiting for each other.",
    "LAMINA_CUDA_ARCH": "The architecture that programs on GPUs are compiled for, such as sm_90 for an "
    "sm_90a without wgmma; by default the GPU's own.",
    "LAMINA_CUDA_GRAPHS": "0, off: programs on GPUs are launched kernel by kernel.",
    "LAMINA_CUDA_SYNC": "1: wait after each kernel on a GPU, so that an error names the one that failed.",
    "LAMINA_DUMP": "A folder for each program's form at every stage.",
    "LAMINA_DUMP_PASSES": "changed, all: what follows each pass (or each that changed something), too.",
    "LAMINA_COMPILE_WORKERS": "Processes that compile kernels of large programs beside this one, 0 for "
    "none; by default one for each further CPU, eight at most.",
    "LAMINA_NUM_THREADS": "Threads of parallel kernels, which `lamina.set_num_threads` changes; by "
    "default the CPUs this process may use.",
    "LAMINA_TIMING": "1: times and statistics of all passes of each compilation.",
    "LAMINA_VERIFY": "1: verify each kernel after each of its pipelines, not only before LLVM.",
}
"""Environment variables that the compiler and the runtime read themselves."""
