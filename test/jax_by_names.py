"""JAX's own tests on lamina by its names (`lamina.as_jax`), beside JAX: what users of JAX's interface see.

    .venv/bin/python test/jax_by_names.py ~/jax shard_map_test pjit_test [--json out/names.json]

Each file of `CHECKOUT/tests` runs on JAX's CPU backend and, without JAX, on lamina, both with eight virtual
devices. What the tests take from JAX's inside (`jax._src`) is here what lamina has of that name, a helper of
JAX's test_util below, or missing: a test that comes to use something missing is left out, and counted so.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import importlib.abc
import importlib.util
import json
import math
import os
import re
import signal
import sys
import types
import unittest
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

DEVICES = 8


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
    parser.add_argument("--json", type=Path, help="where to write all outcomes")
    given = parser.parse_args()
    os.environ["JAX_NUM_CPU_DEVICES"] = os.environ["LAMINA_NUM_CPU_DEVICES"] = str(DEVICES)
    all_rows, counts = {}, [0, 0]
    for name in given.tests:
        on_cpu = jax_check.run(given.checkout, name, "cpu", 1, given.seconds)
        here = jax_check.run(given.checkout, name, "cpu", 1, given.seconds, "-p", "jax_by_names")
        all_rows[name] = {"cpu": on_cpu, "lamina": here}
        passing = [test for test, (outcome, _) in on_cpu.items() if outcome == "passed"]
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
    private = re.search(r"^AttributeError: .* has no attribute '_[a-z]", why)
    return outcome == "skipped" or private is not None


# --- What is missing ------------------------------------------------------------------------------

_running = False
"""Whether a test runs; before, decorators and tables of cases are made."""


class Missing:
    """Something of JAX's inside that lamina has not. A test that uses it is left out."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.__name__ = name.rpartition(".")[2]

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
    __instancecheck__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __len__ = _used

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._used()
        return Missing(f"{self._name}.{name}")


# --- Helpers of the tests, as JAX's test_util has them ------------------------------------------------

_TOLERANCES = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "complex64": 1e-6,
               "float64": 1e-15, "complex128": 1e-15}  # fmt: skip


