"""Costs as `cost_analysis()` gives them."""

# ruff: noqa: E501 (program text)

from __future__ import annotations

import pytest

from lamina.backends.cost import Counter, module_cost, trip_count
from lamina.backends.effort import note_work
from lamina.dialects.context import parse


def cost(body: str, arguments: str = "%x: tensor<8x4xf32>") -> dict[str, float]:
    return module_cost(parse(f"func.func public @main({arguments}) {{ {body} return }}"))


def test_elementwise_operations_and_transcendentals_are_counted_apart() -> None:
    assert cost(
        "%0 = stablehlo.add %x, %x : tensor<8x4xf32> %1 = stablehlo.sine %0 : tensor<8x4xf32>"
    ) == {"flops": 32.0, "transcendentals": 32.0, "bytes accessed": 4.0 * 32 * 5}


def test_a_contraction_is_two_operations_an_element() -> None:
    found = cost(
        "%0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]"
        " : (tensor<3x8x4xf32>, tensor<3x4x5xf32>) -> tensor<3x8x5xf32>",
        "%x: tensor<3x8x4xf32>, %w: tensor<3x4x5xf32>",
    )
    assert found["flops"] == 2 * 3 * 8 * 4 * 5


def test_a_reduction_counts_what_it_takes_in() -> None:
    found = cost(
        "%c = stablehlo.constant dense<0.0> : tensor<f32> "
        "%0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1]"
        " : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>"
    )
    assert found["flops"] == 8 * 3


def test_a_convolution() -> None:
    found = cost(
        "%0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}"
        " {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
        " : (tensor<2x10x3xf32>, tensor<4x3x5xf32>) -> tensor<2x7x5xf32>",
        "%x: tensor<2x10x3xf32>, %k: tensor<4x3x5xf32>",
    )
    assert found["flops"] == 2 * (2 * 7 * 5) * 4 * 3


LOOP = """
  %a = stablehlo.constant dense<{first}> : tensor<i32>
  %n = stablehlo.constant dense<{limit}> : tensor<i32>
  %s = stablehlo.constant dense<{step}> : tensor<i32>
  %0:2 = stablehlo.while(%i = %a, %y = %x) : tensor<i32>, tensor<8x4xf32>
    cond {{
      %1 = stablehlo.compare {test}, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }} do {{
      %1 = stablehlo.add %i, %s : tensor<i32>
      %2 = stablehlo.cosine %y : tensor<8x4xf32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<8x4xf32>
    }}
"""


@pytest.mark.parametrize(
    ("first", "limit", "step", "test", "trips"),
    [(0, 10, 1, "LT", 10), (0, 10, 3, "LT", 4), (2, 10, 4, "LE", 3), (5, 5, 1, "LT", 0)],
)
def test_loops_count_as_often_as_they_run(first, limit, step, test, trips) -> None:
    text = LOOP.format(first=first, limit=limit, step=step, test=test)
    module = parse(f"func.func public @main(%x: tensor<8x4xf32>) {{ {text} return }}")
    (loop,) = (
        op.operation
        for op in module.body.operations[0].regions[0].blocks[0].operations
        if op.operation.name == "stablehlo.while"
    )
    assert trip_count(loop) == trips
    assert module_cost(module)["transcendentals"] == 32 * (trips or 1)


def test_a_loop_of_unknown_length_counts_once() -> None:
    text = LOOP.format(first=0, limit=9, step=1, test="NE")
    assert cost(text)["transcendentals"] == 32


def test_calls_count_each_time_and_a_kernel_moves_only_its_operands_and_results() -> None:
    module = parse(
        """
        func.func public @main(%x: tensor<16xf32>) -> tensor<16xf32> {
          %0 = call @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
          %1 = call @k(%0) : (tensor<16xf32>) -> tensor<16xf32>
          return %1 : tensor<16xf32>
        }
        func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {lamina.kind = "loop"} {
          %0 = stablehlo.add %x, %x : tensor<16xf32>
          %1 = stablehlo.multiply %0, %0 : tensor<16xf32>
          return %1 : tensor<16xf32>
        }"""
    )
    assert module_cost(module) == {
        "flops": 64.0,
        "transcendentals": 0.0,
        "bytes accessed": 2 * 2 * 64.0,
    }


