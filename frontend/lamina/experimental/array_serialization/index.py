"""What a checkpoint's index says: the tree that was saved, and of which parts each of its arrays is made.

{"format": 1,
 "data": "data-93b4c1",
 "tree": {"dict": [["w", 0], ["b", 1]]},
 "arrays": [{"path": "['b']", "shape": [8], "dtype": "float32", "parts": [[[[0, 8]], "0.0.0.npy"]]}, ...]}
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from lamina.core import tree
from lamina.records import Record
from lamina.sharding.boxes import Box

NAME = "index.json"
_FORMAT = 1


class Saved(Record):
    """An array of a checkpoint.

    path   where it stands in the tree, as in Python: ['a'][1].
    parts  disjoint boxes, each with the file that has it.
    """

    path: str
    shape: tuple[int, ...]
    dtype: Any
    parts: tuple[tuple[Box, str], ...]


class Index(Record):
    """A checkpoint's index.

    data    the folder of its parts.
    tree    the structure as JSON: see `described`.
    arrays  in the order of the tree's leaves.
    """

    data: str
    tree: Any
    arrays: tuple[Saved, ...]


def described(structure: tree.PyTreeDef) -> Any:
    """A structure as JSON: dicts, lists, tuples and None as such, leaves by number; of other nodes only their
    class, since only the program can make them."""
    return _described(tree.unflatten(structure, range(structure.num_leaves)))


def _described(node: Any) -> Any:
    if node is None or type(node) is int:
        return node
    if type(node) is dict and all(type(key) in (str, int) for key in node):
        return {"dict": [[key, _described(child)] for key, child in node.items()]}
    if type(node) in (list, tuple):
        return {type(node).__name__: list(map(_described, node))}
    return {"class": f"{type(node).__module__}.{type(node).__qualname__}"}


def built(node: Any, leaves: list[Any]) -> Any:
    """The tree that is so described, with these leaves. Raises TypeError, with the name of a class, where
    only the program can make it."""
    if node is None:
        return None
    if isinstance(node, int):
        return leaves[node]
    ((kind, children),) = node.items()
    if kind == "dict":
        return {key: built(child, leaves) for key, child in children}
    if kind == "class":
        raise TypeError(children)
    return {"list": list, "tuple": tuple}[kind](built(child, leaves) for child in children)


def write(folder: Path, index: Index) -> None:
    """Puts the index in its place, at once: before, the folder has the one that it had."""
    rows = [
        {
            "path": each.path,
            "shape": each.shape,
            "dtype": each.dtype.name,
            "parts": each.parts,
        }
        for each in index.arrays
    ]
    text = json.dumps({"format": _FORMAT, "data": index.data, "tree": index.tree, "arrays": rows})
    new = folder / f"{NAME}.{index.data}"
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / NAME)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Has the system write down which files a folder has."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def read(folder: Path) -> Index:
    """The index of a checkpoint. Raises FileNotFoundError where there is none, ValueError where it is none."""
    place = folder / NAME
    try:
        found = json.loads(place.read_text())
        if found["format"] != _FORMAT:
            raise ValueError(f"its format is {found['format']!r}, and this version reads {_FORMAT}")
        arrays = [
            Saved(
                path=row["path"],
                shape=tuple(row["shape"]),
                dtype=np.dtype(row["dtype"]),
                parts=tuple((tuple(map(tuple, box)), file) for box, file in row["parts"]),
            )
            for row in found["arrays"]
        ]
        return Index(data=found["data"], tree=found["tree"], arrays=tuple(arrays))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no checkpoint in {folder}: it has no {NAME}, which is written when all else is there"
        ) from None
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{place} is no index of a checkpoint: {error}") from None
