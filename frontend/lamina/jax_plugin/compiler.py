"""What JAX hands over, compiled: a program's bytes and options to what the plugin runs.

    program = compile_program(code, "mlir", options)
    program.executable([x])                 # lamina.runtime's Executable
    deserialize_program(program.serialize(), options)

A program is found in the disk store by its bytes, without MLIR; by its module without source
locations where only those have changed; else it is compiled and kept there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from time import perf_counter as clock
from typing import Any

from lamina import config, log_lines
from lamina.core import garbage
from lamina.jax_plugin.compile_options import CompileOptions
from lamina.jax_plugin.custom_partitioning import has_custom_calls
from lamina.jax_plugin.facts import DEVICE_MEMORY, Facts
from lamina.jax_plugin.failures import PluginError as PluginError
from lamina.jax_plugin.failures import as_statuses
from lamina.jax_plugin.host_calls import HostCall
from lamina.jax_plugin.inspections import asks_for_shardings
from lamina.jax_plugin.layouts import logical_shape
from lamina.jax_plugin.xla_options import check_xla_options
from lamina.jit import compiler_options
from lamina.records import Record

_BY_BYTES = "jax"  # in the store: a program's bytes -> the name of its artifact
_ARTIFACT = "artifact"
_MAGIC = b"LAMINAJX"
_LENGTH = struct.Struct("<Q")


class ArrayType(Record):
    """What the plugin tells JAX of an argument or a result."""

    dtype: str
    """A NumPy or ml_dtypes name, such as "float32" or "bfloat16"."""
    shape: tuple[int, ...]
    """As JAX has it, whatever its layout."""
    layout: tuple[int, ...] = ()
    """Its dimensions in memory, from the slowest to the fastest, where it is not row-major."""
    is_token: bool = False
    """Whether it is a token of JAX's, which orders effects: a bool[0] here, as JAX has it."""
    memory_kind: str = DEVICE_MEMORY
    donated: bool = False
    """Of an argument: JAX's array is gone after a call."""
    sharding: bytes = b""
    """Over several devices: an xla.OpSharding, serialised."""


class CompiledProgram(Record, frozen=False, eq=False):
    """A compiled program with what the plugin asks of it.

    name        of the module, such as "jit_f".
    executable  lamina.runtime's, which holds the native program and what it calls.
    inputs, outputs  one for each argument and result of @main, of the part that a device has.
    device_ids  the devices, replica by partition.
    fingerprint  the same for programs that are compiled alike.
    code         the program as JAX handed it over.
    """

    name: str
    executable: Any
    inputs: list[ArrayType]
    outputs: list[ArrayType]
    num_replicas: int
    num_partitions: int
    device_ids: list[list[int]]
    fingerprint: bytes
    code: bytes
    _artifact: Any
    _facts: Facts
    _calls: Sequence[HostCall] = ()

    def serialize(self) -> bytes:
        """The program as bytes, from which `deserialize_program` makes it again without a compiler. FFI
        targets that it calls are in there by their names."""
        head = {
            "num_replicas": self.num_replicas,
            "num_partitions": self.num_partitions,
            "device_ids": self.device_ids,
            "facts": self._facts.row(),
            "calls": [call.row() for call in self._calls],
            "code_bytes": len(self.code),
        }
        text = json.dumps(head).encode()
        parts = (_MAGIC, _LENGTH.pack(len(text)), text, self.code, self._artifact.to_bytes())
        return b"".join(parts)

    def optimized_code(self) -> bytes:
        """What each device runs, simplified and with its calls inlined: StableHLO's text, which JAX reads."""
        from lamina.backends.stages import Stages
        from lamina.jax_plugin.reading import without_chlo

        with as_statuses():
            return without_chlo(Stages(self._artifact).text("optimized", debug_info=True)).encode()

    def cost(self) -> dict[str, float]:
        """flops, transcendentals and "bytes accessed" of one call."""
        return {name: float(value) for name, value in self._artifact.manifest["cost"].items()}

    def memory(self) -> dict[str, int]:
        """Bytes of arguments ("argument"), results ("output"), results in donated arguments ("alias"),
        temporaries ("temp") and code ("generated_code")."""
        return {name: int(value) for name, value in self._artifact.manifest["memory"].items()}

    def time_kernels(self) -> None:
        """From now on each kernel's calls are timed while a profiler records."""
        from lamina.backends.cpu.timed import timed_code
        from lamina.runtime.executable import LoadError

        with as_statuses(), contextlib.suppress(LoadError):  # without, the program's calls are timed
            code = timed_code(self._artifact)
            self.executable.set_timed_entry(code.addresses[self._artifact.manifest["entry"]], code)

    def text(self, stage: str = "optimized") -> str:
        """The program as MLIR text at a stage: optimised StableHLO by default."""
        from lamina.backends.compile import Compilation

        with as_statuses():
            return Compilation.of_artifact(self._artifact).text(stage)


