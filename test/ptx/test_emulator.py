"""What the emulator of PTX refuses, and that it says where."""

from __future__ import annotations

import numpy as np
import pytest
from support import ptx

_HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_param_0)
{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .align 16 .b8 held[512];
    ld.param.b64 %rd1, [k_param_0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    mov.b32 %r3, held;
    shl.b32 %r2, %r1, 2;
    add.s32 %r3, %r3, %r2;
"""


def _run(body: str, threads: int = 64, size: int = 64) -> np.ndarray:
    out = np.zeros(size, np.int32)
    ptx.Program(_HEAD + body + "ret;\n}\n").launch("k", (1,), (threads,), [ptx.Pointer(out)])
    return out


def _counts(body: str) -> tuple[int, int]:
    """Sectors of global memory, and conflicts of banks."""
    out = ptx.Pointer(np.zeros(4096, np.int32))
    program = ptx.Program(_HEAD.replace("[512]", "[16384]") + body + "ret;\n}\n")
    found = program.launch("k", (1,), (64,), [out], measures=True)
    return found[ptx.SECTORS], found[ptx.CONFLICTS]


def test_runs() -> None:
    np.testing.assert_array_equal(_run("st.global.b32 [%rd3], %r2;"), 4 * np.arange(64))


@pytest.mark.parametrize(
    "body, message",
    [
        ("add.s32 %r1, %r1, 1;\nfrobnicate.b32 %r1, %r2;\n", "line 18: frobnicate.b32: .* not know this"),
        ("add.funny.s32 %r1, %r2, 1;\n", "line 17: add.funny.s32: .* not know .funny"),
        ("st.global.b32 [%rd3+4], %r1;\n", "line 17: st.global.b32: .* in no variable of global memory"),
        ("st.global.b32 [%rd3+2], %r1;\n", "no multiple of 4"),
        ("st.shared.b32 [%r3+4000], %r1;\n", "outside shared memory"),
        ("ld.shared.b32 %r1, [%r3];\n", "reads shared memory at 0x0 that nobody wrote"),
        ("add.s64 %rd1, %rd1, %r1;\n", "%r1 is of type b32, not s64"),
        ("bra nowhere;\n", "no label nowhere"),
        ("setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 64;\n", "deadlock: a barrier before line 19"),
        ("setp.lt.u32 %p1, %r1, 7;\n@%p1 bra $1;\nret;\n$1:\nshfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;\n", "has ended"),
        ("$2:\nld.volatile.global.b32 %r1, [%rd1];\nsetp.eq.s32 %p1, %r1, 0;\n@%p1 bra $2;\n", "deadlock"),
    ],
)  # fmt: skip
def test_says_what_is_wrong(body: str, message: str) -> None:
    with pytest.raises(ptx.PtxError, match=message):
        _run(body)


def test_a_copy_must_be_waited_for() -> None:
    copy = "cp.async.ca.shared.global [%r3], [%rd3], 4;\ncp.async.commit_group;\n"
    use = "ld.shared.b32 %r4, [%r3];\nst.global.b32 [%rd3], %r4;\n"
    _run(copy + "cp.async.wait_group 0;\n" + use)
    with pytest.raises(ptx.PtxError, match="line 19: ld.shared.b32: touches shared memory .* a copy is writing"):
        _run(copy + use)


@pytest.mark.parametrize(
    "body, sectors, conflicts",
    [
        ("st.global.b32 [%rd3], %r1;\n", 8, 0),
        ("mad.wide.u32 %rd3, %r1, 32, %rd1;\nst.global.b32 [%rd3], %r1;\n", 64, 0),
        ("ld.global.b32 %r2, [%rd1];\n", 2, 0),
        ("st.shared.b32 [%r3], %r1;\n", 0, 0),
        ("mad.lo.u32 %r3, %r1, 124, %r3;\nst.shared.b32 [%r3], %r1;\n", 0, 62),
        ("mad.lo.u32 %r3, %r1, 4, %r3;\nst.shared.b32 [%r3], %r1;\n", 0, 2),
        ("mad.lo.u32 %r3, %r1, 12, %r3;\nst.shared.v4.b32 [%r3], {%r1, %r1, %r1, %r1};\n", 0, 0),
    ],
)  # fmt: skip
def test_counts_what_accesses_cost(body: str, sectors: int, conflicts: int) -> None:
    assert _counts(body) == (sectors, conflicts)


_BLOCKS = """mov.u32 %r1, %ctaid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
"""
_LAST = """st.global.b32 [%rd3+64], %r1;
atom.global.add.u32 %r4, [%rd1], 1;
setp.eq.s32 %p1, %r4, 3;
@!%p1 bra $3;
ld.global.b32 %r5, [%rd1+64];
ld.global.b32 %r6, [%rd1+68];
ld.global.b32 %r7, [%rd1+72];
add.s32 %r5, %r5, %r6;
add.s32 %r5, %r5, %r7;
st.global.b32 [%rd1+128], %r5;
$3:
"""


def _run_blocks(body: str, seed: int) -> np.ndarray:
    out = np.zeros(64, np.int32)
    program = ptx.Program(_HEAD + _BLOCKS + body + "ret;\n}\n")
    program.launch("k", (4,), (1,), [ptx.Pointer(out)], seed=seed)
    return out


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "body",
    [
        "st.global.b32 [%rd1], %r1;\n",
        "st.global.b32 [%rd3+4], %r1;\nld.global.b32 %r5, [%rd1+8];\nst.global.b32 [%rd3+64], %r5;\n",
        "ld.global.b32 %r5, [%rd1+8];\nadd.s32 %r5, %r5, %r1;\nadd.s32 %r5, %r5, 1;\nst.global.b32 [%rd3], %r5;\n",
        _LAST.replace("atom.global.add.u32 %r4, [%rd1], 1;\n", "mov.b32 %r4, 3;\n"),
        _LAST.replace("%r4, [%rd1], 1;\n", "%r4, [%rd3], 1;\n").replace("%r4, 3;", "%r4, 0;"),
    ],
)
def test_blocks_race(body: str, seed: int) -> None:
    """In whatever order they run."""
    with pytest.raises(ptx.PtxError, match="race: .*block.* of global memory"):
        _run_blocks(body, seed)


@pytest.mark.parametrize("seed", range(2))
def test_blocks_that_know_of_each_other_race_not(seed: int) -> None:
    assert _run_blocks(_LAST, seed)[32] == 0 + 1 + 2
    _run_blocks("mov.b32 %r5, 7;\nst.global.b32 [%rd1], %r5;\n", seed)  # all the same
    _run_blocks("st.relaxed.gpu.global.b32 [%rd1], %r1;\n", seed)