def _test_util() -> types.ModuleType:
    import numpy as np
    from absl.testing import absltest, parameterized

    import lamina
    from lamina.sharding import AxisType, Mesh

    def tolerance(x: Any, given: Any) -> float:
        name = getattr(x, "dtype", np.asarray(x).dtype).name
        if isinstance(given, dict):
            given = {np.dtype(k).name: v for k, v in given.items()}.get(name)
        return _TOLERANCES.get(name, 0.0) if given is None else given

    class JaxTestCase(parameterized.TestCase):
        def setUp(self) -> None:
            global _running
            super().setUp()
            _running = True
            self._rng = np.random.RandomState(zlib.adler32(self._testMethodName.encode()))
            self.enterContext(lamina.numpy_dtype_promotion("strict"))
            self.enterContext(lamina.numpy_rank_promotion("raise"))

        def tearDown(self) -> None:
            global _running
            _running = False
            super().tearDown()

        def rng(self) -> Any:
            return self._rng

        def assertDtypesMatch(self, a: Any, b: Any, *, canonicalize_dtypes: bool = True) -> None:
            first, second = (getattr(x, "dtype", np.asarray(x).dtype) for x in (a, b))
            if canonicalize_dtypes:
                first, second = (lamina.dtypes.canonicalize_dtype(d) for d in (first, second))
            self.assertEqual(first, second)

        def assertArraysEqual(
            self, a: Any, b: Any, *, check_dtypes: bool = True, err_msg: str = "", **_: Any
        ) -> None:
            if check_dtypes:
                self.assertDtypesMatch(a, b)
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=err_msg)

        def assertAllClose(
            self,
            a: Any,
            b: Any,
            *,
            check_dtypes: bool = True,
            atol: Any = None,
            rtol: Any = None,
            canonicalize_dtypes: bool = True,
            err_msg: str = "",
        ) -> None:
            options = {"check_dtypes": check_dtypes, "atol": atol, "rtol": rtol, "err_msg": err_msg}
            if isinstance(a, dict):
                self.assertEqual(a.keys(), b.keys())
                for key in a:
                    self.assertAllClose(a[key], b[key], **options)
            elif isinstance(a, list | tuple):
                self.assertEqual(len(a), len(b))
                for x, y in zip(a, b, strict=True):
                    self.assertAllClose(x, y, **options)
            else:
                if check_dtypes:
                    self.assertDtypesMatch(a, b, canonicalize_dtypes=canonicalize_dtypes)
                atol, rtol = (max(tolerance(a, t), tolerance(b, t)) for t in (atol, rtol))
                wide = [np.asarray(x) for x in (a, b)]
                wide = [x.astype(np.float32) if x.dtype.kind == "V" else x for x in wide]
                np.testing.assert_allclose(*wide, atol=atol, rtol=rtol, err_msg=err_msg)

        assertArraysAllClose = assertAllClose

        def assertDeprecationWarnsOrRaises(
            self, what: str, message: str, *, error_class: type[Exception] = ValueError
        ) -> Any:
            return self.assertWarnsRegex(DeprecationWarning, message)

        @contextlib.contextmanager
        def assertNoWarnings(self) -> Iterator[None]:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                yield

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
        return Mesh(np.array(lamina.devices()[:size]).reshape(sizes), names, axis_types=types)

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

    @contextlib.contextmanager
    def with_mesh(named_shape: Sequence[tuple[str, int]]) -> Iterator[None]:
        names, sizes = zip(*named_shape) if named_shape else ((), ())
        size = math.prod(sizes)
        with Mesh(np.array(lamina.local_devices()[:size]).reshape(sizes), names):
            yield

    def only_on(*devices: str, **_: Any) -> Callable[..., Any]:
        return _identity if "cpu" in devices else unittest.skip(f"for {devices}")

    def not_on(*devices: str, **_: Any) -> Callable[..., Any]:
        return _identity if "cpu" not in devices else unittest.skip(f"not for {devices}")

    def drawn(rng: Any, scale: float = 3) -> Callable[..., Any]:
        def draw(shape: Any, dtype: Any) -> Any:
            values = np.asarray(scale * rng.randn(*shape))
            if np.dtype(dtype).kind == "c":
                values = values + 1j * scale * rng.randn(*shape)
            return values > 0 if np.dtype(dtype).kind == "b" else values.astype(dtype)

        return draw

    def sample_product(*rows: Any, **choices: Any) -> Callable[..., Any]:
        """One case of the product, which for this many cases is what JAX takes."""
        row = {k: v for each in rows for k, v in list(each)[0].items()}
        row |= {k: list(v)[0] for k, v in choices.items()}
        return parameterized.parameters(row)

    @contextlib.contextmanager
    def ignore_warning(*, message: str = "", category: Any = Warning, **_: Any) -> Iterator[None]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message, category)
            yield

    class Dtypes:
        floating, integer, unsigned = [np.float32], [np.int32], [np.uint32]
        all_floating = [lamina.numpy.bfloat16, np.float16, np.float32]
        all_integer = [np.int8, np.int16, np.int32]
        all_unsigned = [np.uint8, np.uint16, np.uint32]
        complex = [np.complex64]
        boolean = [np.bool_]
        custom_floats = [lamina.numpy.bfloat16]
        inexact, all_inexact = floating + complex, all_floating + complex
        numeric = floating + integer + unsigned + complex
        all = [*all_floating, *all_integer, *all_unsigned, *complex, *boolean]

    def shape_text(shape: Any, dtype: Any) -> str:
        return f"{np.dtype(dtype).name}[{','.join(map(str, shape))}]"

    names = {
        "JaxTestCase": JaxTestCase, "BufferDonationTestCase": BufferDonationTestCase,
        "JaxTestLoader": absltest.TestLoader, "create_mesh": create_mesh,
        "with_explicit_mesh": with_explicit_mesh, "with_mesh": with_mesh,
        "with_mesh_from_kwargs": lambda f: lambda *a, **k: with_mesh(k["mesh"])(f)(*a, **k),
        "run_on_devices": only_on, "skip_on_devices": not_on, "ignore_warning": ignore_warning,
        "check_grads": lamina.test_util.check_grads, "rand_default": drawn,
        "rand_small": lambda rng: drawn(rng, 1e-3), "dtypes": Dtypes, "sample_product": sample_product,
        "thread_unsafe_test": lambda *a, **k: _identity, "thread_unsafe_test_class": lambda *a, **k: _identity,
        "pytest_mark_if_available": lambda mark: _identity, "request_cpu_devices": lambda n: None,
        "test_device_matches": lambda tags: "cpu" in tags, "device_under_test": lambda: "cpu",
        "is_device_tpu": lambda *a, **k: False, "is_cloud_tpu": lambda: False,
        "is_libtpu_at_least": lambda *a: True, "numpy_version": lambda: tuple(map(int, np.__version__.split(".")[:3])),
        "format_shape_dtype_string": shape_text, "with_config": lambda **k: _identity,
        "skip_on_flag": lambda *a: _identity, "NUM_GENERATED_CASES": types.SimpleNamespace(value=1),
        "capture_stdout": _captured, "named_cases_from_sampler": _first_case,
    }  # fmt: skip
    return _module("jax._src.test_util", names)


def _first_case(cases: Callable[..., Any]) -> list[Any]:
    return [next(iter(cases(lambda choices: [next(iter(choices))])))]


def _identity(x: Any) -> Any:
    return x


@contextlib.contextmanager
def _captured() -> Iterator[Callable[[], str]]:
    import io

    with contextlib.redirect_stdout(io.StringIO()) as out:
        yield out.getvalue


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

    return {"curry": curry, "partition_list": partition, "merge_lists": merge, "unzip2": unzip2,
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
    "jax._src.lib.ifrt_version": 10**6,
    "jax._src.lib.jaxlib_extension_version": 10**6,
}
_PACKAGES = {"jax._src", *(f"jax._src.{name}" for name in ("interpreters", "internal_test_util", "lax", "lib",
             "random"))}  # fmt: skip
_ABSENT = ("lamina.experimental.primal_tangent_dtype",)
"""Names of JAX's that files import and lamina has not."""
_MEANT = ("array", "shard_map", "mesh", "sharding", "sharding_impls", "named_sharding", "partition_spec", "pjit",
          "core", "dtypes", "tree_util", "config", "layout", "api", "custom_derivatives", "ad_checkpoint", "stages",
          "lib", "literals")  # fmt: skip
"""Modules whose names are what lamina has of the same name."""


def _module(name: str, names: dict[str, Any] | None = None) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__path__ = []  # type: ignore[attr-defined]
    made.__dict__.update(names or {})

    def find(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        full = f"{name}.{attribute}"
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
    if module in _MEANT:
        for home in _HOMES:
            value = getattr(importlib.import_module(home), attribute, None)
            if value is not None and not isinstance(value, types.ModuleType):
                return value
    return Missing(full)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """JAX's inside, and modules that lamina has not."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname.startswith("jax._src"):
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
        if spec.name == "jax._src.test_util":
            return _test_util()
        return _module(spec.name, _lists() if spec.name == "jax._src.util" else None)

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
