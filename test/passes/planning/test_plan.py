"""Plans of random programs, run on bytes, must give what the programs mean."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator
from itertools import groupby

import numpy as np
import pytest

from lamina.passes.planning import overlap
from lamina.passes.planning.concurrent_kernels import LEAST_NS
from lamina.passes.planning.offsets import ALIGNMENT, assign_offsets
from lamina.passes.planning.plan import (
    BranchStep,
    CallStep,
    CopyStep,
    Plan,
    Step,
    WaitStep,
    WhileStep,
    make_plan,
)
from lamina.passes.planning.program import (
    Block,
    Branch,
    Call,
    Constant,
    Program,
    View,
    While,
    walk,
)

SIZES = (8, 64, 64, 100)
PREDICATE = 1
MAX_TRIPS = 3


def content(size: int, *parts: object) -> bytes:
    """Bytes that depend on all of `parts`."""
    seed = hashlib.sha256(repr(parts).encode()).digest()
    return (seed * (size // len(seed) + 1))[:size]


class Generator:
    """Random programs, rich in what makes planning hard."""

    def __init__(self, seed: int, meets: bool = False) -> None:
        self.meets = meets
        self.random = random.Random(seed)
        self.bytes: dict[int, int] = {}
        self.kernels = 0

    def value(self, size: int) -> int:
        number = len(self.bytes)
        self.bytes[number] = size
        return number

    def program(self) -> Program:
        pick = self.random
        arguments = [self.value(pick.choice(SIZES)) for _ in range(pick.randint(1, 4))]
        body = Block(arguments)
        self.fill(body, list(arguments), depth=0, count=pick.randint(1, 12))
        known = self.visible
        body.yields = [pick.choice(known) for _ in range(pick.randint(1, 4))]
        donated, promised = {}, {}
        for position, argument in enumerate(arguments):
            if pick.random() < 0.5:
                same = [
                    i for i, v in enumerate(body.yields) if self.bytes[v] == self.bytes[argument]
                ]
                donated[position] = tuple(same)
                if same and same[0] not in promised.values() and pick.random() < 0.5:
                    promised[position] = same[0]
        return Program(body, self.bytes, donated, promised)

    def of_size(self, visible: list[int], size: int) -> int | None:
        fitting = [v for v in visible if self.bytes[v] == size]
        recent = fitting[-3:] if self.random.random() < 0.6 else fitting
        return self.random.choice(recent) if recent else None

    def fill(self, block: Block, visible: list[int], depth: int, count: int) -> None:
        """Append `count` operations to `block`; `self.visible` ends as what it can yield."""
        for _ in range(count):
            kind = self.random.choices(
                ["call", "update", "view", "constant", "while", "branch"],
                [6, 4, 1, 1, 2 * (depth < 2), 1 * (depth < 2)],
            )[0]
            getattr(self, kind)(block, visible, depth)
        self.visible = visible

    def call(self, block: Block, visible: list[int], depth: int, size: int | None = None) -> int:
        pick = self.random
        operands = [pick.choice(visible[-6:]) for _ in range(pick.randint(1, 3))]
        count = 1 if size else pick.choice((1, 1, 2))
        results = [self.value(size or pick.choice(SIZES)) for _ in range(count)]
        may_alias = {}
        for position, operand in enumerate(operands):
            fitting = [i for i, r in enumerate(results) if self.bytes[r] == self.bytes[operand]]
            if fitting and pick.random() < 0.6:
                may_alias[position] = tuple(fitting)
        self.kernels += 1
        if self.meets and pick.random() < 0.4:
            block.ops.append(Call(f"m{self.kernels}", operands, results, has_effect=True, meets=True))
        else:
            ns = LEAST_NS if pick.random() < 0.4 else 0
            block.ops.append(Call(f"k{self.kernels}", operands, results, {}, may_alias, alone_ns=ns))
        visible += results
        return results[0]

    def update(self, block: Block, visible: list[int], depth: int) -> None:
        old = self.random.choice(visible[-5:])
        others = [self.random.choice(visible) for _ in range(self.random.randint(0, 2))]
        new = self.value(self.bytes[old])
        self.kernels += 1
        ns = LEAST_NS if self.random.random() < 0.4 else 0
        block.ops.append(Call(f"u{self.kernels}", [old, *others], [new], {0: 0}, alone_ns=ns))
        visible.append(new)

    def view(self, block: Block, visible: list[int], depth: int) -> None:
        old = self.random.choice(visible)
        visible.append(self.value(self.bytes[old]))
        block.ops.append(View(old, visible[-1]))

    def constant(self, block: Block, visible: list[int], depth: int) -> None:
        visible.append(self.value(self.random.choice(SIZES)))
        block.ops.append(Constant(visible[-1], fill=self.random.random() < 0.5))

    def yields(self, block: Block, visible: list[int], sizes: list[int]) -> list[int]:
        """One visible value of each size, or the result of a new call."""
        found = []
        for size in sizes:
            value = self.of_size(visible, size)
            found.append(self.call(block, visible, 9, size) if value is None else value)
        return found

    def while_(self, block: Block, visible: list[int], depth: int) -> None:
        pick = self.random
        inits = [pick.choice(visible[-6:]) for _ in range(pick.randint(1, 4))]
        sizes = [self.bytes[v] for v in inits]
        cond, body = Block([self.value(s) for s in sizes]), Block([self.value(s) for s in sizes])
        inside = visible + cond.arguments
        self.fill(cond, inside, depth=9, count=pick.randint(0, 2))
        cond.yields = [self.call(cond, inside, 9, PREDICATE)]
        inside = visible + body.arguments
        self.fill(body, inside, depth + 1, pick.randint(0, 6))
        body.yields = self.yields(body, inside, sizes)
        if pick.random() < 0.4:
            self.exchange(body, sizes)
        results = [self.value(s) for s in sizes]
        block.ops.append(While(inits, cond, body, results))
        visible += results

    def exchange(self, body: Block, sizes: list[int]) -> None:
        """Let carried values of one size take over what others were."""
        for i, size in enumerate(sizes):
            same = [v for v, of in zip(body.arguments, sizes, strict=True) if of == size]
            if self.random.random() < 0.7:
                body.yields[i] = self.random.choice(same)

    def branch(self, block: Block, visible: list[int], depth: int) -> None:
        pick = self.random
        sizes = [pick.choice(SIZES) for _ in range(pick.randint(1, 2))]
        selector = self.call(block, visible, 9, PREDICATE)
        blocks = []
        for _ in range(pick.randint(1, 3)):
            inner, inside = Block(), list(visible)
            self.fill(inner, inside, depth + 1, pick.randint(0, 3))
            inner.yields = self.yields(inner, inside, sizes)
            blocks.append(inner)
        results = [self.value(s) for s in sizes]
        block.ops.append(Branch(selector, blocks, results))
        visible += results


setattr(Generator, "while", Generator.while_)


def meaning(program: Program, arguments: list[bytes]) -> list[bytes]:
    """What the program computes, on values that nobody can overwrite."""
    known: dict[int, bytes] = dict(zip(program.body.arguments, arguments, strict=True))

    def run(block: Block) -> list[bytes]:
        for op in block.ops:
            match op:
                case Call():
                    read = [known[v] for v in op.operands]
                    for i, v in enumerate(op.results):
                        known[v] = content(program.bytes[v], op.kernel, i, read)
                case View():
                    known[op.result] = known[op.operand]
                case Constant():
                    known[op.result] = content(program.bytes[op.result], "constant", op.result)
                case Branch():
                    chosen = op.blocks[known[op.selector][0] % len(op.blocks)]
                    known.update(zip(op.results, run(chosen), strict=True))
                case While():
                    carry = [known[v] for v in op.operands]
                    for trip in range(MAX_TRIPS + 1):
                        known.update(zip(op.cond.arguments, carry, strict=True))
                        if trip == MAX_TRIPS or run(op.cond)[0][0] % 3 == 0:
                            run(op.cond)
                            break
                        known.update(zip(op.body.arguments, carry, strict=True))
                        carry = run(op.body)
                    known.update(zip(op.results, carry, strict=True))
        return [known[v] for v in block.yields]

    return run(program.body)


class Machine:
    """Runs a plan on real bytes, as a kernel might: results are scribbled on before operands are
    read, but for the operands that are overwritten on purpose. Calls that run at the same time are
    run in turn, or `backwards`."""

    def __init__(
        self, program: Program, plan: Plan, arguments: list[bytes], backwards: bool
    ) -> None:
        noise = np.random.default_rng(0)
        self.program, self.plan, self.backwards = program, plan, backwards
        self.begun: CallStep | None = None
        self.place: dict[int, int] = {}  # of groups whose buffers change: whose they have
        self.arena = noise.integers(0, 256, plan.arena_bytes, dtype=np.uint8)
        self.arguments = [np.frombuffer(a, np.uint8).copy() for a in arguments]
        self.results = [
            self.arguments[plan.alias_of[i]]
            if i in plan.alias_of
            else noise.integers(0, 256, program.bytes[v], dtype=np.uint8)
            for i, v in enumerate(program.body.yields)
        ]

    def at(self, value: int, size: int) -> np.ndarray:
        name = self.plan.sharing.find(value)
        slot = self.plan.slot(self.place.get(name, name))
        match slot.space:
            case "arena":
                assert slot.number % ALIGNMENT == 0 and slot.number + size <= self.plan.arena_bytes
                return self.arena[slot.number : slot.number + size]
            case "argument":
                return self.arguments[slot.number]
            case "result":
                return self.results[slot.number]
            case "lent":
                lender = self.results[slot.number]
                assert slot.offset % ALIGNMENT == 0 and slot.offset + size <= lender.size
                return lender[slot.offset : slot.offset + size]
        data = np.frombuffer(content(size, "constant", slot.number), np.uint8)
        return data  # read-only: writing raises

    def of(self, value: int) -> np.ndarray:
        return self.at(value, self.program.bytes[value])

    def run(self, steps: list) -> None:
        for step in self.in_order(steps):
            match step:
                case CopyStep(value, source, target):
                    size = self.program.bytes[value]
                    data = (
                        np.frombuffer(content(size, "constant", value), np.uint8)
                        if source is None
                        else self.at(source, size).copy()
                    )
                    self.at(target, size)[:] = data
                case CallStep() if step.call.begun:
                    assert self.begun is None
                    self.begun = step
                    self.call(step)
                case CallStep():
                    assert self.begun is None or not step.call.has_effect
                    self.call(step)
                case WaitStep():
                    assert self.begun is not None
                    call, self.begun = self.begun, None
                    come = [self.of(value).tobytes() for value in call.call.results]
                    self.call(call)  # with operands that are still there
                    assert come == [self.of(value).tobytes() for value in call.call.results]
                case BranchStep():
                    chosen = self.of(step.op.selector)[0] % len(step.blocks)
                    self.run(step.blocks[chosen])
                case WhileStep():
                    self.loop(step)

    def loop(self, step: WhileStep) -> None:
        before = dict(self.place)
        cycles = step.rotation.cycles if step.rotation else []
        for trip in range(MAX_TRIPS + 1):
            self.run(step.cond)
            if self.of(step.op.cond.yields[0])[0] % 3 == 0 or trip == MAX_TRIPS:
                break
            self.run(step.body)
            for cycle in cycles:
                taken = [self.place.get(name, name) for name in cycle[1:] + cycle[:1]]
                self.place.update(zip(cycle, taken, strict=True))
        self.place = before
        for cycle, back in zip(cycles, step.back, strict=True):
            if trip % len(cycle):
                self.run(back[trip % len(cycle) - 1])

    def in_order(self, steps: list) -> Iterator[Step]:
        """The steps, with the calls of a team in the order asked for: any must do."""
        for _, team in groupby(steps, lambda s: (isinstance(s, CallStep) and s.call.team) or id(s)):
            calls = list(team)
            yield from calls[::-1] if self.backwards else calls

    def call(self, step: CallStep) -> None:
        call = step.call
        operands = [self.of(v) for v in call.operands]
        results = [self.of(v) for v in call.results]
        for operand, result in step.in_place.items():
            operands[operand] = results[result]
        assert set(call.inout) <= set(step.in_place)
        read = {i: operands[i].tobytes() for i in step.in_place}
        for result in results:
            result[:] = 0xEE
        read |= {i: o.tobytes() for i, o in enumerate(operands) if i not in step.in_place}
        ordered = [read[i] for i in range(len(operands))]
        for i, result in enumerate(results):
            result[:] = np.frombuffer(content(result.size, call.kernel, i, ordered), np.uint8)


def check(
    program: Program, lends_results: bool = False, rotate_from: int | None = None, overlaps: bool = False
) -> Plan:
    """Plan and run; the results must be right and nothing of the caller's overwritten."""
    given = [content(program.bytes[v], "argument", v) for v in program.body.arguments]
    expected = meaning(program, given)
    plan = make_plan(program, lends_results=lends_results, rotate_from=rotate_from, overlaps=overlaps)
    assert all(plan.alias_of[r] == a for a, r in program.promised.items())
    for backwards in (False, True):
        machine = Machine(program, plan, given, backwards)
        machine.run(plan.steps)
        assert [r.tobytes() for r in machine.results] == expected
        for position, (now, then) in enumerate(zip(machine.arguments, given, strict=True)):
            assert position in plan.alias_of.values() or now.tobytes() == then
    return plan


