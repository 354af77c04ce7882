"""JAX's own tests on lamina by its names (`lamina.as_jax`), beside JAX: what users of JAX's interface see.

    .venv/bin/python test/jax_by_names.py ~/jax shard_map_test pjit_test [--json out/names.json]

Each file of `CHECKOUT/tests` runs on JAX's CPU backend and, without JAX, on lamina, both with as many virtual
devices (--devices, by default eight) and as many cases of each product of parameters (--cases). JAX's helpers
for tests (`jax._src.test_util` and its kin) are loaded from the checkout, so that cases, random values and
tolerances are the same; what these and the tests take from the rest of JAX's inside (`jax._src`) is here what
lamina has of that name, or missing: a test that comes to use something missing is left out, and counted so.
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import math
import os
import re
import signal
import sys
import types
import unittest
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

DEVICES = int(os.environ.get("LAMINA_NUM_CPU_DEVICES", 8))


def main() -> None:
    """Prints how many tests that pass on JAX's CPU backend pass here, and which do not."""
    import jax_check

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="a checkout of JAX's repository")
    parser.add_argument("tests", nargs="+", help="names of files in tests/, without .py")
    parser.add_argument(
        "--seconds", type=float, default=1800, help="the longest that a file may take"
    )
    parser.add_argument("--devices", type=int, default=8, help="virtual devices, on both")
    parser.add_argument("--cases", type=int, default=1, help="of each product of parameters")
    parser.add_argument("--json", type=Path, help="where to write all outcomes")
    given = parser.parse_args()
    os.environ["JAX_NUM_CPU_DEVICES"] = os.environ["LAMINA_NUM_CPU_DEVICES"] = str(given.devices)
    all_rows, counts = {}, [0, 0]
    for name in given.tests:
        on_cpu = jax_check.run(given.checkout, name, "cpu", given.cases, given.seconds)
        here = jax_check.run(
            given.checkout, name, "cpu", given.cases, given.seconds, "-p", "jax_by_names"
        )
        all_rows[name] = {"cpu": on_cpu, "lamina": here}
        passing = [test for test, (outcome, _) in on_cpu.items() if outcome == "passed"]
        late = here.get(jax_check.CRASHED)
        if late and len(here) > 1:  # what was not reached in time is not counted
            print("   ", jax_check.CRASHED, "|", *late)
            passing = [test for test in passing if test in here]
        run = [test for test in passing if not _is_left_out(*here.get(test, ("failed", "")))]
        missed = [test for test in run if here.get(test, ("failed",))[0] != "passed"]
        counts = [counts[0] + len(run), counts[1] + len(run) - len(missed)]
        left_out = len(passing) - len(run)
        print(
            f"{name:24} {len(run) - len(missed):5} of {len(run):5}, {left_out:5} left out",
            flush=True,
        )
        for test in missed:
            print("   ", test, "|", *here.get(test, ("did not run", "")))
    print(f"\n{counts[1]} of {counts[0]} pass here: {100 * counts[1] / max(counts[0], 1):.1f} %")
    if given.json:
        given.json.write_text(json.dumps(all_rows, indent=1))


def _is_left_out(outcome: str, why: str) -> bool:
    """Whether a test uses what is JAX's inside: modules that lamina has not, or private attributes."""
    private = re.search(
        r"^AttributeError: .* has no attribute '_[a-z]|'function' object has no attribute 'args'", why
    )
    return outcome == "skipped" or private is not None


# --- What is missing ------------------------------------------------------------------------------

_running = False
"""Whether a test runs; before, decorators and tables of cases are made."""


