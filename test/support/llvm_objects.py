"""Artifacts from LLVM IR text, for tests of the runtime that want no compiler above it."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import llvmlite.binding as llvm

from lamina.runtime.artifact import ABI_VERSION, Artifact
from lamina.runtime.executable import load

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

# void lamina_entry(ptr args, ptr results, ptr arena): results[0] = args[0] + 1, for one float.
ADD_ONE = """
define void @lamina_entry(ptr %args, ptr %results, ptr %arena) {
  %in = load ptr, ptr %args
  %out = load ptr, ptr %results
  %x = load float, ptr %in
  %y = fadd float %x, 1.0
  store float %y, ptr %out
  ret void
}
"""


def elementwise(body: str, count: int, element: str = "float") -> str:
    """An entry that stores, for each i < count, the value %y that `body` makes of %x."""
    return f"""
declare i32 @usleep(i32)
declare i32 @sem_wait(ptr)
declare void @lamina_fail(ptr)
@message = constant [12 x i8] c"kernel says\\00"
define void @lamina_entry(ptr %args, ptr %results, ptr %arena) {{
start:
  %in = load ptr, ptr %args
  %out = load ptr, ptr %results
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %loop]
  %from = getelementptr {element}, ptr %in, i64 %i
  %to = getelementptr {element}, ptr %out, i64 %i
  %x = load {element}, ptr %from
  {body}
  store {element} %y, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {count}
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


def object_code(ir: str) -> bytes:
    """The object file of a module of LLVM IR text."""
    machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic")
    module = llvm.parse_assembly(ir)
    module.verify()
    return machine.emit_object(module)


def artifact(ir: str, inputs, outputs, *, aliases=(), arena_bytes=0, imports=(), seconds=0.0,
             name="test") -> Artifact:  # fmt: skip
    """An artifact of one object. inputs and outputs: (dtype name, shape); seconds: its cost."""
    results = [{"dtype": dtype, "shape": list(shape)} for dtype, shape in outputs]
    for result, donated in zip(results, aliases):
        if donated is not None:
            result["alias_of"] = donated
    manifest = {
        "abi_version": ABI_VERSION,
        "name": name,
        "entry": "lamina_entry",
        "inputs": [{"dtype": dtype, "shape": list(shape)} for dtype, shape in inputs],
        "outputs": results,
        "arena_bytes": arena_bytes,
        "imports": list(imports),
        "cost": {"flops": seconds * 10e9},
    }
    return Artifact(manifest, {"code": object_code(ir)})


class Held:
    """A program that is queued, and adds 1 to four floats once it is let go: as long as a test wants it to take."""

    shape = (4,)

    def __init__(self) -> None:
        self._c = ctypes.CDLL(None)
        self._semaphore = ctypes.create_string_buffer(64)  # no sem_t is larger
        self._c.sem_init(self._semaphore, 0, 0)
        one = f"call i32 @sem_wait(ptr inttoptr (i64 {ctypes.addressof(self._semaphore)} to ptr))\n"
        kind = ("float32", self.shape)
        code = artifact(elementwise(f"{one}  %y = fadd float %x, 1.0", *self.shape), [kind], [kind], seconds=1,
                        imports=["sem_wait", "usleep", "lamina_fail"])  # fmt: skip
        self._program = load(code)

    def __call__(self, arguments: list[Any]) -> list[Any]:
        return self._program(arguments)

    def let_go(self, calls: int = 1) -> None:
        """So many calls end, of those that were made or will be."""
        for _ in range(calls * math.prod(self.shape)):
            self._c.sem_post(self._semaphore)
