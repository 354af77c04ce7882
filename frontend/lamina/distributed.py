"""Several processes that work together: started by MPI's launcher, each with its devices."""

from __future__ import annotations

import atexit
import os
import stat
import sys
import threading
import time
from array import array
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from lamina import config, runtime
from lamina.core.library import library
from lamina.log_lines import write
from lamina.runtime import processes

if TYPE_CHECKING:
    from lamina.runtime.mpi import Mpi
    from lamina.runtime.watch import Watch

__all__ = ["initialize", "is_initialized", "shutdown"]

_initialized = False
_mpi: Mpi | None = None
_watch: Watch | None = None


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    **options: Any,
) -> None:
    """Joins the processes that MPI's launcher started with this one.

    coordinator_address     without effect: the launcher knows where the processes are.
    num_processes           how many there are, None for what the launcher says.
    process_id              the number of this one, None for the rank that MPI gives it.
    local_device_ids        the GPUs of the machine that are this process's, by the driver's numbers; None: its share.
    cluster_detection_method  without effect, as are other options.
    initialization_timeout  seconds to wait for the others, after which this process ends.
    heartbeat_timeout_seconds  when another process's machine can't be reached for so many seconds, all
                            end and say which; 0: they wait for it. What process 0 says holds for all.

    Call it before anything that asks for devices, in every process, as in
    `mpiexec -n 4 python train.py`. A process that no launcher started is alone: no MPI is loaded.
    From then on `devices()` are those of all processes, and `local_devices()` this one's: as many as
    the setting num_cpu_devices says. An exception that nobody catches ends all processes.

    Raises RuntimeError where it was called before, where MPI is missing or other processes do not come,
    and where num_processes or process_id are not what the launcher says.

    >>> lamina.distributed.initialize(num_processes=1, process_id=0)
    >>> lamina.distributed.shutdown()
    """
    global _initialized
    if _initialized:
        raise RuntimeError("distributed.initialize should only be called once.")
    from lamina.runtime.mpi import HOW_TO_INSTALL, launched_processes

    launched = launched_processes()
    if launched in (None, 1):
        if num_processes not in (None, 1) or process_id not in (None, 0):
            raise RuntimeError(
                f"[distributed] num_processes={num_processes}, process_id={process_id}, and no launcher of MPI "
                f"started this process: start all of them at once, by `mpiexec -n {num_processes or 'N'} python "
                f"{os.path.basename(sys.argv[0]) or 'program.py'}` or srun. Where there is no mpiexec, "
                f"{HOW_TO_INSTALL}. Without processes, {library.variable('num_cpu_devices')} gives one several "
                "devices."
            )
    else:
        own = (local_device_ids,) if isinstance(local_device_ids, int) else local_device_ids
        _join(launched or 0, num_processes, process_id, float(initialization_timeout), own)
        _watch_others(heartbeat_timeout_seconds)
    _initialized = True


