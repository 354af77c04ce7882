"""The benchmark suite runs, and its reports say what was measured."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*args):
    env = {k: v for k, v in os.environ.items() if k != "LAMINA_CACHE_DIR"}
    command = [sys.executable, "-m", "benchmarks", *args]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600)


def test_a_part_of_the_suite(tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    done = run("--quick", "--only", "matmul 64", "jit(x", "--json", str(first))
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(first.read_text())
    assert [row["name"] for row in result["rows"]] == ["matmul 64", "jit(x + 1) of a scalar"]
    assert result["rows"][1]["most"] == 2e-6 and " of 2.00 us " in done.stdout
    row = result["rows"][0]
    assert row["ratio"] == row["jax"]["median"] / row["lamina"]["median"]
    assert row["lamina"]["low"] <= row["lamina"]["median"] <= row["lamina"]["high"]
    assert result["limits"]["copy"] > 1e8 and result["machine"]["cores"] >= 1
    done = run("--quick", "--alone", "--only", "matmul 64", "--compare", str(first),
               "--json", str(second))  # fmt: skip
    assert "matmul 64" in done.stdout.partition("against")[2]
    assert "jax" not in json.loads(second.read_text())["rows"][0]


def test_numerical_programs_are_compiled_and_checked_beside_jax(tmp_path):
    file = tmp_path / "a.json"
    done = run("--family", "numerical", "--quick", "--processor-time", "--only", "knapsack", "--json", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(file.read_text())["rows"]
    assert row["name"] == "knapsack" and row["ratio"] > 0 and "failed" not in row
    for library in ("lamina", "jax"):
        assert row["compile"][library]["processor"] > 0 and row["compile"][library]["first_call"] > 0
    assert "  compile " in done.stdout and "; first call: " in done.stdout


def test_rows_through_jax(tmp_path):
    file = tmp_path / "a.json"
    done = run("--through-jax", "--quick", "--only", "matmul 64", "--json", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(file.read_text())["through_jax"]
    assert row["run"] == row["through"]["median"] / row["lamina"]["median"]
    assert row["compile"] == row["through"]["processor"] / row["lamina"]["processor"]
    assert "compile: " in done.stdout.splitlines()[-1]


def test_rows_against_another_environment(tmp_path):
    file = tmp_path / "a.json"
    done = run("--against", sys.executable, "--quick", "--only", "matmul 64", "jit(x", "--json", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(file.read_text())["against"]
    assert row["same code"] and row["run"] == 1 and "the same code" in done.stdout
    assert row["compile"] == row["old"]["compile"] / row["new"]["compile"]
    assert f"old: {ROOT}" in done.stdout and "run: " in done.stdout.splitlines()[-1]


def test_an_environment_that_cannot_be_measured_is_said(tmp_path):
    done = run("--against", str(tmp_path / "python"), "--only", "matmul 64")
    assert done.returncode == 2 and f"--against {tmp_path / 'python'}: FileNotFoundError" in done.stderr


def test_unknown_rows_are_refused_with_those_near():
    done = run("--only", "matmul 64", "softmaxx", "no such row")
    assert done.returncode == 2 and not done.stdout
    assert "no row has 'softmaxx' in its name or group; near it: softmax 1024^2, last axis" in done.stderr
    assert "no row has 'no such row' in its name or group; groups: element-wise" in done.stderr
    assert "\n  transpose 2048^2" in done.stderr  # nothing is near: all of them


PEERS = """
import json, sys
import benchmarks.__main__ as suite
from benchmarks import peers
from benchmarks.suite import Workload, arrays
from benchmarks.workloads import ALL

def fails(m):
    if m.name == "jax":
        raise ValueError("no such thing\\nas this")
    return lambda x: x + 1

def broken(*inputs):
    raise OSError("no compiler here")

def own(wrong):
    return {"json": lambda x: lambda: x + 1 + wrong}  # a module that is there stands for a peer

def row(name, make, others={}):
    return Workload(name, "made up", make, lambda: arrays((64,)), 1.0, bytes=512.0, others=others)