def compile_program(code: bytes, format: str, options: bytes) -> CompiledProgram:
    """Compiles a program that JAX hands over, or finds it in the disk store.

    code     its bytes: a portable artifact, MLIR bytecode or text.
    format   "mlir".
    options  a serialised xla.CompileOptionsProto. Its overrides (JAX's compiler_options) are settings
             of lamina's by name; those that begin with xla_ are XLA's, are checked and do nothing.

    Raises PluginError with the code of a status: UNIMPLEMENTED names the op that can't be compiled and
    the user's line.
    """
    with as_statuses(), garbage.held_off():
        given = CompileOptions.of(options)
        with compiler_options.applied(_settings(given.settings)):
            return _compiled(code, format, given)


def deserialize_program(data: bytes, options: bytes = b"") -> CompiledProgram:
    """The program in bytes that `serialize` gave.

    data     those bytes.
    options  a serialised xla.CompileOptionsProto whose devices replace those that the program was
             compiled for; none: they stay.

    Raises PluginError: INVALID_ARGUMENT for other bytes, FAILED_PRECONDITION for a processor that
    lacks what the program needs and for FFI targets that this process has no handlers of.
    """
    from lamina.runtime.artifact import Artifact

    with as_statuses():
        try:
            if not data.startswith(_MAGIC):
                raise ValueError("it does not begin as one")
            begin = len(_MAGIC) + _LENGTH.size
            (length,) = _LENGTH.unpack_from(data, len(_MAGIC))
            head = json.loads(data[begin : begin + length])
            counts = head["num_replicas"], head["num_partitions"], head["device_ids"]
            facts, calls = Facts.of_row(head["facts"]), list(map(HostCall.of_row, head["calls"]))
            code = data[begin + length : begin + length + head["code_bytes"]]
        except (ValueError, KeyError, TypeError, struct.error) as error:
            raise PluginError("INVALID_ARGUMENT", f"not a serialised program: {error}") from None
        artifact = Artifact.from_bytes(data[begin + length + len(code) :])
        replicas, partitions, devices = counts
        if options:
            given = CompileOptions.of(options)
            if given.device_ids is not None:
                devices = given.device_ids
        found = CompileOptions(
            num_replicas=replicas, num_partitions=partitions, device_ids=devices
        )
        return _loaded(artifact, found, code, facts, calls)


def _is_of_this_process(code: bytes) -> bool:
    """Whether a program has numbers of functions of this process, which are called while it is compiled."""
    return asks_for_shardings(code) or has_custom_calls(code)


def _settings(given: Mapping[str, Any]) -> compiler_options.Settings:
    begin = clock()
    of_xla = {name: value for name, value in given.items() if name.startswith("xla_")}
    ours = {name: value for name, value in given.items() if name not in of_xla}
    if of_xla:
        check_xla_options(of_xla)
        log_lines.write("compile", clock() - begin, f"left aside, being XLA's: {', '.join(of_xla)}")
    try:
        return compiler_options.settings_of(ours)
    except ValueError as error:
        raise PluginError("INVALID_ARGUMENT", str(error)) from None


def _compiled(code: bytes, format: str, options: CompileOptions) -> CompiledProgram:
    from lamina.runtime.artifact import Artifact, ArtifactError
    from lamina.runtime.executable import LoadError
    from lamina.runtime.store import default_store

    begin, store = clock(), default_store()
    key = _key_of_bytes(code, options)
    anew, may_be_found = False, not _is_of_this_process(code)
    found = store.get(_BY_BYTES, key) if store is not None and may_be_found else None
    if store is not None and found is not None:
        entry = json.loads(found)
        data = store.get(_ARTIFACT, entry["artifact"])
        if data is not None:
            try:
                calls = list(map(HostCall.of_row, entry["calls"]))
                facts = Facts.of_row(entry["facts"])
                program = _loaded(Artifact.from_bytes(data), options, code, facts, calls)
            except (ArtifactError, LoadError, TypeError, ValueError):
                anew = True
            else:
                log_lines.write("cache", clock() - begin, f"{program.name}: found in {store.directory}")
                return program
    program, entry = _compiled_module(code, format, options, store, anew)
    if store is not None and may_be_found:
        store.put(_BY_BYTES, key, json.dumps(entry).encode())
    log_lines.write("compile", clock() - begin, program.name)
    return program


