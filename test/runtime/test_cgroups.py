"""What made-up cgroups, of both versions, leave a process of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.runtime import _runtime

_CPUS = len(os.sched_getaffinity(0))
_THREADS, _BYTES = _runtime.machine_limits("/nowhere", "/nowhere")


def _limits(folder: Path, membership: str, files: dict[str, str]) -> tuple[int, int]:
    (folder / "cgroup").write_text(membership)
    for name, text in files.items():
        file = folder / "fs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return _runtime.machine_limits(str(folder / "cgroup"), str(folder / "fs"))


def _threads(quota: float) -> int:
    """A part of a CPU is a thread; more than the CPUs there are, no quota pays for."""
    return min(_CPUS, max(1, -int(-quota // 1)))


def test_without_cgroups_there_is_the_whole_machine():
    assert _THREADS == _CPUS
    assert 1 << 28 < _BYTES < 1 << 50


@pytest.mark.parametrize(("text", "quota"), [
    ("max 100000", 1e9), ("100000 100000", 1), ("50000 100000", 0.5), ("100001 100000", 1.00001),
    ("1000 1000000", 0.001), ("30000 20000", 1.5), ("800000 100000", 8), ("100000", 1), ("max", 1e9),
    ("", 1e9), ("many 100000", 1e9), ("100000 0", 1e9), ("-1 100000", 1e9), ("100000 often", 1e9),
])  # fmt: skip
def test_quotas_of_version_2(tmp_path, text, quota):
    found, _ = _limits(tmp_path, "0::/app\n", {"app/cpu.max": text + "\n"})
    assert found == _threads(quota)


@pytest.mark.parametrize(("quota", "period", "cpus"), [
    ("-1", "100000", 1e9), ("100000", "100000", 1), ("25000", "50000", 0.5), ("110000", "100000", 1.1),
    ("100000", None, 1e9), (None, "100000", 1e9), ("", "", 1e9), ("100000", "0", 1e9),
])  # fmt: skip
def test_quotas_of_version_1(tmp_path, quota, period, cpus):
    files = {"cpu,cpuacct/docker/7f/cpu.cfs_quota_us": quota, "cpu,cpuacct/docker/7f/cpu.cfs_period_us": period}
    given = {name: text for name, text in files.items() if text is not None}
    membership = "12:pids:/docker/7f\n4:cpu,cpuacct:/docker/7f\n1:name=systemd:/docker/7f\n"
    assert _limits(tmp_path, membership, given)[0] == _threads(cpus)


def test_the_mount_may_have_one_of_the_names(tmp_path):
    files = {"cpu/a/cpu.cfs_quota_us": "40000", "cpu/a/cpu.cfs_period_us": "100000"}
    assert _limits(tmp_path, "4:cpuacct,cpu:/a\n", files)[0] == 1
    # Another controller's group has no quota for CPUs; a name that only begins alike is not it.
    assert _limits(tmp_path, "4:cpuset:/a\n", files)[0] == _CPUS


@pytest.mark.parametrize("level", ["", "slice/", "slice/service/", "slice/service/app/"])
def test_any_group_on_the_way_may_limit(tmp_path, level):
    """Those above hold for all below them, the root of a container, too."""
    wide = {f"{up}cpu.max": "max 100000" for up in ("slice/", "slice/service/", "slice/service/app/")}
    files = wide | {f"{level}cpu.max": "60000 100000", f"{level}memory.max": "300000000"}
    assert _limits(tmp_path, "0::/slice/service/app\n", files) == (1, 300_000_000)


def test_a_sibling_s_limit_is_not_ours(tmp_path):
    files = {"a/cpu.max": "10000 100000", "ab/cpu.max": "max 100000", "a/memory.max": "1000000"}
    assert _limits(tmp_path, "0::/ab\n", files) == (_THREADS, _BYTES)


def test_the_root_is_read_where_the_path_is_the_host_s(tmp_path):
    """In a container without a cgroup namespace the path is not there, but the root is its group."""
    assert _limits(tmp_path, "0::/docker/1f2e\n", {"cpu.max": "70000 100000"})[0] == 1
    assert _limits(tmp_path, "0::/../../other\n", {"cpu.max": "70000 100000"})[0] == 1


def test_both_versions_at_once(tmp_path):
    files = {"memory/app/memory.limit_in_bytes": "200000000", "cpu/app/cpu.cfs_quota_us": "-1",
             "cpu/app/cpu.cfs_period_us": "100000", "app/cpu.max": "100000 100000"}  # fmt: skip
    found = _limits(tmp_path, "5:cpu:/app\n3:memory:/app\n0::/app\n", files)
    assert found == (_threads(1), 200_000_000)


@pytest.mark.parametrize("text", ["max", "9223372036854771712", "", "lots", "0", str(1 << 62)])
def test_no_limit_of_memory(tmp_path, text):
    for name in ("app/memory.max", "memory/app/memory.limit_in_bytes"):
        assert _limits(tmp_path, "3:memory:/app\n0::/app\n", {name: text})[1] == _BYTES


@pytest.mark.parametrize("text", ["", "\n", "nonsense", "0:", "::", ":::\n0::"])
def test_memberships_that_say_nothing(tmp_path, text):
    assert _limits(tmp_path, text, {"app/cpu.max": "1 100000"}) == (_THREADS, _BYTES)


def test_the_kernel_s_own_tree_can_be_read():
    threads, size = _runtime.machine_limits()
    assert 1 <= threads <= _CPUS and 0 < size <= _BYTES


@pytest.mark.skipif(_CPUS < 2, reason="one CPU is all there is")
def test_a_set_of_cpus_goes_before_a_wider_quota(tmp_path):
    """cpusets and taskset are seen in the affinity."""
    (tmp_path / "cgroup").write_text("0::/app\n")
    (tmp_path / "fs" / "app").mkdir(parents=True)
    (tmp_path / "fs" / "app" / "cpu.max").write_text("6400000 100000\n")
    code = f"""
from lamina.runtime import _runtime
print(_runtime.machine_limits({str(tmp_path / "cgroup")!r}, {str(tmp_path / "fs")!r})[0],
      _runtime.get_num_threads())
"""
    cpu = str(max(os.sched_getaffinity(0)))
    done = subprocess.run(["taskset", "-c", cpu, sys.executable, "-c", code], capture_output=True,
                          text=True, timeout=600, check=True)  # fmt: skip
    assert done.stdout.split() == ["1", "1"]
