"""Compiled programs as bytes, which another process on a machine of the same kind runs without
tracing and compiling.

    blob, in_tree, out_tree = serialize(lamina.jit(f).lower(x).compile())
    f = deserialize_and_load(blob, in_tree, out_tree)

The bytes are machine code: load only what you trust.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from lamina.core.library import library
from lamina.jit.program_plan import Plan
from lamina.jit.programs import Program
from lamina.stages import Compiled, Traced

__all__ = ["deserialize_and_load", "serialize"]

_MAGIC = b"lamina executable 1\n"
_LENGTH = struct.Struct("<Q")


class _Loaded(Compiled):
    """A compiled program without the jaxpr that it was made of."""

    def as_text(self, stage: str | None = None) -> str:
        """A form of the program, as of every compiled one but its jaxpr, which is not kept."""
        if stage == "jaxpr":
            raise ValueError("the jaxpr of a serialized executable is not kept")
        return super().as_text(stage)


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """A compiled program as bytes, with the structures of its arguments ((args...), {kwargs}) and
    of its result: a tuple of three. The bytes hold machine code for this kind of processor.

    compiled  what jit(f).lower(...).compile() gives.

    Raises NotImplementedError for programs that call back into Python, that run on several devices,
    or that take or give random keys.

    >>> compiled = lamina.jit(lambda x: x + 1).lower(1.0).compile()
    >>> data, in_tree, out_tree = lamina.experimental.serialize_executable.serialize(compiled)
    >>> type(data), out_tree
    (<class 'bytes'>, PyTreeSpec(*))
    """
    plan, traced = compiled._program.plan, compiled._traced
    artifact = compiled.artifact
    for there, what in (
        (plan.callbacks or plan.closed.effects, "calls back into Python or has other effects"),
        (plan.local is not None, "runs on several devices"),
        (plan.physical_in or any(d is not None for d in plan.logical_out), "takes or gives keys"),
        (artifact is None, "computes nothing"),
    ):
        if there:
            raise NotImplementedError(f"serialize: {traced.fun_name} {what}")
    consts = [np.ascontiguousarray(c) for c in map(np.asarray, plan.const_args)]
    head = {
        "name": plan.name,
        "function": traced.fun_name,
        "kept": plan.kept,
        "outputs": plan.outputs,
        "in": [_to_json(a) for a in traced.jaxpr.in_avals],
        "out": [_to_json(a) for a in traced.jaxpr.out_avals],
        "donated": traced._donated,
        "arg_names": traced._arg_names,
        "result_paths": traced._result_paths,
        "static": [traced._static[0], sorted(traced._static[1])],
        "consts": [[list(c.shape), c.dtype.name] for c in consts],
    }
    body = [json.dumps(head).encode(), artifact.to_bytes(), *(c.tobytes() for c in consts)]
    parts = [part for data in body for part in (_LENGTH.pack(len(data)), data)]
    return b"".join([_MAGIC, *parts]), traced.in_tree, traced.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: Any = None,
    execution_devices: Any = None,
) -> Compiled:
    """The program that serialize made bytes of, to be called.

    serialized         the bytes.
    in_tree, out_tree  the structures that serialize gave.
    backend            without effect: a program runs where it was compiled for;
    execution_devices  likewise.

    Raises ValueError for other bytes, ProcessorError where this machine lacks what the code needs.

    >>> stored = lamina.experimental.serialize_executable
    >>> compiled = lamina.jit(lambda x: x + 1).lower(1.0).compile()
    >>> print(stored.deserialize_and_load(*stored.serialize(compiled))(2.0))
    3.0
    """
    from lamina.jit.compiled_text import StoredCompilation
    from lamina.runtime.artifact import Artifact
    from lamina.runtime.executable import load

    parts = _parts(bytes(serialized))
    head = json.loads(parts[0])
    artifact = Artifact.from_bytes(parts[1])
    consts = [
        np.frombuffer(data, np.dtype(name)).reshape(shape)
        for data, (shape, name) in zip(parts[2:], head["consts"], strict=True)
    ]
    inputs, outputs = ([_from_json(a) for a in head[k]] for k in ("in", "out"))
    types = ClosedJaxpr(Jaxpr([], [Var(a) for a in inputs], [Var(a) for a in outputs], []))
    read = Jaxpr([Var(ShapedArray(c.shape, c.dtype)) for c in consts], [], [], [])
    plan = Plan(
        ClosedJaxpr(read, consts),
        head["name"],
        tuple(head["kept"]),
        tuple(head["outputs"]),
        tuple(a.weak_type for a in outputs),
        (True,) * len(consts),
        {},
        (),
        tuple(head["arg_names"]),
        tuple(head["result_paths"]),
        logical_out=(None,) * len(outputs),
    )
    traced = Traced(
        types, head["function"], in_tree, out_tree, head["donated"], False, head["arg_names"],
        head["result_paths"], *head["static"],
    )  # fmt: skip
    compilation: Any = StoredCompilation(artifact)
    return _Loaded(Program(plan, load(artifact), compilation), traced)


def _parts(data: bytes) -> list[bytes]:
    if not data.startswith(_MAGIC):
        raise ValueError(f"not a serialized executable, or one of another version of {library}")
    parts, at = [], len(_MAGIC)
    while at < len(data):
        if at + _LENGTH.size > len(data):
            raise ValueError("the serialized executable is cut off")
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if at + length > len(data):
            raise ValueError("the serialized executable is cut off")
        parts.append(data[at : at + length])
        at += length
    return parts


def _to_json(aval: ShapedArray) -> Any:
    return [list(aval.shape), aval.dtype.name, bool(aval.weak_type)]


def _from_json(stored: Any) -> ShapedArray:
    shape, name, weak = stored
    return ShapedArray(tuple(shape), np.dtype(name), weak_type=weak)
