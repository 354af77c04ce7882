"""Which machine a compilation goes by, and that results do not depend on it."""

import json
import os
import subprocess
import sys

import pytest

from lamina.backends.machine import choice
from lamina.backends.machine.facts import read_facts
from lamina.backends.target import Target
from lamina.dialects.context import make_context, parse
from lamina.dialects.vendors import ir
from lamina.passes.framework.machine import REFERENCE, SIZES, Machine
from lamina.passes.framework.machine_attribute import machine_of, write_machine


def _write_cache(folder, number, level, kind, size):
    cache = folder / f"index{number}"
    cache.mkdir()
    for name, text in (("level", level), ("type", kind), ("size", size)):
        (cache / name).write_text(f"{text}\n")


def test_caches_are_read_from_linux(tmp_path):
    _write_cache(tmp_path, 0, 1, "Data", "48K")
    _write_cache(tmp_path, 1, 1, "Instruction", "32K")
    _write_cache(tmp_path, 2, 2, "Unified", "2048K")
    _write_cache(tmp_path, 3, 3, "Unified", "105M")
    found = {"l1_bytes": 48 << 10, "l2_bytes": 2 << 20, "l3_bytes": 105 << 20}
    assert read_facts(tmp_path) == found


@pytest.mark.parametrize("size", ["", "K", "many", "12X", "0K"])
def test_what_is_not_said_is_left_out(tmp_path, size):
    _write_cache(tmp_path, 0, 1, "Data", size)
    _write_cache(tmp_path, 1, 2, "Unified", "512K")
    assert read_facts(tmp_path) == {"l2_bytes": 512 << 10}
    assert read_facts(tmp_path / "nowhere") == {}


@pytest.mark.parametrize("name", choice.known_machines())
def test_each_description_is_a_machine(name):
    machine = choice.named(name)
    assert 0 < machine.l1_bytes < machine.l2_bytes < machine.l3_bytes
    for element in ("f32", "f64"):
        for by in ("code", "shared", "library"):
            rates = getattr(machine, f"{element}_{by}")
            assert len(rates) == len(SIZES) and min(rates) > 0
            assert machine.rate(element, by, SIZES[0]) == rates[0]
            assert machine.rate(element, by, 10 * SIZES[-1]) == rates[-1]
            assert min(rates[:2]) <= machine.rate(element, by, 1.5 * SIZES[0]) <= max(rates[:2])


@pytest.mark.parametrize(
    ("cpu", "features", "nearest"),
    [
        ("znver3", ["avx2", "fma"], "znver3"),
        ("haswell", ["avx2", "fma"], "znver3"),
        ("znver4", ["avx2", "fma", "avx512f", "avx512vnni", "avx512bf16"], "znver4"),
        ("znver6", ["avx2", "fma", "avx512f", "avx512vnni", "avx512bf16"], "znver5"),
        ("emeraldrapids", ["avx2", "fma", "avx512f", "avx512vnni", "amx-int8", "amx-bf16"], "sapphirerapids"),
        ("pentium4", [], "znver3"),
    ],
)  # fmt: skip
def test_an_unknown_processor_is_taken_for_the_one_most_like_it(cpu, features, nearest):
    assert choice.nearest(cpu, features) == nearest


def test_a_named_machine_can_be_changed():
    machine = choice.named("znver5,l2_bytes=65536,task_ns=7")
    assert (machine.l2_bytes, machine.task_ns, machine.l1_bytes) == (65536, 7, 49152)
    assert choice.named("reference") == REFERENCE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cray", "no machine is called 'cray'; known are reference, "),
        ("znver5,l9_bytes=1", "a machine has no l9_bytes; it has l1_bytes, "),
        ("znver5,l2_bytes", "'l2_bytes' changes no machine"),
        ("znver5,l2_bytes=-1", "'l2_bytes=-1' changes no machine"),
        ("znver5,task_ns=0", "task_ns of a machine is a number above 0, got 0"),
        ("znver5,f32_code=1", "f32_code of a machine is numbers above 0 for the sizes"),
    ],
)
def test_what_names_no_machine_is_an_error(text, message, monkeypatch):
    with pytest.raises(ValueError, match="^" + message):
        choice.named(text)
    monkeypatch.setenv(choice.VARIABLE, text)
    with pytest.raises(ValueError, match=f"^environment variable LAMINA_MACHINE: {message}"):
        choice.machine_here("znver5", [])


def test_kept_rates_are_gone_by_and_others_are_not(tmp_path, monkeypatch):
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(tmp_path))
    rates = {"f32_code": [1] * len(SIZES)}
    before = choice.machine_here("znver3", ["avx2"])
    assert choice.keep_rates("znver3", rates)
    assert choice.machine_here("znver3", ["avx2"]).f32_code == (1,) * len(SIZES) != before.f32_code
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")  # another library, as far as rates go
    assert choice.machine_here("znver3", ["avx2"]) == before
    for stale in ({"f32_codes": [1]}, {"f32_code": [1]}, {"f32_code": "fast"}, [1, 2]):
        monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
        choice.keep_rates("znver3", stale)
        assert choice.machine_here("znver3", ["avx2"]) == before


def test_without_a_store_nothing_is_kept(monkeypatch):
    monkeypatch.setenv("LAMINA_CACHE", "0")
    assert not choice.keep_rates("znver3", {"f32_code": [1] * len(SIZES)})
    assert choice.measured_rates("znver3") == {}


def test_a_module_says_what_machine_it_is_for():
    with make_context(), ir.Location.unknown():
        module = parse("func.func @f() { return }")
        assert machine_of(module) == REFERENCE
        machine = Machine(l2_bytes=123456, f64_code=(1, 2, 3, 4, 5))
        write_machine(module, machine)
        assert machine_of(module.body.operations[0]) == machine
        again = parse(str(module).replace(machine.key, "by hand"))
        assert machine_of(again) == machine
        with pytest.raises(ValueError, match="a machine has no l9"):
            machine_of(parse("module attributes {lamina.machine = {l9 = 1 : i64}} {}"))


def test_a_target_goes_to_other_processes_with_its_machine():
    target = Target.host()
    assert Target.described(json.loads(json.dumps(target.describe()))) == target
    assert Target.parse("cpu:x86-64-v4").machine == choice.named("znver5")


PROGRAM = """
import hashlib, numpy as np, lamina, lamina.numpy as jnp
rng = np.random.default_rng(0)
x = rng.standard_normal((1500, 700)).astype(np.float32)
y = rng.standard_normal((700, 65)).astype(np.float32)
def f(x, y):
    e = jnp.exp(x - x.max(0)) / jnp.exp(x - x.max(0)).sum(0)
    return e.T, jnp.tanh(x).sum(), x.sum(0), (x * x).sum(1), jnp.cumsum(x, 1), lamina.nn.softmax(x, 1), x[:, :7].mean(1)
results = lamina.jit(f)(x, y)
print([hashlib.sha1(np.ascontiguousarray(r)).hexdigest() for r in results])
"""


def test_the_machine_changes_no_bits(tmp_path):
    def run(machine):
        environment = {**os.environ, "LAMINA_MACHINE": machine, "LAMINA_CACHE": "0"}
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=600
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    found = {run(machine) for machine in ("small-caches", "sapphirerapids", "reference,task_ns=500,parallel_ns=500")}
    assert len(found) == 1, found