@pytest.mark.parametrize("chunk", range(8))
@pytest.mark.parametrize(
    ("lends_results", "rotate_from"), [(False, None), (True, None), (False, 60), (True, 1)]
)
def test_random_programs(chunk: int, lends_results: bool, rotate_from: int | None) -> None:
    for seed in range(chunk * 100, chunk * 100 + 100):
        try:
            check(Generator(seed).program(), lends_results, rotate_from)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.parametrize("chunk", range(4))
def test_random_programs_whose_calls_are_begun(monkeypatch, chunk: int) -> None:
    monkeypatch.setattr(overlap, "_LEAST_BYTES", 0)
    begun = 0
    for seed in range(chunk * 100, chunk * 100 + 100):
        program = Generator(seed, meets=True).program()
        met = [op.kernel for op in walk(program.body) if isinstance(op, Call) and op.meets]
        try:
            check(program, lends_results=bool(seed % 2), overlaps=True)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        calls = [op for op in walk(program.body) if isinstance(op, Call)]
        assert [op.kernel for op in calls if op.meets] == met
        begun += sum(op.begun for op in calls)
    assert begun > 30


def gradients_then_updates() -> Program:
    """Of three layers, each sent to other devices before it is used."""
    large = overlap._LEAST_BYTES
    ops: list = []
    for i in range(3):
        ops += [
            Call(f"back{i}", [3 + i - (i == 0)], [4 + i]),
            Call(f"sum{i}", [4 + i], [7 + i], has_effect=True, meets=True),
            Call(f"update{i}", [i, 7 + i], [10 + i]),
        ]
    ops[0].operands[:] = [3]
    return Program(Block([0, 1, 2, 3], ops, [10, 11, 12]), dict.fromkeys(range(13), large))