plus = lambda m: lambda x: x + 1
ALL[:] = [
    row("fails in jax", fails), row("others", plus, own(0) | {"numbers": broken, "nobody": broken}),
    row("differs", plus, own(0.5)), row("ours fails", lambda m: 1 / 0),
]
sys.exit(suite.main(["--quick", "--json", sys.argv[1]]))
"""


def test_peers_that_fail_say_why(tmp_path):
    command = [sys.executable, "-c", PEERS, str(tmp_path / "a.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads((tmp_path / "a.json").read_text())
    rows = {row["name"]: row for row in found["rows"]}
    assert rows["fails in jax"]["failed"] == {"jax": "ValueError: no such thing"}
    assert "jax" not in rows["fails in jax"] and rows["fails in jax"]["lamina"]["median"] > 0
    assert rows["others"]["failed"] == {"numbers": "OSError: no compiler here"}
    assert rows["others"]["others"] == ["json"] and rows["others"]["json"]["median"] > 0
    assert "gives other values than lamina" in rows["differs"]["failed"]["json"]
    assert found["failures"] == [
        {"name": "ours fails", "group": "made up", "error": "ZeroDivisionError: division by zero"}
    ]
    assert found["peers"]["jax"]
    said = done.stdout.splitlines()
    at = next(i for i, line in enumerate(said) if line.startswith("fails in jax"))
    assert " failed " in said[at] and said[at + 1] == "    jax failed: ValueError: no such thing"
    assert "    numbers failed: OSError: no compiler here" in said
    assert "peers that failed: jax for fails in jax, numbers for others, json for differs" in done.stdout
    missing = [name for name, version in found["peers"].items() if version is None]
    assert not missing or f"; not installed: {', '.join(missing)}" in done.stdout


def test_files_are_looked_at_before_anything_is_measured(tmp_path):
    (tmp_path / "file").write_text("")
    new = tmp_path / "new" / "a.json"
    for option, name, why in (
        ("--json", tmp_path, "Is a directory"), ("--json", tmp_path / "file" / "a.json", "file is no directory"),
        ("--chart", tmp_path / "a.frog", "must end in one of"), ("--chart", "/proc/none/a.png", "can't write"),
    ):  # fmt: skip
        done = run("--only", "matmul 64", option, str(name))
        assert done.returncode == 2 and not done.stdout and why in done.stderr, done.stderr
    for seconds in ("0", "-1", "nan", "soon"):
        done = run("--seconds", seconds, "--only", "matmul 64")
        assert done.returncode == 2 and "no number of seconds above 0" in done.stderr
    assert run("--list", "--json", str(new)).returncode == 0
    assert new.parent.is_dir() and not new.exists()  # nothing is left of having looked


def test_rates_are_against_what_does_the_work(monkeypatch):
    """Every row of flops names a limit that is measured; int8 and bf16 their own."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import report
    from benchmarks.suite import Workload
    from benchmarks.workloads import ALL

    limits = {"copy": 40e9, "matmul": 300e9, "matmul bfloat16": 2e12, "matmul int8": 4e12}
    rows = [row for row in ALL if isinstance(row, Workload) and row.flops]
    for row in rows:
        assert row.limit in limits and not row.bytes, row.name
        narrow = any(word in row.name for word in ("int8", "bfloat16"))
        assert (row.limit != "matmul") == narrow, row.name

    def rate(**row):
        return report._rate({"lamina": {"median": 1e-3}, "limit": "matmul", **row}, limits).split()

    assert rate(flops=3e8) == ["300", "GFLOP/s", "100%"] and rate(bytes=2e7) == ["20", "GB/s", "50%"]
    assert rate(flops=1e9, limit="matmul int8") == ["1000", "GOP/s", "25%"] and rate() == []


