"""The benchmark suite runs, and its reports say what was measured."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*args):
    env = {k: v for k, v in os.environ.items() if k != "LAMINA_CACHE_DIR"}
    command = [sys.executable, "-m", "benchmarks", *args]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)


def test_a_part_of_the_suite(tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    done = run("--quick", "--only", "matmul 64", "jit(x", "--json", str(first))
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(first.read_text())
    assert [row["name"] for row in result["rows"]] == ["matmul 64", "jit(x + 1) of a scalar"]
    row = result["rows"][0]
    assert row["ratio"] == row["jax"]["median"] / row["lamina"]["median"]
    assert row["lamina"]["low"] <= row["lamina"]["median"] <= row["lamina"]["high"]
    assert result["limits"]["copy"] > 1e8 and result["machine"]["cores"] >= 1
    done = run("--quick", "--alone", "--only", "matmul 64", "--compare", str(first),
               "--json", str(second))  # fmt: skip
    assert "matmul 64" in done.stdout.partition("against")[2]
    assert "jax" not in json.loads(second.read_text())["rows"][0]


def test_unknown_rows_are_listed():
    done = run("--only", "no such row")
    assert done.returncode == 2 and "softmax 1024^2" in done.stdout


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
