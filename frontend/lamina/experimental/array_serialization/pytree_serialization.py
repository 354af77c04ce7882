"""Saving a tree of arrays, and restoring it: over another mesh, or with another number of processes.

A checkpoint is a folder, which all processes see:

    index.json        the tree, and of which parts each array is made (index.py)
    data-93b4c1/      the parts, one file each, as numpy.save writes them

Each process writes parts that its devices hold, each part is written once. The index comes last, in one
step: whatever is killed before leaves the checkpoint that was there. To restore, each process reads of
the parts what its devices need.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lamina.array import ArrayImpl
from lamina.core import tree
from lamina.experimental.array_serialization import index as index_file
from lamina.experimental.array_serialization.index import Index, Saved
from lamina.key_array import KeyArray
from lamina.runtime import processes
from lamina.shape_dtype import ShapeDtypeStruct
from lamina.sharding.arrays import make_array_from_callback
from lamina.sharding.boxes import Box, box_of, common, cut, shape_of, size_of

__all__ = ["load", "load_pytreedef", "save"]


def save(data: Any, directory: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Saves a tree of arrays in a folder. All processes call it, and it returns when all have written.

    data       a pytree whose leaves are arrays of this library or of NumPy.
    directory  the folder, the same for all processes; it is made where it is not there.
    overwrite  whether a checkpoint that is there may be replaced. It is there, whole, until the new one is.

    Of an array that each process has for itself, that of the first process is saved.

    Raises TypeError for other leaves, ValueError where processes hold different trees or there is a
    checkpoint already, OSError where one of the processes could not write.

    >>> import tempfile
    >>> from lamina.experimental.array_serialization.pytree_serialization import load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save({"w": jnp.arange(3), "step": jnp.int32(7)}, folder)
    ...     load(folder, lamina.sharding.SingleDeviceSharding(lamina.devices()[0]))
    {'step': Array(7, dtype=int32), 'w': Array([0, 1, 2], dtype=int32)}
    """
    folder = _folder(directory)
    leaves, structure = tree.flatten(data)
    paths = tree.paths(data)
    held = [dict(_parts_here(leaf, path)) for leaf, path in zip(leaves, paths, strict=True)]
    facts = (str(folder), paths, [(leaf.shape, leaf.dtype.name) for leaf in leaves])
    boxes = [list(parts) for parts in held]
    taken = not overwrite and (folder / index_file.NAME).exists()
    told = processes.tell_all("save", (facts, boxes, secrets.token_hex(6), taken))
    if told[0][3]:
        raise ValueError(f"save: there is a checkpoint in {folder} already, and overwrite is False")
    for process, (theirs, *_) in enumerate(told):
        if theirs != told[0][0]:
            raise ValueError(f"save: process {process} {_difference(told[0][0], theirs)}")
    arrays = [
        _owned(number, leaf, path, [each[1][number] for each in told])
        for number, (leaf, path) in enumerate(zip(leaves, paths, strict=True))
    ]
    index = Index(
        data=f"data-{told[0][2]}", tree=index_file.described(structure), arrays=tuple(arrays)
    )
    _do_in_all("save", lambda: _write_parts(folder / index.data, arrays, held))
    if processes.current().rank == 0:
        _do_in_all("save", lambda: _finish(folder, index))
    else:
        _do_in_all("save", lambda: None)


def load_pytreedef(directory: str | os.PathLike[str]) -> Any:
    """The tree that was saved, with a ShapeDtypeStruct for each array.

    directory  the checkpoint's folder.

    Raises ValueError where the tree has nodes that only the program can make, such as an optimizer's.

    >>> import tempfile
    >>> from lamina.experimental.array_serialization.pytree_serialization import load_pytreedef, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save([jnp.arange(3)], folder)
    ...     load_pytreedef(folder)
    [ShapeDtypeStruct(shape=(3,), dtype=int32)]
    """
    index = index_file.read(_folder(directory))
    return _built(index, [ShapeDtypeStruct(each.shape, each.dtype) for each in index.arrays])