class Missing:
    """Something of JAX's inside that lamina has not. A test that uses it is left out."""

    def __init__(self, name: str, *class_of_it: Any) -> None:
        """By name; or what a class statement makes of one, which is missing, too."""
        self._name = name
        self.__name__ = self.__qualname__ = name.rpartition(".")[2]

    def _used(self, *args: Any, **kwargs: Any) -> Any:
        if _running:
            raise unittest.SkipTest(f"needs {self._name}")
        if len(args) == 1 and isinstance(args[0], types.FunctionType):  # it decorates a test
            return unittest.skip(f"needs {self._name}")(args[0])
        return self

    def __iter__(self) -> Iterator[Any]:
        self._used()
        return iter([self])

    __call__ = __enter__ = __exit__ = __getitem__ = __contains__ = __or__ = _used
    __hash__ = object.__hash__
    __setitem__ = __delitem__ = _used
    __eq__ = __ne__ = __add__ = __radd__ = _used  # type: ignore[assignment]
    __instancecheck__ = __lt__ = __le__ = __gt__ = __ge__ = _used

    def __bool__(self) -> bool:
        self._used()
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__mro__":
            raise AttributeError(name)
        self._used()
        return Missing(f"{self._name}.{name}")


# --- Helpers of the tests, as JAX's test_util has them ------------------------------------------------

_HELPERS = {"jax.experimental.sparse.test_util", *(f"jax._src.{name}" for name in (
    "test_util", "public_test_util", "test_warning_util", "test_loader", "internal_test_util.lax_test_util",
    "hypothesis_test_util"))}  # fmt: skip
"""Modules of JAX's that are made for tests, and are loaded from the checkout (the current folder)."""


def _adapt_test_util(module: types.ModuleType) -> None:
    """JAX's test_util for arrays of lamina: what it asks of XLA, of counters and of flags is answered here."""
    import lamina
    from lamina.sharding import AxisType, Mesh

    class JaxTestCase(module.JaxTestCase):  # type: ignore[name-defined]
        def setUp(self) -> None:
            global _running
            module.parameterized.TestCase.setUp(self)
            self._rng = module.npr.RandomState(zlib.adler32(self._testMethodName.encode()))
            self.enterContext(module.global_config_context(**self._default_global_config))
            for name, value in self._default_thread_local_config.items():
                self.enterContext(_STATES[name](value))
            _running = True

        def assertDeprecationWarnsOrRaises(
            self, what: str, message: str, *, error_class: type[Exception] = ValueError
        ) -> Any:
            return self.assertWarnsRegex(DeprecationWarning, message)

        def tearDown(self) -> None:
            global _running
            _running = False
            lamina.set_mesh(None)  # a test that was left out half-way has not
            module.parameterized.TestCase.tearDown(self)

    class BufferDonationTestCase(JaxTestCase):
        def assertDeleted(self, x: Any) -> None:
            self.assertTrue(x.is_deleted())

        def assertNotDeleted(self, x: Any) -> None:
            self.assertFalse(x.is_deleted())

    def create_mesh(
        sizes: Sequence[int], names: Any, iota_order: bool = False, axis_types: Any = None
    ) -> Mesh:
        size = math.prod(sizes)
        if size > DEVICES:
            raise unittest.SkipTest(f"Test requires {size} global devices and found {DEVICES}.")
        types = (AxisType.Auto,) * len(sizes) if axis_types is None else axis_types
        return Mesh(module.np.array(lamina.devices()[:size]).reshape(sizes), names, axis_types=types)

    def with_explicit_mesh(
        sizes: Sequence[int], names: Any, axis_types: Any = None, iota_order: bool = False
    ) -> Callable[..., Any]:
        types = (AxisType.Explicit,) * len(names) if axis_types is None else axis_types

        def decorator(f: Callable[..., Any]) -> Callable[..., Any]:
            def on_mesh(*args: Any, **kwargs: Any) -> Any:
                mesh = create_mesh(sizes, names, iota_order, axis_types=types)
                with lamina.set_mesh(mesh):
                    return f(*args, **kwargs, mesh=mesh)

            return on_mesh

        return decorator

    for name in [n for n in vars(module) if n.startswith(("count_", "collect_")) or n.endswith("_compilations")]:
        setattr(module, name, Missing(f"jax._src.test_util.{name}"))  # counters of JAX's inside
    module.__dict__.update({
        "JaxTestCase": JaxTestCase, "BufferDonationTestCase": BufferDonationTestCase,
        "create_mesh": create_mesh, "with_explicit_mesh": with_explicit_mesh,
        "device_under_test": lambda: "cpu", "_get_device_tags": lambda: {"cpu"},
        "is_device_rocm": lambda: False, "is_device_cuda": lambda: False, "is_device_oneapi": lambda: False,
        "is_device_tpu": lambda *a, **k: False, "is_device_tpu_at_least": lambda *a: False,
        "is_cloud_tpu": lambda: False, "is_libtpu_at_least": lambda *a: True, "is_optimized_build": lambda: True,
        "is_asan": lambda: False, "is_msan": lambda: False, "is_tsan": lambda: False,
        "is_sanitized": lambda: False, "request_cpu_devices": lambda n: None, "jaxlib_version": lambda: (0, 12, 0),
        "capture_stdout": _captured, "check_grads": lamina.test_util.check_grads,
        "check_jvp": lamina.test_util.check_jvp, "check_vjp": lamina.test_util.check_vjp,
    })  # fmt: skip