def test_a_branch_counts_as_its_dearest_arm() -> None:
    found = cost(
        '%0 = "stablehlo.if"(%p) ({ %1 = stablehlo.sine %x : tensor<8x4xf32> '
        "stablehlo.return %1 : tensor<8x4xf32> }, { stablehlo.return %x : tensor<8x4xf32> })"
        " : (tensor<i1>) -> tensor<8x4xf32>",
        "%x: tensor<8x4xf32>, %p: tensor<i1>",
    )
    assert found["transcendentals"] == 32


def test_slices_and_updates_touch_only_their_part() -> None:
    arguments = "%x: tensor<1000x8xf32>, %u: tensor<1x8xf32>, %i: tensor<i32>"
    taken = cost(
        "%0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [1, 8]"
        " : (tensor<1000x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>",
        arguments,
    )
    assert taken["bytes accessed"] == 2 * 32 + 2 * 4
    put = cost(
        "%0 = stablehlo.dynamic_update_slice %x, %u, %i, %i : (tensor<1000x8xf32>,"
        " tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1000x8xf32>",
        arguments,
    )
    assert put["bytes accessed"] == 2 * 32 + 2 * 4


def test_kernels_of_little_work_are_noted_unless_a_loop_may_repeat_them() -> None:
    def kernel(name: str, size: int) -> str:
        return f"""
        func.func private @{name}(%x: tensor<{size}xf32>) -> tensor<{size}xf32> attributes {{lamina.kind = "loop"}} {{
          %0 = stablehlo.sine %x : tensor<{size}xf32>
          return %0 : tensor<{size}xf32>
        }}"""

    module = parse(
        """
        func.func public @main(%x: tensor<8xf32>, %y: tensor<64xf32>, %p: tensor<i1>) -> tensor<8xf32> {
          %0 = call @once(%x) : (tensor<8xf32>) -> tensor<8xf32>
          %1 = call @large(%y) : (tensor<64xf32>) -> tensor<64xf32>
          %2 = stablehlo.while(%i = %0) : tensor<8xf32>
            cond { stablehlo.return %p : tensor<i1> }
            do {
              %3 = func.call @repeated(%i) : (tensor<8xf32>) -> tensor<8xf32>
              stablehlo.return %3 : tensor<8xf32>
            }
          return %2 : tensor<8xf32>
        }"""
        + kernel("once", 8)
        + kernel("large", 64)
        + kernel("repeated", 8)
    )
    counter = Counter(module)
    note_work(module, counter)
    noted = [name for name, op in counter.functions.items() if "lamina.work" in op.attributes]
    assert noted == ["once"]


def test_contractions_of_much_work_are_noted() -> None:
    def product(name: str, size: int) -> str:
        type_ = f"tensor<{size}x{size}xf32>"
        return f"""
        func.func private @{name}(%x: {type_}) -> {type_} attributes {{lamina.kind = "output"}} {{
          %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : ({type_}, {type_}) -> {type_}
          return %0 : {type_}
        }}"""

    module = parse(
        """
        func.func public @main(%x: tensor<512x512xf32>, %y: tensor<64x64xf32>)
            -> (tensor<512x512xf32>, tensor<64x64xf32>) {
          %0 = call @large(%x) : (tensor<512x512xf32>) -> tensor<512x512xf32>
          %1 = call @small(%y) : (tensor<64x64xf32>) -> tensor<64x64xf32>
          return %0, %1 : tensor<512x512xf32>, tensor<64x64xf32>
        }"""
        + product("large", 512)
        + product("small", 64)
    )
    counter = Counter(module)
    note_work(module, counter)
    noted = {name: op.attributes["lamina.work"].value for name, op in counter.functions.items()
             if "lamina.work" in op.attributes}  # fmt: skip
    assert noted == {"large": "much"}