def _compiled_module(
    code: bytes, format: str, options: CompileOptions, store: Any, anew: bool
) -> tuple[CompiledProgram, dict[str, Any]]:
    """The program from its module, and what the store keeps under its bytes."""
    from lamina.backends.compile import artifact_key, compile_own_module
    from lamina.backends.target import Target
    from lamina.dialects.interrupts import uninterrupted
    from lamina.dialects.serialize import to_bytecode
    from lamina.interpreters.lowering import note_settings
    from lamina.jax_plugin.adopting import adopt
    from lamina.jax_plugin.reading import read_program
    from lamina.runtime.artifact import Artifact, ArtifactError
    from lamina.runtime.executable import LoadError

    with uninterrupted():
        module, shardings = read_program(code, format, options.num_partitions)
        adopted = adopt(module, options, shardings)
        note_settings(module)
        name = adopted.name
        key = artifact_key(to_bytecode(module, debug_info=False), Target.host(), name)
    rows = [call.row() for call in adopted.calls]
    entry = {"artifact": key, "facts": adopted.facts.row(), "calls": rows}
    data = store.get(_ARTIFACT, key) if store is not None and not anew else None
    if data is not None:
        try:
            artifact = Artifact.from_bytes(data)
            return _loaded(artifact, options, code, adopted.facts, adopted.calls), entry
        except (ArtifactError, LoadError):
            pass  # of an older build, say: it is compiled again and replaced
    compilation = compile_own_module(
        module, name=name, anew=anew, most_operations=config.program_operations.value
    )
    if store is not None:
        store.put(_ARTIFACT, key, compilation.artifact.to_bytes())
    return _loaded(compilation.artifact, options, code, adopted.facts, adopted.calls), entry


def _key_of_bytes(code: bytes, options: CompileOptions) -> str:
    """The name in the store of what these bytes compile to, by this compiler, for this machine."""
    from lamina.backends.target import Target
    from lamina.jit.program_key import fingerprint

    digest = hashlib.blake2b(digest_size=20)
    rest = (
        fingerprint(), repr(sorted(Target.host().describe().items())), repr(compiler_options.current()),
        f"{options.num_replicas} {options.num_partitions}",
    )  # fmt: skip
    for part in (*map(str.encode, rest), code):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _loaded(
    artifact: Any,
    options: CompileOptions,
    code: bytes,
    facts: Facts,
    calls: Sequence[HostCall],
) -> CompiledProgram:
    from lamina.runtime.executable import load

    manifest = artifact.manifest
    return CompiledProgram(
        name=manifest["name"],
        executable=load(artifact, [call.for_runtime() for call in calls]),
        inputs=_types(manifest, facts, 0),
        outputs=_types(manifest, facts, 1),
        num_replicas=options.num_replicas,
        num_partitions=options.num_partitions,
        device_ids=options.assignment,
        fingerprint=artifact.digest(),
        code=code,
        _artifact=artifact,
        _facts=facts,
        _calls=tuple(calls),
    )


def _types(manifest: Mapping[str, Any], facts: Facts, side: int) -> list[ArrayType]:
    """Those of the arguments (side 0) or the results (1)."""
    gone = {*facts.donated, *_taken_over(manifest, facts)}
    return [
        ArrayType(
            row["dtype"],
            logical_shape(row["shape"], facts.layouts[side][i]),
            tuple(facts.layouts[side][i]),
            is_token=i in facts.tokens[side],
            memory_kind=facts.memory_kinds[side][i],
            donated=side == 0 and i in gone,
            sharding=bytes.fromhex(facts.shardings[side][i]) if facts.shardings else b"",
        )
        for i, row in enumerate(manifest["outputs" if side else "inputs"])
    ]


def _taken_over(manifest: Mapping[str, Any], facts: Facts) -> list[int]:
    """The donors whose memory results take over by XLA's rule, which JAX's users know: a result of as many
    bytes, each once. (Whether it pays here is another question; the argument is gone.)"""
    from lamina.runtime.executable import dtype_named

    def size(row: Mapping[str, Any]) -> int:
        return prod(row["shape"]) * dtype_named(row["dtype"]).itemsize

    rows = [row for row in manifest["outputs"] if row.get("alias_of") not in facts.donated]
    left = Counter(map(size, rows))
    found = []
    for donor in facts.donors:
        bytes = size(manifest["inputs"][donor])
        if left[bytes]:
            left[bytes] -= 1
            found.append(donor)
    return found