@contextlib.contextmanager
def _captured() -> Iterator[Callable[[], str]]:
    import io

    with contextlib.redirect_stdout(io.StringIO()) as out:
        yield out.getvalue


class _States:
    """Settings by JAX's names, to be set for a block; those that lamina has not set nothing."""

    def __getitem__(self, name: str) -> Callable[..., Any]:
        import lamina

        return getattr(lamina.config, name.removeprefix("jax_"), contextlib.nullcontext)


_STATES = _States()


def _config() -> dict[str, Any]:
    def flag(name: str, default: Any, *args: Any, **kwargs: Any) -> Any:
        text = os.environ.get(name.upper())
        value = type(default)(default if text is None else int(text) if text.isdecimal() else text)
        return types.SimpleNamespace(value=value, name=name)

    def boolean(variable: str, default: bool) -> bool:
        return os.environ.get(variable, str(default)).lower() in ("1", "true", "yes")

    def read(name: str) -> Any:
        import lamina

        try:
            return lamina.config.read(name.removeprefix("jax_"))
        except (AttributeError, KeyError, ValueError):
            return None

    modes = enum.IntEnum("ExplicitX64Mode", ("WARN", "ERROR", "ALLOW"))
    return {"ExplicitX64Mode": modes, "string_flag": flag, "int_flag": flag, "bool_flag": flag, "bool_env": boolean,
            "config_states": _STATES, "_read": read}  # fmt: skip