def _join(
    launched: int,
    num_processes: int | None,
    process_id: int | None,
    seconds: float,
    own_gpus: Sequence[int] | None,
) -> None:
    global _mpi
    from lamina.runtime.mpi import MpiError, load

    end = threading.Timer(seconds, _end_for_missing, (launched, seconds))
    end.daemon = True
    end.start()  # nothing else gets MPI out of waiting for processes that do not come
    try:
        mpi = load()
    except MpiError as error:
        raise RuntimeError(f"[distributed] {error}") from None
    finally:
        end.cancel()
    if launched > 1 and mpi.size != launched:
        raise RuntimeError(
            f"[distributed] the launcher started {launched} processes, and {mpi.name} knows of {mpi.size}: they "
            "belong to different installations of MPI. Use the mpiexec that came with it, or name the "
            f"launcher's library in {library.variable('mpi')} ('mpi4py' for the one that mpi4py is built on)"
        )
    for given, told, name in ((num_processes, mpi.size, "num_processes"), (process_id, mpi.rank, "process_id")):
        if given is not None and given != told:
            raise RuntimeError(f"[distributed] {name} is {told}, as MPI says, not {given}: leave it out")
    devices = max(1, config.num_cpu_devices.value)
    if devices * devices * 4 > mpi.interface["most_tags"]:
        raise RuntimeError(f"[distributed] {devices} devices in one process are more than {mpi.name} tells apart")
    own = None if own_gpus is None else tuple(own_gpus)
    from lamina.runtime.cuda import gpus_shown

    gpus = gpus_shown() if "cuda" in config.platforms.value else 0
    sharers = processes.join(mpi, devices, seconds, gpus, own)
    _mpi = mpi
    if "LAMINA_NUM_THREADS" not in os.environ:  # else the user says
        runtime.set_num_threads(max(1, runtime.get_num_threads() // sharers))
    _end_together()
    write("distributed", 0.0, f"process {mpi.rank} of {mpi.size}, {devices} devices, {mpi.name}")


def _watch_others(seconds: int) -> None:
    global _watch
    from lamina.runtime.watch import watch

    assert _mpi is not None
    _watch = watch(_mpi.rank, _mpi.size, seconds, _end_for_lost)
    if _watch is None and seconds and _mpi.size > 1:
        write("distributed", 0.0, f"process {_mpi.rank} has no connection with process 0, and is not watched")


_LAUNCHER_SECONDS = 5.0
"""How long the launcher may take to end all processes when one has ended, as launchers do."""


def _end_for_lost(process: int, how: str) -> None:
    """On the watch's thread: another process can't be reached, and MPI would wait for it for ever."""
    time.sleep(_LAUNCHER_SECONDS)
    if _watch is None:  # this one came to its end meanwhile
        return
    print(
        f"[distributed] process {_watch.rank} of {_watch.size} ends: process {process} can't be reached any more "
        f"({how}). Its machine is gone, or the link to it, or it was killed (heartbeat_timeout_seconds of "
        "distributed.initialize sets how long a machine may be silent)",
        file=sys.stderr,
    )
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        _wait_until_read(stream)
    os._exit(1)  # MPI would ask those who do not answer


def _end_for_missing(launched: int, seconds: float) -> None:
    print(
        f"[distributed] waited {seconds:g} s for {launched or 'the other'} processes to call "
        "distributed.initialize; this process ends (initialization_timeout sets the seconds)",
        file=sys.stderr,
        flush=True,
    )
    os._exit(1)


def _end_together() -> None:
    """An exception that ends this process ends the others, which would wait for it."""
    before = sys.excepthook

    def end(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        before(kind, error, traceback)
        if _mpi is not None:
            _abort(f"process {_mpi.rank} of {_mpi.size} ends, and with it all")

    sys.excepthook = end
    atexit.register(shutdown)
    os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    """In a forked child: MPI is its parent's."""
    global _mpi
    _mpi = None


_ABORT_SECONDS = 10.0
"""How long MPI may take to end all processes before this one ends alone: it asks the launcher, which may not
answer any more."""


def _abort(why: str) -> None:
    global _mpi
    mpi, _mpi = _mpi, None
    assert mpi is not None
    print(f"[distributed] {why}", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        _wait_until_read(stream)
    end = threading.Timer(_ABORT_SECONDS, os._exit, (1,))
    end.daemon = True
    end.start()
    mpi.abort(1)


def _wait_until_read(stream: TextIO, seconds: float = 2.0) -> None:
    """Until mpiexec has read what this process printed: what is in the pipe when MPI ends is lost."""
    import fcntl
    import termios

    try:
        pipe = stream.fileno()
        if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
            return
    except (OSError, ValueError):  # closed, or not a file
        return
    unread = array("i", [1])
    end = time.monotonic() + seconds
    while unread[0] and time.monotonic() < end:
        fcntl.ioctl(pipe, termios.FIONREAD, unread)
        time.sleep(0.005)


def is_initialized() -> bool:
    """Whether initialize has been called, and not taken back.

    >>> lamina.distributed.is_initialized()
    False
    """
    return _initialized


def shutdown() -> None:
    """Takes initialize back: this process says that it has come to its end, and waits for the others to
    say so. Does nothing where initialize was not called. The end of the program does it, too.

    >>> lamina.distributed.shutdown()
    """
    global _initialized, _mpi, _watch
    _initialized = False
    if _mpi is None:
        return
    trouble = runtime.trouble_of_processes()
    if trouble:  # the others can't be waited for
        _abort(f"process {_mpi.rank} of {_mpi.size} ends after: {trouble}")
        return
    mpi, _mpi = _mpi, None
    runtime.tell_processes("")
    processes.leave()
    mpi.finalize()  # waits for the others, which the watch must see
    ended, _watch = _watch, None
    if ended is not None:
        ended.end()
