"""LLVM IR text to machine code: verify, optimise and emit with llvmlite, for CPU and CUDA alike.

llvmlite serialises all calls in one process behind a global lock; compile in parallel with
processes.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lamina.forks import Lock, new_lock, take_with_forks
from lamina.records import Record

if TYPE_CHECKING:
    import llvmlite.binding as llvm


class TargetMachine(Record):
    """What LLVM needs to know of the machine it generates code for."""

    triple: str
    cpu: str
    features: str


class CodegenOptions(Record):
    """How hard LLVM tries: the `level` of code generation, and the `passes` before, those of a level or
    these. `vectorise` turns the loop vectoriser on. `select_fast`, at level 0, selects instructions in
    half the time, but fuses no product with a sum. With `in_order`, instructions stay in the order in
    which they are written, but for what the processor does. `reduce_strength` looks for addresses that
    are better counted on from one iteration to the next than computed in each."""

    level: int = 2
    passes: int | tuple[str, ...] = 2
    vectorise: bool = True
    unroll: bool = True
    select_fast: bool = False
    in_order: bool = False
    reduce_strength: bool = True


_LEAST_PASSES = ("sroa", "instruction_combine", "simplify_cfg")
FAST = CodegenOptions(level=0, passes=_LEAST_PASSES, vectorise=False, unroll=False)
"""Any code, soon; these passes pay even where it runs once, as they leave less to translate."""
_INLINED = ("always_inliner", "global_dead_code_eliminate")
_VECTOR_PASSES = (*_LEAST_PASSES, "loop_rotate")
OF_VECTORS = CodegenOptions(
    passes=(*_INLINED, *_VECTOR_PASSES), vectorise=False, unroll=False, reduce_strength=False
)
"""For loops over vectors: the passes of a level would look for others, in vain and in five times the
time. Their addresses are those of the vectors' first elements, which x86 adds up in an instruction:
strength reduction takes a third of code generation to find that out."""
OF_FUNCTIONS = replace(OF_VECTORS, passes=(*_INLINED, "new_gvn", *_VECTOR_PASSES))
"""The same where functions may share work, as sine and cosine of the same operand do."""
SIMPLIFY = "simplify"
"""Among the passes: what the first level does to each function before it looks for loops to vectorise."""
LOOPS_OF_VECTORS = replace(OF_VECTORS, passes=(*_INLINED, SIMPLIFY))
"""For such loops inside of others: buffers on the stack become registers, and what stays the same leaves
loops."""


class MachineCode(Record):
    """The object file, and the texts of the optimised module and of its assembly when they were
    asked for."""

    object: bytes
    optimised: str | None = None
    assembly: str | None = None


def emit(
    text: str, machine: TargetMachine, options: CodegenOptions, *, keep_texts: bool = False
) -> MachineCode:
    """TargetMachine code of a module in LLVM 22 text. Raises ValueError with LLVM's message on text it
    refuses."""
    with _one_selector:
        module, target_machine = _optimised(text, machine, options)
        with _selector(options):
            code = target_machine.emit_object(module)
            if not keep_texts:
                return MachineCode(code)
            return MachineCode(code, str(module), target_machine.emit_assembly(module))


def emit_assembly(text: str, machine: TargetMachine, options: CodegenOptions) -> tuple[str, str]:
    """The optimised module and its assembly, where the assembler is another's, as for PTX. Raises
    ValueError as `emit` does."""
    with _one_selector:
        module, target_machine = _optimised(text, machine, options)
        with _selector(options):
            return str(module), target_machine.emit_assembly(module)


_one_selector = new_lock()


class _LockOfLlvmlite:
    """What llvmlite holds around each of its calls, of other programs, too; it has no public name."""

    def acquire(self, blocking: bool = True) -> bool:
        lock = self._lock()
        return lock is None or lock.acquire(blocking)

    def release(self) -> None:
        lock = self._lock()
        if lock is not None:
            lock.release()

    def _lock(self) -> Lock | None:
        binding: Any = sys.modules.get("llvmlite.binding.ffi")
        for name in ("lib", "_lock", "_lock"):
            binding = getattr(binding, name, None)
        return binding


take_with_forks(_LockOfLlvmlite())


@contextmanager
def _selector(options: CodegenOptions) -> Iterator[None]:
    """Selects and orders instructions as these options say: to LLVM they are options of the whole
    process."""
    import llvmlite.binding as llvm

    # What a target does without being told differs.
    llvm.set_option("lamina", f"-enable-misched={'false' if options.in_order else 'true'}")
    llvm.set_option("lamina", f"-disable-lsr={'false' if options.reduce_strength else 'true'}")
    if options.select_fast:
        llvm.set_option("lamina", "-fast-isel=true")
    try:
        yield
    finally:
        if options.select_fast:
            llvm.set_option("lamina", "-fast-isel=false")


def _optimised(
    text: str, machine: TargetMachine, options: CodegenOptions
) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    import llvmlite.binding as llvm

    target_machine = _target_machine(machine, options.level, options.select_fast)
    variants = _VARIANT.findall(text)
    if variants and options.vectorise:
        text += _kept(variants)
    module = _parsed(text)
    module.triple = machine.triple
    module.data_layout = str(target_machine.target_data)
    if options.passes == () and not variants:
        return module, target_machine
    level = options.passes if isinstance(options.passes, int) else int(SIMPLIFY in options.passes)
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = options.vectorise
    tuning.loop_interleaving = options.vectorise
    tuning.loop_unrolling = options.unroll
    tuning.slp_vectorization = False
    # One for each module: each run leaves it callbacks to what is gone afterwards. llvmlite 0.50 frees it but for
    # the list of these, 1.5 KB.
    with llvm.create_pass_builder(target_machine, tuning) as builder:
        if variants and not options.vectorise:
            _run(_DROPPING, module, builder)
        if isinstance(options.passes, tuple):
            _run(tuple(name for name in options.passes if name != SIMPLIFY), module, builder)
            if SIMPLIFY in options.passes:
                _simplify(module, builder)
        else:
            with _freed(builder.getModulePassManager()) as passes:
                passes.run(module, builder)
        if variants and options.vectorise:
            module = _parsed(_without_kept(str(module)))
            _run(_INLINING, module, builder)
    return module, target_machine


def _simplify(module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    with _freed(builder.getFunctionPassManager()) as passes:
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


def _parsed(text: str) -> llvm.ModuleRef:
    import llvmlite.binding as llvm

    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise ValueError(f"LLVM refuses the generated module: {error}") from error
    return module


# Functions that a loop is vectorised with have no other use before (passes/math/near_and_far.py).
_VARIANT = re.compile(r"_ZGV_LLVM_\w+\((\w+)\)")
_KEPT = "@llvm.compiler.used"
_NOT_INLINED = re.compile(r"(?<=^attributes )(.*)noinline(?=.*\"vector-function-abi-variant\")")


def _kept(functions: list[str]) -> str:
    pointers = [f"ptr @{name}" for name in dict.fromkeys(functions)]
    of = f"[{len(pointers)} x ptr] [{', '.join(pointers)}]"
    return f'\n{_KEPT} = appending global {of}, section "llvm.metadata"\n'


def _without_kept(text: str) -> str:
    """Nothing is kept any longer, and where loops remained scalar, all are inlined."""
    lines = (line for line in text.splitlines(True) if not line.startswith(_KEPT))
    return "".join(_NOT_INLINED.sub(r"\1alwaysinline", line) for line in lines)


_DROPPING = ("global_dead_code_eliminate",)
"""What is done with them where no loop is vectorised."""
_INLINING = ("always_inliner", "global_dead_code_eliminate", "instruction_combine", "simplify_cfg")
"""What is done with them once loops are."""


def _run(names: tuple[str, ...], module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    import llvmlite.binding as llvm

    with _freed(llvm.create_new_module_pass_manager()) as passes:
        for name in names:
            getattr(passes, f"add_{name}_pass")()
        passes.run(module, builder)


@contextmanager
def _freed(passes: Any) -> Iterator[Any]:
    """Passes that are freed afterwards: llvmlite 0.50 does not, since the class that would comes second
    among their bases."""
    from llvmlite.binding.newpassmanagers import NewPassManager

    try:
        yield passes
    finally:
        if not passes.closed:
            NewPassManager._dispose(passes)
            passes.detach()


@functools.cache
def _target_machine(machine: TargetMachine, level: int, select_fast: bool) -> llvm.TargetMachine:
    """One for each way of selecting instructions, as it keeps the one that it began with."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.set_option("lamina", "-fast-isel=false")  # bits would depend on the level
    # Constants of rare blocks would take the registers of a loop's.
    llvm.set_option("lamina", "-disable-hoisting-to-hotter-blocks=all")
    return llvm.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu,
        features=machine.features,
        opt=level,
        reloc="pic",
        codemodel="default",
        jit=True,
    )