def _dtypes() -> dict[str, Any]:
    import ml_dtypes
    import numpy as np

    import lamina

    narrow = {n: getattr(ml_dtypes, n) for n in dir(ml_dtypes) if re.match(r"b?float|u?int\d", n)}
    integers = [np.dtype(narrow[n]) for n in ("int2", "uint2", "int4", "uint4")]
    given: dict[str, Any] = {n: getattr(lamina.numpy, n, t) for n, t in narrow.items()}
    scalars = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}

    def default(scalar: Any) -> Callable[[], Any]:
        return lambda: lamina.numpy.asarray(scalar).dtype

    def wide_enough(dtype: Any) -> Any:
        dtype = np.dtype(dtype)
        wide = {"bool", "int2", "int4", "int8", "int16", "int32", "uint2", "uint4", "uint8", "uint16", "uint32"}
        return default(0.0)() if dtype.name in {*wide, "int64", "uint64"} else dtype

    def complex_of(dtype: Any) -> Any:
        return np.dtype("complex128" if wide_enough(dtype).name in ("float64", "complex128") else "complex64")

    kinds = {"b": default(False), "i": default(0), "f": default(0.0), "c": default(0j)}
    sizes = (2, 4, 8, 16, 32, 64)
    types = [np.dtype(bool), *(np.dtype(narrow.get(f"{k}int{n}", f"{k}int{n}")) for k in ("u", "") for n in sizes)]
    types += [np.dtype(t) for n, t in narrow.items() if "float" in n]
    types += [np.dtype(n) for n in ("float16", "float32", "float64", "complex64", "complex128")]
    kinds["u"] = lambda: np.dtype(f"uint{8 * default(0)().itemsize}")
    return {**narrow, **given, "int1": None, "uint1": None, "_intn_dtypes": integers,
            "_jax_types": types, "_weak_types": [int, float, complex],
            "_float8_dtypes": [t for t in types if "float8" in t.name],
            "python_scalar_types_to_dtypes": {t: np.dtype(name) for t, name in scalars.items()},
            "default_types": kinds, "default_int_dtype": kinds["i"], "default_uint_dtype": kinds["u"],
            "default_float_dtype": kinds["f"], "default_complex_dtype": kinds["c"],
            "to_inexact_dtype": wide_enough, "to_complex_dtype": complex_of,
            "to_floating_dtype": lambda d: lamina.numpy.finfo(wide_enough(d)).dtype,
            "to_numeric_dtype": lambda d: np.dtype("int32" if np.dtype(d) == bool else d),
            "supports_inf": lambda d: np.dtype(d).name not in ("float8_e4m3b11fnuz", "float8_e4m3fn",
                "float8_e4m3fnuz", "float8_e5m2fnuz") and lamina.numpy.issubdtype(d, np.inexact)}  # fmt: skip


def _promotion() -> dict[str, Any]:
    import lamina
    import lamina.numpy as jnp

    def promote(*xs: Any) -> list[Any]:
        dtype = jnp.result_type(*xs)
        return [lamina.lax.convert_element_type(x, dtype) for x in xs]

    def inexact(*xs: Any) -> list[Any]:
        dtype = jnp.result_type(*xs)
        if not jnp.issubdtype(dtype, jnp.inexact):
            dtype = jnp.zeros(()).dtype
        return [lamina.lax.convert_element_type(x, dtype) for x in xs]

    return {"promote_dtypes": promote, "promote_dtypes_inexact": inexact}


# --- Modules of JAX's inside ---------------------------------------------------------------------


