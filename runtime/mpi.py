"""MPI, found and loaded: a library of the standard ABI (MPI-5), or what mpi4py is built on.

The standard ABI fixes the values of handles, so that one table serves MPICH, Intel MPI and what
clusters install: MPI Forum, "MPI: A Message-Passing Interface Standard, Version 5.0", chapter 20.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

_ABI_LIBRARY = "libmpi_abi.so.1"
_WHEELS = ("mpich", "impi-rt")
_FUNCTIONS = ("MPI_Isend", "MPI_Irecv", "MPI_Test", "MPI_Iprobe")

# Of the standard ABI.
_COMM_WORLD, _BYTE, _ERRORS_RETURN, _TAG_UB = 0x101, 0x247, 0x143, 501
_THREAD_SERIALIZED = 2048

HOW_TO_INSTALL = (
    "install MPI by `pip install 'lamina[mpi]'` (MPICH as a wheel), use the cluster's with mpi4py, or "
    "name a library of MPI's standard ABI, libmpi_abi.so, in LAMINA_MPI"
)


class MpiError(RuntimeError):
    """MPI is not there, or refuses."""


class Mpi(NamedTuple):
    """MPI, initialised."""

    name: str  # what it calls itself
    rank: int
    size: int
    interface: dict[str, int]  # what the native runtime calls it through
    library: Any  # the loaded library, or mpi4py's module
    communicator: Any

    def finalize(self) -> None:
        """Gives MPI back. Waits for all other processes to do the same."""
        if hasattr(self.library, "Finalize"):
            if not self.library.Is_finalized():
                self.library.Finalize()
        else:
            self.library.MPI_Finalize()

    def abort(self, code: int) -> None:
        """Ends all processes."""
        if hasattr(self.library, "COMM_WORLD"):
            self.library.COMM_WORLD.Abort(code)
        else:
            self.library.MPI_Abort(ctypes.c_void_p(_COMM_WORLD), code)


def launched_processes(environment: Any = os.environ) -> int | None:
    """How many processes a launcher of MPI says it started, this one among them; None: it was none."""
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS"):
        if environment.get(name, "").isdecimal():
            return int(environment[name])
    if "PMI_RANK" in environment or "PMIX_RANK" in environment:
        tasks = environment.get("SLURM_NTASKS", "")
        return int(tasks) if tasks.isdecimal() else 0  # some number
    return None


def load() -> Mpi:
    """Finds MPI and initialises it. Raises MpiError."""
    named = os.environ.get("LAMINA_MPI", "")
    if named == "mpi4py" or (not named and _is_mpi4py_preferred()):
        return _by_mpi4py()
    path = named or _abi_library()
    if path is not None:
        return _by_abi(path)
    if importlib.util.find_spec("mpi4py") is not None:
        return _by_mpi4py()
    raise MpiError(f"there is no MPI here: {HOW_TO_INSTALL}")


def _is_mpi4py_preferred() -> bool:
    """Whether this process uses mpi4py already, or was started by Open MPI, which has no library of
    the standard ABI before version 6."""
    if "mpi4py.MPI" in sys.modules:
        return True
    return "OMPI_COMM_WORLD_SIZE" in os.environ and importlib.util.find_spec("mpi4py") is not None


def _abi_library() -> str | None:
    for wheel in _WHEELS:
        try:
            files = importlib.metadata.files(wheel) or ()
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name == _ABI_LIBRARY:
                return str(Path(str(file.locate())).resolve())
    try:
        ctypes.CDLL(_ABI_LIBRARY)
    except OSError:
        return None
    return _ABI_LIBRARY


def _by_abi(path: str) -> Mpi:
    try:
        library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        functions = _addresses(library)
    except (OSError, AttributeError) as error:
        raise MpiError(f"LAMINA_MPI or an installed wheel names {path}, which is no MPI: {error}") from None
    name = _name(library)
    _check_shared_memory(name)
    provided, number = ctypes.c_int(), ctypes.c_int()
    _check(library, library.MPI_Init_thread(None, None, _THREAD_SERIALIZED, ctypes.byref(provided)))
    world, ours = ctypes.c_void_p(_COMM_WORLD), ctypes.c_void_p()
    _check(library, library.MPI_Comm_dup(world, ctypes.byref(ours)))
    _check(library, library.MPI_Comm_set_errhandler(ours, ctypes.c_void_p(_ERRORS_RETURN)))
    _check(library, library.MPI_Comm_rank(ours, ctypes.byref(number)))
    rank = number.value
    _check(library, library.MPI_Comm_size(ours, ctypes.byref(number)))
    bound, there = ctypes.c_void_p(), ctypes.c_int()
    library.MPI_Comm_get_attr(world, _TAG_UB, ctypes.byref(bound), ctypes.byref(there))
    most = int(ctypes.cast(bound, ctypes.POINTER(ctypes.c_int))[0]) if there.value else 32767
    if provided.value < _THREAD_SERIALIZED:
        raise MpiError(f"{name} can't be called by several threads in turn")
    interface: dict[str, int] = dict(
        functions,
        handle_size=8,
        communicator=int(ours.value or 0),
        byte=_BYTE,
        most_tags=most,
    )
    return Mpi(name, rank, number.value, interface, library, ours)


def _name(library: ctypes.CDLL) -> str:
    text, length = ctypes.create_string_buffer(1 << 14), ctypes.c_int()
    library.MPI_Get_library_version(text, ctypes.byref(length))  # allowed before MPI is initialised
    return text.value.decode(errors="replace").splitlines()[0].replace("\t", " ")


_SHARED_MEMORY = "/dev/shm"


def _check_shared_memory(name: str) -> None:
    """MPICH ends the process where it can't make shared memory, and speaks of too little memory."""
    if name.startswith("MPICH") and not os.path.isdir(_SHARED_MEMORY):
        raise MpiError(
            f"{name} needs {_SHARED_MEMORY}, which is not there: mount a tmpfs on it "
            "(in a container: --tmpfs /dev/shm, or --shm-size)"
        )


def _by_mpi4py() -> Mpi:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise MpiError(f"mpi4py does not load: {error}") from None
    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise MpiError("mpi4py has initialised MPI for one thread: set mpi4py.rc.thread_level to 'serialized'")
    ours = MPI.COMM_WORLD.Dup()
    ours.Set_errhandler(MPI.ERRORS_RETURN)
    interface: dict[str, int] = dict(
        _addresses(ctypes.CDLL(MPI.__file__)),  # finds what the module is linked to
        handle_size=MPI._sizeof(MPI.Comm),
        communicator=MPI._handleof(ours),
        byte=MPI._handleof(MPI.BYTE),
        most_tags=int(MPI.COMM_WORLD.Get_attr(MPI.TAG_UB) or 32767),
    )
    name = MPI.Get_library_version().splitlines()[0].replace("\t", " ")
    return Mpi(f"{name} by mpi4py", ours.rank, ours.size, interface, MPI, ours)


def _addresses(library: Any) -> dict[str, int]:
    return {
        name.removeprefix("MPI_").lower(): int(
            ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        )
        for name in _FUNCTIONS
    }


def _check(library: Any, code: int) -> None:
    if code == 0:
        return
    text, length = ctypes.create_string_buffer(1 << 10), ctypes.c_int()
    library.MPI_Error_string(code, text, ctypes.byref(length))
    raise MpiError(f"MPI refuses: {text.value.decode(errors='replace')}")