def load(directory: str | os.PathLike[str], shardings: Any, *, mask: Any = None) -> Any:
    """Restores a tree of arrays. All processes of the shardings call it.

    directory  the checkpoint's folder.
    shardings  a pytree of shardings, or of ShapeDtypeStructs with shardings; a prefix of the saved tree. They
               need not be those that were saved. Where the tree has nodes that only the program can
               make (named tuples of an optimizer, registered classes), a tree of the same structure.
    mask       a pytree prefix of booleans; where it is False, the result has None and nothing is read.

    Raises FileNotFoundError where there is no checkpoint or a part of one is missing, ValueError where
    what is there, what the index says and what is asked for differ.

    >>> import tempfile
    >>> from lamina.experimental.array_serialization.pytree_serialization import load, save
    >>> mesh = lamina.make_mesh((1,), ("x",))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save([jnp.arange(3), jnp.ones(2)], folder)
    ...     load(folder, lamina.NamedSharding(mesh, lamina.P("x")), mask=[True, False])
    [Array([0, 1, 2], dtype=int32), None]
    """
    folder = _folder(directory)
    index = index_file.read(folder)
    paths = [each.path for each in index.arrays]
    if tree.paths(shardings) == paths:
        full = tree.unflatten(tree.structure(shardings), range(len(paths)))
        places = tree.leaves(shardings)
    else:
        full = _built(index, list(range(len(paths))))
        places = _spread(shardings, full, "shardings")
    wanted = [True] * len(paths) if mask is None else _spread(mask, full, "mask")
    arrays = [
        _restored(folder / index.data, saved, place) if want else None
        for saved, place, want in zip(index.arrays, places, wanted, strict=True)
    ]
    return tree.unflatten(tree.structure(full), arrays)


def _folder(directory: str | os.PathLike[str]) -> Path:
    if "://" in str(directory):
        raise ValueError(
            f"checkpoints are kept in folders that all processes see, not under {directory}"
        )
    return Path(directory).expanduser().resolve()


def _parts_here(leaf: Any, path: str) -> Iterator[tuple[Box, Any]]:
    """The parts of an array that this process has, without those that have no elements."""
    if isinstance(leaf, KeyArray):
        raise TypeError(
            f"save: {path or 'data'} is an array of random keys: save random.key_data of it, and give "
            "what is loaded to random.wrap_key_data"
        )
    if not isinstance(leaf, ArrayImpl | np.ndarray):
        raise TypeError(
            f"save: {path or 'data'} is a {type(leaf).__name__}: leaves are arrays or None"
        )
    if not leaf.size:
        return
    if isinstance(leaf, np.ndarray):
        yield tuple((0, n) for n in leaf.shape), leaf
        return
    for shard in leaf.addressable_shards:
        yield box_of(shard.index, leaf.shape), shard.data


def _difference(
    first: tuple[str, list[str], list[Any]], other: tuple[str, list[str], list[Any]]
) -> str:
    """What one process wants to save otherwise than the first."""
    if first[0] != other[0]:
        return f"saves in {other[0]}, process 0 in {first[0]}"
    if first[1] != other[1]:
        odd = sorted(set(first[1]) ^ set(other[1]))
        return f"saves another tree than process 0: one of them has no {odd[0] if odd else 'such order'}"
    at = next(i for i, (a, b) in enumerate(zip(first[2], other[2], strict=True)) if a != b)
    return f"has {other[2][at]} for {other[1][at]}, process 0 {first[2][at]}"


def _owned(number: int, leaf: Any, path: str, boxes: list[list[Box]]) -> Saved:
    """An array with the files of its parts: the first process that has a part writes it."""
    owners: dict[Box, int] = {}
    for process, theirs in enumerate(boxes):
        for box in theirs:
            owners.setdefault(box, process)
    if sum(map(size_of, owners)) != leaf.size:
        raise ValueError(
            f"save: the processes hold no parts that make up {path or 'data'}, of shape {leaf.shape}: its "
            "sharding is not the same in all"
        )
    parts = [(box, f"{number}.{at}.{owners[box]}.npy") for at, box in enumerate(sorted(owners))]
    return Saved(path=path, shape=tuple(leaf.shape), dtype=leaf.dtype, parts=tuple(parts))


def _stored(dtype: Any) -> np.dtype:
    """What a file has: NumPy's own types as they are, bits of the others."""
    dtype = np.dtype(dtype)
    return dtype if dtype.isbuiltin == 1 else np.dtype(f"u{dtype.itemsize}")


