"""Whether the other processes can still be reached.

MPI waits for ever for a process whose machine or link is gone. So each process keeps a connection with the
first one, on which nothing is said: the kernels ask each other whether they are still there (TCP's keepalive),
also while Python compiles or is busy. A connection that breaks names the process that is lost; the first one
tells the others. Where a connection can't be made, as through a firewall, that process is not watched.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from typing import Any

from lamina.runtime import processes

_CONNECT_SECONDS = 5.0
_MOST_BYTES = 256  # of a line

Lost = Callable[[int, str], None]
"""What is called, on a thread of the watch, with the process that is lost and how that showed."""


class Watch:
    """The connections of this process, and the thread that waits for one to break.

    rank, size  of this process, and how many there are.
    peers       process -> connection: all that could be made of the first process, that with it of others.
    """

    def __init__(self, rank: int, size: int, peers: dict[int, socket.socket], lost: Lost) -> None:
        self.rank, self.size, self.peers, self._lost, self._over = rank, size, peers, lost, False
        self._thread = threading.Thread(target=self._wait, name="watch of processes", daemon=True)
        os.register_at_fork(after_in_child=self._close)
        self._thread.start()

    def end(self) -> None:
        """Tells the others that this process is to go, which is no loss."""
        self._over = True
        for connection in self.peers.values():
            with suppress(OSError):
                connection.sendall(b"bye\n")
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=1)
        self._close()

    def _close(self) -> None:
        self._over = True
        for connection in self.peers.values():
            connection.close()

    def _wait(self) -> None:
        processes_of = {each.fileno(): process for process, each in self.peers.items()}
        poll = select.poll()
        for number in processes_of:
            poll.register(number, select.POLLIN)
        while processes_of and not self._over:
            for number, _ in poll.poll():
                process = processes_of[number]
                said, how = _heard(self.peers[process])
                if self._over:
                    return
                if said.startswith("lost "):
                    _, process_of, how = said.split(" ", 2)
                    self._lost(int(process_of), how)
                elif not said:
                    self._tell(process, how)
                    self._lost(process, how)
                poll.unregister(number)
                del processes_of[number]

    def _tell(self, lost: int, how: str) -> None:
        for process, connection in self.peers.items():
            if process != lost:
                with suppress(OSError):
                    connection.sendall(f"lost {lost} {how}\n".encode())


def _heard(connection: socket.socket) -> tuple[str, str]:
    """A line that the other process says, or nothing and why there will be none."""
    try:
        line = connection.recv(_MOST_BYTES).decode()
    except OSError as error:
        return "", error.strerror or type(error).__name__
    return line.strip(), "" if line else "it closed its connection"


def watch(rank: int, size: int, seconds: int, lost: Lost) -> Watch | None:
    """Watches the processes, which all call it; those are lost that say nothing for so many seconds: what the
    first process gives holds for all. None where nobody is watched: 0 seconds, or no connection."""
    listener = _listener() if rank == 0 and seconds > 0 else None
    offer: dict[str, Any] = {}
    if listener is not None:
        offer = {"addresses": _addresses(), "port": listener.getsockname()[1], "host": socket.gethostname(),
                 "token": secrets.token_hex(16), "seconds": seconds}  # fmt: skip
    offers = processes.exchange("distributed.initialize", [json.dumps(offer).encode()] * size)
    offer = json.loads(offers[0])
    if not offer:
        return None
    mine = None if rank == 0 else _connect(offer, rank)
    made = processes.exchange("distributed.initialize", [b"" if mine is None else b"1"] * size)
    if listener is not None:
        with listener:
            peers = _accepted(listener, offer["token"], sum(map(bool, made)))
    else:
        peers = {} if mine is None else {0: mine}
    for connection in peers.values():
        keep_alive(connection, offer["seconds"])
    return Watch(rank, size, peers, lost) if peers else None


def keep_alive(connection: socket.socket, seconds: int) -> None:
    """Lets the kernel end a connection whose other side has not answered for about so many seconds."""
    often = max(1, seconds // 4)
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, often)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, often)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, max(1, seconds // often - 1))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, seconds * 1000)


def _listener() -> socket.socket | None:
    """What takes connections over IPv6 and IPv4, as far as there is each."""
    if socket.has_dualstack_ipv6():
        with suppress(OSError):  # IPv6 is turned off
            return socket.create_server(("", 0), family=socket.AF_INET6, backlog=4096, dualstack_ipv6=True)
    try:
        return socket.create_server(("", 0), backlog=4096)
    except OSError:
        return None


def _connect(offer: dict[str, Any], rank: int) -> socket.socket | None:
    addresses = offer["addresses"]
    if offer["host"] == socket.gethostname():
        addresses = ["127.0.0.1", *addresses]
    for address in addresses:
        try:
            connection = socket.create_connection((address, offer["port"]), _CONNECT_SECONDS)
            connection.sendall(f"{offer['token']} {rank}\n".encode())
        except OSError:
            continue
        return connection
    return None


def _accepted(listener: socket.socket, token: str, count: int) -> dict[int, socket.socket]:
    """The connections that so many processes have made; others know no token."""
    listener.settimeout(_CONNECT_SECONDS)
    peers: dict[int, socket.socket] = {}
    while len(peers) < count:
        try:
            connection, _ = listener.accept()
            connection.settimeout(_CONNECT_SECONDS)
            line = connection.makefile("rb").readline(_MOST_BYTES).decode(errors="replace").split()
        except OSError:
            break
        if len(line) == 2 and compare_digest(line[0].encode(), token.encode()) and line[1].isdigit():
            peers[int(line[1])] = connection
        else:
            connection.close()
    return peers


_SIOCGIFADDR = 0x8915
_IPV6_ADDRESSES = Path("/proc/net/if_inet6")
_IPV6_EVERYWHERE = 0  # a scope: addresses that hold on every link


def _addresses() -> list[str]:
    """This machine's, but for the loopback's and those that hold on one link."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # one without an address
                answer = fcntl.ioctl(any_socket, _SIOCGIFADDR, struct.pack("256s", name[:15].encode()))
                found.append(socket.inet_ntoa(answer[20:24]))
    found = [address for address in found if not address.startswith("127.")]
    with suppress(OSError):  # there is no IPv6
        for line in _IPV6_ADDRESSES.read_text().splitlines():
            digits, _, _, scope, _, _ = line.split()
            if int(scope, 16) == _IPV6_EVERYWHERE:
                found.append(socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits)))
    return found
