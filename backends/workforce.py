"""How many processes are worth starting to compile beside this one.

A worker takes processor time before it is of use, and on a processor that others need it takes from
them, this process among them. So one is started only where a processor is idle and enough is left to
do: the nth saves a share of 1 in n (n + 1) of what is left when it has started, and that must be
more than it takes to start.
"""

from __future__ import annotations

import os

from lamina.backends.machine.compile_times import WORKER_START

_MOST = 8  # memory: each holds a compiler


def worth_starting(seconds: float, processors: int, idle: float) -> int:
    """How many workers to have for so many seconds of compiling that are left, where the process may use
    so many processors, and so many of the machine's are idle while it compiles alone.

    `worth_starting(1.0, 2, 1.0)` is 1, `worth_starting(0.5, 2, 1.0)` and `worth_starting(9.0, 2, 0.2)` are 0.
    """
    most = min(_MOST, processors - 1, int(idle + 0.5))
    count = 0
    while count < most and seconds - WORKER_START >= WORKER_START * (count + 1) * (count + 2):
        count += 1
    return count


def idle_processors(own: int = 1, loads: str | None = None) -> float:
    """How many of the machine's processors nobody uses but `own` processes of ours; `loads` is what
    /proc/loadavg says.

    The load of the last minute is still high after others have ended, and what runs at this instant
    may be about to wait: the less of the two is believed.
    """
    if loads is None:
        try:
            with open("/proc/loadavg") as file:
                loads = file.read()
        except OSError:
            loads = ""
    fields = loads.split()
    if len(fields) < 4:
        return float(os.cpu_count() or 1)
    used = min(float(fields[0]), float(fields[3].partition("/")[0]))
    return (os.cpu_count() or 1) - max(used, own)
