"""Two hosts, made of network namespaces that a link joins: what goes between them takes TCP, and a lost link shows."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes.ranks import HERE, LAUNCHER, check_ranks

from lamina.partitioning import missing
from lamina.runtime import watch


class Hosts:
    """Two namespaces with an end of a link each."""

    def __init__(self) -> None:
        self.names = [f"lamina{os.getpid()}{end}" for end in "ab"]
        self.links = [f"v{os.getpid() % 10**8}{end}" for end in "ab"]

    def join(self) -> None:
        for name in self.names:
            _ip("netns", "add", name)
        ends = [(link, "netns", name) for link, name in zip(self.links, self.names, strict=True)]
        _ip("link", "add", *ends[0], "type", "veth", "peer", "name", *ends[1])
        for number, (link, _, name) in enumerate(ends, 1):
            _ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", link)
            _ip("-n", name, "link", "set", link, "up")
            _ip("-n", name, "link", "set", "lo", "up")
            # A millisecond each way, where the kernel has what delays.
            delay = ["tc", "-n", name, "qdisc", "add", "dev", link, "root", "netem", "delay", "1ms"]
            subprocess.run(delay, capture_output=True, check=False)
        while not all(map(self._is_up, range(2))):  # the kernel sees to that within a second
            time.sleep(0.05)

    def _is_up(self, end: int) -> bool:
        return "state UP" in _ip("-n", self.names[end], "link", "show", self.links[end])

    def part(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def bytes_between(self) -> int:
        """How many the first has sent to the second."""
        shown = json.loads(_ip("-n", self.names[0], "-s", "-j", "link", "show", self.links[0]))
        return shown[0]["stats64"]["tx"]["bytes"]

    def run(self, *arguments: str, devices: int = 1) -> subprocess.CompletedProcess[str]:
        """A process on each."""
        command: list[str] = [str(LAUNCHER)]
        for name, link in zip(self.names, self.links, strict=True):
            given = ["env", f"UCX_NET_DEVICES={link}", f"LINK={link}", "ip", "netns", "exec", name]
            command += [*[":"][: len(command) > 1], "-n", "1", *given, sys.executable, *arguments]
        # MPICH takes them for one host, whose processes share memory.
        apart = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_AF_PRIO": "inet", "UCX_LOG_LEVEL": "error"}
        environment = os.environ | apart | {"LAMINA_NUM_CPU_DEVICES": str(devices)}
        return subprocess.run(
            command, cwd=HERE, env=environment, timeout=600, capture_output=True, text=True, check=False
        )


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    if shutil.which("ip") is None or shutil.which("tc") is None:
        pytest.skip("needs iproute2")
    made = Hosts()
    try:
        try:
            made.join()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no namespaces can be made here: {error.stderr.strip()}")
        yield made
    finally:
        made.part()


@pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")
def test_they_compute_as_one(hosts: Hosts) -> None:
    before = hosts.bytes_between()
    done = hosts.run("begun.py", devices=2)
    assert done.returncode == 0, done.stderr
    assert done.stdout == check_ranks(0, "begun.py", devices=4)
    gradients = 3 * 4 * 192 * 192 * 4
    assert hosts.bytes_between() - before > gradients / 2


def test_a_link_that_is_cut_ends_both(hosts: Hosts, tmp_path: Path) -> None:
    done = hosts.run("failing.py", "cut", str(tmp_path))  # at its time-out of 4 s, and far before that of collectives
    assert done.returncode != 0
    assert "can't be reached any more" in done.stdout + done.stderr


def test_who_watches_listens_on_ipv6_too(monkeypatch, tmp_path) -> None:
    table = tmp_path / "if_inet6"
    table.write_text(
        "00000000000000000000000000000001 01 80 10 80       lo\n"
        "fe800000000000000000000000000001 02 40 20 80     eth0\n"
        "20010db8000000000000000000000007 02 40 00 80     eth0\n"
    )
    monkeypatch.setattr(watch, "_IPV6_ADDRESSES", table)
    found = watch._addresses()
    assert "2001:db8::7" in found
    assert not {"::1", "fe80::1"} & set(found)
    listener = watch._listener()
    assert listener is not None
    with listener:
        port = listener.getsockname()[1]
        for address in ("127.0.0.1", *["::1"][: socket.has_dualstack_ipv6()]):
            socket.create_connection((address, port), 5).close()