def test_a_layer_goes_back_while_the_one_before_is_sent() -> None:
    program = gradients_then_updates()
    check(program, overlaps=True)
    names = [op.kernel if isinstance(op, Call) else type(op).__name__ for op in program.body.ops]
    assert names == [
        "back0", "sum0", "back1", "Wait", "update0", "sum1", "back2", "Wait", "update1", "sum2", "update2",
    ]  # fmt: skip
    alone = gradients_then_updates()
    check(alone)
    assert not any(op.begun for op in alone.body.ops if isinstance(op, Call))


def test_what_is_sent_is_not_overwritten_meanwhile() -> None:
    program = gradients_then_updates()
    second = program.body.ops[3]
    assert isinstance(second, Call)
    second.inout = {0: 0}
    check(program, overlaps=True)
    assert not any(op.begun for op in program.body.ops[:2] if isinstance(op, Call))


def copies(steps: list) -> list[CopyStep]:
    """Every copy in a plan, those inside control flow included."""
    found = []
    for step in steps:
        match step:
            case CopyStep():
                found.append(step)
            case WhileStep():
                found += copies(step.cond) + copies(step.body)
            case BranchStep():
                found += [c for block in step.blocks for c in copies(block)]
    return found


def loop(body: Block, cond_args: list[int], inits: list[int], results: list[int], p: int) -> While:
    return While(inits, Block(cond_args, [Call("pred", cond_args[:1], [p])], [p]), body, results)