def _write_parts(folder: Path, arrays: list[Saved], held: list[dict[Box, Any]]) -> None:
    """Writes those of this process. Who can't takes the folder away again."""
    mine = f".{processes.current().rank}.npy"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for saved, parts in zip(arrays, held, strict=True):
            for box, name in saved.parts:
                if name.endswith(mine):
                    data = np.ascontiguousarray(parts[box]).reshape(shape_of(box))
                    with (folder / name).open("wb") as file:
                        np.save(file, data.view(_stored(saved.dtype)), allow_pickle=False)
                        file.flush()
                        os.fsync(file.fileno())
        index_file.sync_folder(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _finish(folder: Path, index: Index) -> None:
    """Writes the index, which makes it a checkpoint; removes the parts of former ones and what those that
    were killed have left."""
    index_file.write(folder, index)
    for each in folder.iterdir():
        if each.name.startswith("data-") and each.name != index.data:
            shutil.rmtree(each, ignore_errors=True)
        if each.name.startswith(f"{index_file.NAME}."):
            with contextlib.suppress(OSError):
                each.unlink()


def _do_in_all(what: str, do: Any) -> None:
    """Does it, and waits until all processes have. Where it fails in one, all raise OSError."""
    failure: OSError | None = None
    try:
        do()
    except OSError as error:
        failure = error
    told = processes.tell_all(what, None if failure is None else str(failure))
    if failure is not None:
        raise failure
    for process, text in enumerate(told):
        if text is not None:
            raise OSError(f"{what}: process {process} failed: {text}")


def _built(index: Index, leaves: list[Any]) -> Any:
    try:
        return index_file.built(index.tree, leaves)
    except TypeError as error:
        raise ValueError(
            f"the tree that was saved has a {error}, which only the program can make: give load, as its "
            "shardings, a tree of the same structure, such as tree.map(lambda x: x.sharding, state)"
        ) from None


def _spread(prefix: Any, full: Any, name: str) -> list[Any]:
    try:
        return tree.broadcast_prefix(prefix, full)
    except ValueError as error:
        raise ValueError(f"load: {name} is no prefix of the tree that was saved: {error}") from None


def _restored(folder: Path, saved: Saved, place: Any) -> ArrayImpl:
    name = saved.path or "the array"
    if isinstance(place, ShapeDtypeStruct):
        if (place.shape, place.dtype) != (saved.shape, saved.dtype):
            raise ValueError(
                f"load: {name} was saved as {saved.dtype.name}{list(saved.shape)}, and "
                f"{place.dtype.name}{list(place.shape)} is asked for"
            )
        place = place.sharding
    if not hasattr(place, "device_list"):
        raise TypeError(
            f"load: what says where {name} is to lie is a {type(place).__name__}, no sharding"
        )

    def part(at: Any) -> np.ndarray:
        box = box_of(at, saved.shape)
        out = np.empty(shape_of(box), saved.dtype)
        read = 0
        for have, file in saved.parts:
            shared = common(have, box)
            if shared is not None:
                source = _opened(folder / file, saved, have)
                cut(out, box, shared)[...] = cut(source, have, shared).view(saved.dtype)
                read += size_of(shared)
        if read != out.size:
            raise ValueError(
                f"load: the index knows no file for {out.size - read} elements of {name}"
            )
        return out

    return make_array_from_callback(saved.shape, place, part)


def _opened(place: Path, saved: Saved, box: Box) -> np.ndarray:
    name = saved.path or "the array"
    try:
        found = np.load(place, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"load: {place} is missing, which has {list(map(list, box))} of {name}: do all processes see the "
            "folder in which it was saved?"
        ) from None
    except (ValueError, EOFError) as error:
        raise ValueError(f"load: {place}, a part of {name}, is damaged: {error}") from None
    if (found.shape, found.dtype) != (shape_of(box), _stored(saved.dtype)):
        raise ValueError(
            f"load: {place} has {found.dtype}{list(found.shape)}, and by the index a part of {name}, "
            f"{_stored(saved.dtype)}{list(shape_of(box))}"
        )
    return found