def test_the_phases_of_a_compilation_are_timed(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.passes import measure
    from benchmarks.suite import lamina_library

    m = lamina_library()
    ops, times = measure(lambda x: m.np.sin(x) + 1, (m.np.arange(4.0),), m)
    assert ops > 0 and {"trace", "  stablehlo-cse", "kernels: lower to LLVM IR"} <= times.keys()


def test_an_older_result_is_read_before_anything_is_measured(tmp_path):
    (tmp_path / "other.json").write_text('{"memory": []}')
    for name, why in (("none.json", "No such file"), ("other.json", "not what --json writes")):
        done = run("--only", "matmul 64", "--compare", str(tmp_path / name))
        assert done.returncode == 2 and not done.stdout
        assert f"can't compare with {tmp_path / name}: {why}" in done.stderr


def test_temporary_memory_is_no_more_than_theirs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import memory
    from benchmarks.suite import jax_library, lamina_library
    from benchmarks.workloads import ALL

    names = ("random.uniform 1M", "softmax 1024^2, last axis", "cumsum 1M", "segment sum 1M")
    chosen = [row for row in ALL if row.name in names]
    rows = memory.measure_memory(chosen, lamina_library(), jax_library())
    assert len(rows) == len(names)
    assert all(row["lamina"] <= row["jax"] for row in rows), rows


def test_the_model_of_many_processes_counts_messages_and_bytes(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import scale

    text = """
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
    }) : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.all_gather"(%y) <{all_gather_dim = 0 : i64}> : (tensor<1x16x64xbf16>) -> tensor<4x16x64xbf16>"""
    assert scale.collectives_of(text) == [("all_reduce", 4, 0), ("all_gather", 2048, 0)]
    one_us, a_gb = scale.Messages(1e-6, math.inf), scale.Messages(0, 1e9)
    small, large = scale.Collective("all_reduce", 4), scale.Collective("all_reduce", 1 << 20)
    times = [round(small.seconds(ranks, one_us) * 1e6) for ranks in (1, 2, 4, 5, 4096)]
    assert times == [0, 1, 3, 3, 12]
    assert round(large.seconds(64, one_us) * 1e6) == 2 * 63
    assert math.isclose(large.seconds(64, a_gb), 2 * 63 / 64 * (1 << 20) / 1e9)
    assert scale.half_efficient(1e-3, [large], one_us) == 502  # 2 * 501 us


def test_the_model_of_many_processes_reads_the_overlap_from_the_plan(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import scale

    of, both = "tensor<1024xf32>", "(memref<1024xf32>, memref<1024xf32>) -> ()"
    twice = f"""    func.func private @twice(%a: {of}) -> {of} attributes {{lamina.kind = "loop"}} {{
      %r = stablehlo.add %a, %a : {of}
      return %r : {of}
    }}
"""
    sums = f"""    func.func private @sums(%a: {of}) -> {of} attributes {{lamina.kind = "library"}} {{
      %r = "stablehlo.all_reduce"(%a) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : ({of}) -> {of}
      return %r : {of}
    }}
"""
    planned = f"""module @jit_step {{
  func.func public @main(%a: memref<1024xf32>, %b: memref<1024xf32>) {{
    call @twice(%a, %b) : {both}
    call @sums(%a, %b) {{lamina.begun}} : {both}
    call @twice(%a, %b) : {both}
    call @twice(%a, %b) : {both}
    call @lamina_collective_end() : () -> ()
    call @sums(%a, %b) : {both}
    call @twice(%a, %b) : {both}
    return
  }}
  module @kernels {{
{twice}{sums}  }}
  func.func private @twice{both}
  func.func private @sums{both}
  func.func private @lamina_collective_end()
}}"""
    begun, waited_for = scale.planned_collectives(planned)
    assert begun == ("all_reduce", 4096, 0.5) and waited_for == ("all_reduce", 4096, 0.0)
    messages = scale.Messages(1e-3, math.inf)
    assert math.isclose(scale.step_seconds(1.0, [begun], 2, messages), 1.0)  # all of it is hidden
    assert math.isclose(scale.step_seconds(1.0, [begun], 2, messages, cores=2), 1.001)
    assert math.isclose(scale.step_seconds(1e-3, [begun, waited_for], 2, messages), 2.5e-3)