def test_a_scan_writes_its_rows_in_place() -> None:
    # arguments: 0 counter; 1 array (filled constant), loop carries (counter, array)
    body = Block(
        [4, 5],
        [
            Call("next", [4], [6], {}, {0: (0,)}),
            Call("row", [5, 4], [7]),
            Call("update", [5, 7, 4], [8], {0: 0}),
        ],
        [6, 8],
    )
    main = Block([0], [Constant(1, fill=True), loop(body, [2, 3], [0, 1], [9, 10], 11)], [10])
    size = {v: 8 for v in (0, 2, 4, 6, 9)} | {v: 4096 for v in (1, 3, 5, 8, 10)} | {7: 64, 11: 1}
    plan = check(Program(main, size))
    made = copies(plan.steps)
    assert [(c.value, c.source) for c in made] == [(1, None), (0, 0)]  # the fill; the counter
    assert plan.slot(8).space == "result"


def test_readers_go_before_the_update() -> None:
    main = Block(
        [0, 1],
        [
            Call("make", [0], [2]),
            Call("update", [2, 1], [3], {0: 0}),
            Call("read", [2, 1], [4]),
        ],
        [3, 4],
    )
    plan = check(Program(main, dict.fromkeys(range(5), 64)))
    assert copies(plan.steps) == []
    assert [s.call.kernel for s in plan.steps] == ["make", "read", "update"]