def _lists() -> dict[str, Any]:
    def curry(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *a, **k: functools.partial(f, *a, **k)

    def partition(choose: Sequence[bool], xs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        pairs = list(zip(choose, xs, strict=True))
        return [x for c, x in pairs if not c], [x for c, x in pairs if c]

    def merge(choose: Sequence[bool], no: Sequence[Any], yes: Sequence[Any]) -> list[Any]:
        sources = iter(no), iter(yes)
        return [next(sources[bool(c)]) for c in choose]

    def unzip2(pairs: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        both = list(pairs)
        return tuple(a for a, _ in both), tuple(b for _, b in both)

    def each(f: Callable[..., Any], *xs: Any) -> list[Any]:
        return [f(*row) for row in zip(*map(list, xs), strict=True)]

    def rows(*xs: Any) -> list[Any]:
        return list(zip(*map(list, xs), strict=True))

    def split(xs: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
        rest = list(xs)
        parts = []
        for size in sizes:
            parts.append(rest[:size])
            rest = rest[size:]
        return [*parts, rest]

    return {"curry": curry, "split_list": split, "partition_list": partition, "merge_lists": merge, "unzip2": unzip2,
            "safe_map": each, "safe_zip": rows}  # fmt: skip


_HOMES = ("lamina", "lamina.sharding", "lamina.core", "lamina.lax", "lamina.extend.core", "lamina.errors",
          "lamina.dtypes", "lamina.tree_util", "lamina.config", "lamina.experimental.pjit",
          "lamina.experimental.layout", "lamina.stages", "lamina.random", "lamina.ad_checkpoint")  # fmt: skip
_FIXED = {
    "jax._src.mesh.empty_concrete_mesh": "lamina.sharding.mesh:EMPTY",
    "jax._src.mesh.empty_abstract_mesh": "lamina.sharding.mesh:EMPTY.abstract_mesh",
    "jax._src.sharding_impls.UNSPECIFIED": None,  # what jit takes of a sharding that is not given
    "jax._src.config.use_shardy_partitioner": types.SimpleNamespace(value=True),
    "jax._src.config.parse_flags_with_absl": lambda: None,
    "jax._src.sharding.Sharding": "lamina.sharding:Sharding",
    "jax._src.named_sharding.DuplicateSpecError": ValueError,
    "jax._src.sharding.IndivisibleError": ValueError,
    "jax._src.core.Primitive": "lamina.extend.core:Primitive",
    "jax._src.lax.lax.remaining": lambda xs, *gone: [x for x in xs if all(x not in some for some in gone)],
    "jax._src.xla_bridge.devices": "lamina:devices",
    "jax._src.xla_bridge.local_devices": "lamina:local_devices",
    "jax._src.util.install_failure_signal_handler": lambda: None,
    "jax._src.dispatch.xla_primitive_callable": types.SimpleNamespace(
        cache_info=lambda: types.SimpleNamespace(misses=0), cache_clear=lambda: None
    ),
    "jax._src.random.prng.prngs": {
        name: Missing(f"jax._src.random.prng.prngs[{name!r}]") for name in ("threefry2x32", "rbg", "unsafe_rbg")
    },
    "jax._src.lax.control_flow.common": types.SimpleNamespace(
        _dedup_consts=types.SimpleNamespace(cache_clear=lambda: None),
        _pad_constvars=types.SimpleNamespace(cache_clear=lambda: None),
    ),
    "jax._src.lib.version": (0, 12, 0),
    "jax._src.lib.ifrt_version": 10**6,
    "jax._src.lib.jaxlib_extension_version": 10**6,
}
_PACKAGES = {"jax._src", *(f"jax._src.{name}" for name in ("interpreters", "internal_test_util", "lax", "lib",
             "random", "numpy"))}  # fmt: skip
_ABSENT = ("lamina.experimental.primal_tangent_dtype", "lamina.experimental.sparse.SparseTracer")
_ABSENT_MODULES = {f"jax.experimental.sparse.{name}" for name in ("util", "_lowerings", "transform")}
"""Names of JAX's that files import and lamina has not."""
_MEANT = ("array", "shard_map", "mesh", "sharding", "sharding_impls", "named_sharding", "partition_spec", "pjit",
          "core", "dtypes", "tree_util", "config", "layout", "api", "custom_derivatives", "ad_checkpoint", "stages",
          "lib", "literals", "lax", "prng")  # fmt: skip
"""Modules whose names are what lamina has of the same name."""


def _module(name: str, names: dict[str, Any] | None = None) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__path__ = []  # type: ignore[attr-defined]
    made.__dict__.update(names or {})

    def find(attribute: str) -> Any:
        if attribute == "__version__" and not name.startswith("jax._src"):
            return importlib.import_module("lamina.as_jax").jax.__version__
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        full = f"{name}.{attribute}"
        if name == "jax._src.lax" and attribute != "lax":  # the package has the public names, too
            public = getattr(importlib.import_module("lamina.lax"), attribute, None)
            if public is not None and not isinstance(public, types.ModuleType):
                return public
        if name in _PACKAGES and full not in _FIXED:
            raise AttributeError(attribute)  # a module, to be imported
        value = _found(full, name.rpartition(".")[2], attribute)
        setattr(made, attribute, value)
        return value

    made.__getattr__ = find  # type: ignore[method-assign]
    return made


def _array_class() -> Any:
    """The class of arrays, whose constructor in JAX's inside takes what the public function takes."""
    import lamina
    from lamina.array import ArrayImpl

    class OfArrays(type(lamina.Array)):  # type: ignore[misc]
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, ArrayImpl)

        def __call__(cls, aval: Any, sharding: Any, arrays: Any, committed: bool) -> Any:
            wrong = [x for x in arrays if x.dtype != aval.dtype]
            if wrong:  # there the function knows of another word: what it was told by dtype=
                raise unittest.SkipTest("needs the constructor of jax._src.array.ArrayImpl")
            return lamina.make_array_from_single_device_arrays(aval.shape, sharding, arrays)

    return OfArrays("ArrayImpl", (lamina.Array,), {})


def _found(full: str, module: str, attribute: str) -> Any:
    if full == "jax._src.array.ArrayImpl":
        return _array_class()
    if full in _FIXED:
        value = _FIXED[full]
        if not isinstance(value, str):
            return value
        home, _, there = value.partition(":")
        return functools.reduce(getattr, there.split("."), importlib.import_module(home))
    if module in ("ad", "batching", "mlir", "xla", "pxla"):
        home = getattr(importlib.import_module("lamina.interpreters"), module)
        value = getattr(home, attribute, None)
        if value is not None:
            return value
    if ".experimental.sparse." in full:
        return getattr(importlib.import_module("lamina.experimental.sparse"), attribute, Missing(full))
    if module == "checkify":
        return getattr(importlib.import_module("lamina.experimental.checkify"), attribute, Missing(full))
    if module in _MEANT:
        for home in _HOMES:
            value = getattr(importlib.import_module(home), attribute, None)
            if value is not None and not isinstance(value, types.ModuleType):
                return value
    return Missing(full)


class _Helper(importlib.machinery.SourceFileLoader):
    """A module of JAX's that is made for tests."""

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        if module.__name__ == "jax._src.test_util":
            _adapt_test_util(module)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """JAX's inside, and modules that lamina has not."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        there = re.sub("^lamina", "jax", fullname)  # `from jax.package import module` asks lamina's package
        if there in _HELPERS:
            path = str(Path(*there.split(".")).with_suffix(".py").resolve())
            return importlib.util.spec_from_file_location(
                fullname, path, loader=_Helper(fullname, path)
            )
        if fullname.startswith("jax._src") or (there != fullname and there in _ABSENT_MODULES):
            return importlib.util.spec_from_loader(fullname, self)
        if fullname.startswith(("jax.", "jaxlib")) and fullname != "jax.":
            if fullname.startswith("jax."):
                with contextlib.suppress(ImportError):
                    importlib.import_module("lamina" + fullname[3:])
                    return None
                parent, _, last = ("lamina" + fullname[3:]).rpartition(".")
                if isinstance(getattr(sys.modules.get(parent), last, None), types.ModuleType):
                    return None
            return importlib.util.spec_from_loader(fullname, self)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        made = {"util": _lists, "config": _config, "dtypes": _dtypes, "numpy.util": _promotion}
        names = made.get(spec.name.removeprefix("jax._src."))
        return _module(spec.name, names and names())

    def exec_module(self, module: types.ModuleType) -> None:
        pass


_LONGEST = 60
"""Seconds that a test may take here: those after it run, too."""


def _time_is_over(number: int, frame: Any) -> None:
    raise TimeoutError(f"takes longer than {_LONGEST} s")


def pytest_runtest_setup(item: Any) -> None:
    signal.signal(signal.SIGALRM, _time_is_over)
    signal.alarm(_LONGEST)


def pytest_runtest_teardown(item: Any) -> None:
    signal.alarm(0)


if __name__ == "__main__":
    main()
else:  # pytest's plugin, in the process that runs the tests on lamina
    import lamina.as_jax  # noqa: F401

    sys.meta_path.insert(0, _Finder())
    importlib.import_module("lamina.config").parse_flags_with_absl = lambda: None  # type: ignore[attr-defined]
    for _name in _ABSENT:
        _home, _, _last = _name.rpartition(".")
        setattr(importlib.import_module(_home), _last, Missing(_name))