def called(plan: Plan) -> list[str]:
    return [step.call.kernel for step in plan.steps if isinstance(step, CallStep)]


def layers_then_updates(has_effect: bool = False) -> Program:
    """Three layers' gradients, each of 4 KiB; updates of the parameters 0 to 2 at the end, by a
    rate that comes late."""
    ops = [Call(f"layer{i}", [4 + i], [5 + i]) for i in range(3)]
    ops.append(Call("rate", [3], [10]))
    ops += [Call(f"update{i}", [i, 5 + i, 10], [11 + i], has_effect=has_effect) for i in range(3)]
    sizes = dict.fromkeys(range(14), 4096) | {10: 4}
    return Program(Block([0, 1, 2, 3, 4], ops, [11, 12, 13]), sizes)


def test_updates_follow_what_they_need() -> None:
    plan = check(layers_then_updates())
    order = ["rate", "layer0", "layer1", "update0", "layer2", "update1", "update2"]
    assert called(plan) == order
    assert plan.arena_bytes == 2 * 4096 + ALIGNMENT


def test_effects_keep_their_places() -> None:
    order = ["rate", "layer0", "layer1", "layer2", "update0", "update1", "update2"]
    assert called(check(layers_then_updates(has_effect=True))) == order


def two_directions() -> list[Call]:
    """Two loops of 100 us, each with an operand made before it."""
    loop = {"alone_ns": 100_000}
    return [
        Call("in0", [0], [1]), Call("loop0", [1], [2], **loop),
        Call("in1", [0], [3]), Call("loop1", [3], [4], **loop), Call("sum", [2, 4], [5]),
    ]  # fmt: skip


def test_loops_that_need_not_each_other_are_a_team() -> None:
    plan = check(Program(Block([0], two_directions(), [5]), dict.fromkeys(range(6), 4096)))
    assert called(plan) == ["in0", "in1", "loop0", "loop1", "sum"]
    assert [step.call.team for step in plan.steps] == [0, 0, 1, 1, 0]


@pytest.mark.parametrize("change", ["short", "effect", "needs"])
def test_what_is_no_team(change: str) -> None:
    ops = two_directions()
    if change == "short":
        ops[3].alone_ns = LEAST_NS - 1
    elif change == "effect":
        ops[2].has_effect = True
    else:
        ops[2].operands = [2]
    plan = check(Program(Block([0], ops, [5]), dict.fromkeys(range(6), 4096)))
    assert not any(step.call.team for step in plan.steps)


def test_what_a_team_reads_is_overwritten_by_none_of_it() -> None:
    loop = {"alone_ns": 100_000}
    ops = [
        Call("make", [0], [1]), Call("loop0", [1], [2], {}, {0: (0,)}, **loop),
        Call("loop1", [1], [3], {}, {0: (0,)}, **loop),
    ]  # fmt: skip
    plan = check(Program(Block([0], ops, [2, 3]), dict.fromkeys(range(4), 1 << 20)))
    assert not any(step.in_place for step in plan.steps)


def test_loops_that_begin_with_a_callers_array_are_a_team() -> None:
    loop = {"alone_ns": 100_000}
    ops = [Call(f"loop{i}", [0], [1 + i], {0: 0}, **loop) for i in range(3)]
    plan = check(Program(Block([0], ops, [1, 2, 3]), dict.fromkeys(range(4), 64)))
    assert [step.call.team for step in plan.steps if isinstance(step, CallStep)] == [1, 1, 1]
    assert [isinstance(step, CopyStep) for step in plan.steps] == [True] * 3 + [False] * 3


def test_a_swap_takes_one_temporary() -> None:
    body = Block([4, 5], [], [5, 4])
    main = Block([0, 1], [loop(body, [2, 3], [0, 1], [6, 7], 8)], [6, 7])
    plan = check(Program(main, dict.fromkeys(range(8), 64) | {8: 1}))
    inside = next(s for s in plan.steps if isinstance(s, WhileStep))
    assert len(copies(inside.body)) == 3


def rotating(count: int, yields: list[int]) -> tuple[Plan, WhileStep]:
    """A loop that carries `count` arrays, of which `yields` says what they become: the array of that
    number, or of a later number what a step makes of all."""
    carry, inits = list(range(2 * count, 3 * count)), list(range(count))
    made = 3 * count
    body = Block(carry, [Call("f", carry, [made])], [[*carry, made][i] for i in yields])
    results = list(range(made + 1, made + 1 + count))
    top = loop(body, list(range(count, 2 * count)), inits, results, made + 1 + count)
    sizes = dict.fromkeys(range(made + 1 + count), 64) | {made + 1 + count: 1}
    plan = check(Program(Block(inits, [top], results), sizes), rotate_from=64)
    return plan, next(s for s in plan.steps if isinstance(s, WhileStep))


@pytest.mark.parametrize(
    ("yields", "cycles", "copied"),
    [
        ([1], [2], 0),  # what is made of the whole array is the array of the next step
        ([1, 0], [2], 0),
        ([2, 0], [3], 0),
        ([1, 2, 3], [4], 0),
        ([1, 2, 0], [3], 0),
        ([1, 0, 3, 2], [2, 2], 0),
        ([2, 2], [2], 1),  # one of both is the other's copy
        ([0, 0], [], 1),  # the first stays
        ([2, 0, 0], [3], 1),
        ([1, 1, 3], [2], 1),
    ],
)
def test_buffers_change_places(yields: list[int], cycles: list[int], copied: int) -> None:
    _, inside = rotating(len(yields), yields)
    found = [len(cycle) for cycle in inside.rotation.cycles] if inside.rotation else []
    assert (found, len(copies(inside.body))) == (cycles, copied)


def test_small_buffers_are_copied() -> None:
    body = Block([4, 5], [], [5, 4])
    main = Block([0, 1], [loop(body, [2, 3], [0, 1], [6, 7], 8)], [6, 7])
    plan = check(Program(main, dict.fromkeys(range(8), 64) | {8: 1}), rotate_from=65)
    inside = next(s for s in plan.steps if isinstance(s, WhileStep))
    assert inside.rotation is None and len(copies(inside.body)) == 3


@pytest.mark.parametrize(("kind", "size"), [("inout", 64), ("may_alias", 4096)])
def test_the_older_level_is_overwritten(kind: str, size: int) -> None:
    """What a step makes of two levels is in the older's buffer, which is the newer's in the next."""
    alias = {"inout": {1: 0}} if kind == "inout" else {"may_alias": {1: (0,)}}
    body = Block([4, 5], [Call("f", [4, 5], [8], **alias)], [8, 4])
    main = Block([0, 1], [loop(body, [2, 3], [0, 1], [6, 7], 9)], [6, 7])
    plan = check(Program(main, dict.fromkeys(range(9), size) | {9: 1}), rotate_from=1)
    inside = next(s for s in plan.steps if isinstance(s, WhileStep))
    assert copies(inside.body) == [] and inside.rotation is not None
    assert [len(cycle) for cycle in inside.rotation.cycles] == [2]


def test_what_is_not_read_after_a_loop_is_not_brought_back() -> None:
    body = Block([4, 5], [], [5, 4])
    main = Block([0, 1], [loop(body, [2, 3], [0, 1], [6, 7], 8)], [7])
    plan = check(Program(main, dict.fromkeys(range(8), 64) | {8: 1}), rotate_from=1)
    inside = next(s for s in plan.steps if isinstance(s, WhileStep))
    assert [[len(steps) for steps in back] for back in inside.back] == [[1]]


def test_donated_argument_is_updated_in_place() -> None:
    main = Block([0, 1], [Call("step", [0, 1], [2], {}, {0: (0,)})], [2])
    plan = check(Program(main, dict.fromkeys(range(3), 64), {0: (0,)}))
    assert plan.alias_of == {0: 0} and plan.arena_bytes == 0 and plan.unused_donations == []


def test_a_promised_buffer_is_written_last_where_it_is_still_read() -> None:
    ops = [Call("step", [0, 1], [2]), Call("again", [0, 2], [3])]
    plan = check(
        Program(Block([0, 1], ops, [2, 3]), dict.fromkeys(range(4), 64), {0: (0, 1)}, {0: 0})
    )
    assert plan.alias_of == {0: 0}
    assert [(c.value, plan.slot(c.target).space) for c in copies(plan.steps)] == [(2, "argument")]


def test_a_donated_argument_is_read_before_it_is_overwritten() -> None:
    ops = [Call("step", [0], [1], {}, {0: (0,)}), Call("sum", [0], [2])]
    plan = check(Program(Block([0], ops, [1, 2]), {0: 64, 1: 64, 2: 8}, {0: (0,)}, {0: 0}))
    assert copies(plan.steps) == []


def test_donation_that_cannot_be_used_is_reported() -> None:
    main = Block([0, 1], [Call("step", [0, 1], [2])], [2])
    plan = check(Program(main, {0: 64, 1: 64, 2: 8}, {0: ()}))
    assert plan.unused_donations == [0]


def test_callers_array_is_copied_before_an_update() -> None:
    main = Block([0, 1], [Call("update", [0, 1], [2], {0: 0})], [2])
    plan = check(Program(main, dict.fromkeys(range(3), 64)))
    assert [(c.source, plan.slot(c.target).space) for c in copies(plan.steps)] == [(0, "result")]


def test_one_value_returned_twice_and_an_argument_returned() -> None:
    main = Block([0], [Call("f", [0], [1])], [1, 1, 0])
    plan = check(Program(main, dict.fromkeys(range(2), 64)))
    assert len(copies(plan.steps)) == 2


def test_a_chain_needs_two_buffers() -> None:
    ops = [Call("f", [i], [i + 1]) for i in range(100)]
    plan = check(Program(Block([0], ops, [100]), dict.fromkeys(range(101), 1024)))
    assert plan.arena_bytes == 2 * 1024


def test_results_hold_what_dies_before_they_are_written() -> None:
    """Two of three temporaries fit into the result, one behind the other; a donated argument's buffer
    is in use from the beginning."""
    sizes = {0: 64, 1: 64, 2: 64, 3: 64, 4: 128}
    calls = [Call("a", [0], [1]), Call("b", [0], [2]), Call("c", [1, 2], [3]), Call("d", [3], [4])]
    program = Program(Block([0], calls, [4]), sizes)
    plan = check(program, lends_results=True)
    assert plan.arena_bytes == 64
    assert {plan.slot(1)[1:], plan.slot(2)[1:]} == {(0, 0), (0, 64)}
    donated = Program(Block([0], calls[:3], [3]), sizes, {0: (0,)}, {0: 0})
    assert check(donated, lends_results=True).arena_bytes == 128


def test_planning_a_long_program_is_linear_in_its_length() -> None:
    def calls(count: int) -> int:
        """Of functions, while a program of so many kernels is planned."""
        ops = [Call("f", [i, i - i % 7], [i + 1], {}, {0: (0,)}) for i in range(count)]
        ops.append(Call("end", [count], [count + 1]))
        program = Program(Block([0], ops, [count + 1]), dict.fromkeys(range(count + 2), 64))
        called = 0

        def count_call(*_: object) -> None:
            nonlocal called
            called += 1

        sys.setprofile(count_call)
        try:
            make_plan(program, lends_results=True)
        finally:
            sys.setprofile(None)
        return called

    assert calls(4_000) < 2.2 * calls(2_000)


def test_offsets_never_overlap_while_alive() -> None:
    pick = random.Random(1)
    for _ in range(50):
        buffers = {}
        for name in range(60):
            first = pick.randint(0, 40)
            buffers[name] = (pick.choice((0, 1, 64, 65, 1000)), first, first + pick.randint(0, 15))
        offsets, top = assign_offsets(buffers)
        for a, (size, first, last) in buffers.items():
            assert offsets[a] % ALIGNMENT == 0 and offsets[a] + size <= top
            for b, (other, start, end) in buffers.items():
                if a < b and first <= end and start <= last:
                    below = offsets[a] + size <= offsets[b] or offsets[b] + other <= offsets[a]
                    assert below or not size or not other


def test_a_small_buffer_does_not_keep_a_large_one_out() -> None:
    """The gap that the second leaves would be the small one's, and the last need a place of its own."""
    buffers = {0: (4096, 0, 9), 1: (4096, 1, 2), 2: (4096, 2, 6), 3: (64, 3, 5), 4: (4096, 5, 9)}
    offsets, top = assign_offsets(buffers)
    assert top == 3 * 4096 + 64
    assert offsets[4] == offsets[1]


def test_large_buffers_are_placed_before_small_ones() -> None:
    """In the order in which they come the small one would be first, and move both large ones up."""
    buffers = {0: (64, 0, 1), 1: (4096, 1, 2), 2: (4096, 2, 3)}
    offsets, top = assign_offsets(buffers)
    assert top == 2 * 4096
    assert offsets[0] == offsets[2]
