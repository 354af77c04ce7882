"""Programs cut by Shardy in its own process."""

import os
import signal

import pytest

from lamina.dialects.context import parse
from lamina.dialects.vendors import stablehlo_ext
from lamina.partitioning import PartitionError, Sharding, helper, partition

_VERSION = str(stablehlo_ext.get_current_version())
_PRODUCT = b"""
sdy.mesh @mesh = <["x"=2, "y"=2]DEVICES>
func.func public @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                       %b: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
"""


def _product(devices: str = "") -> bytes:
    return _PRODUCT.replace(b"DEVICES", devices.encode())


def test_a_product_over_a_grid():
    found = partition(_product(), 4, _VERSION)
    assert found.inputs == [
        Sharding((2, 2), 1, (0, 1, 2, 3), axes=(("x",), ("y",))),
        Sharding((2, 1), 2, (0, 2, 1, 3), axes=(("y",), ())),
    ]
    assert found.outputs == [Sharding((2, 1), 2, (0, 1, 2, 3), axes=(("x",), ()))]
    text = str(parse(found.code, name="<program>"))
    assert "(tensor<4x2xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>" in text
    assert "replica_groups = dense<[[0, 1], [2, 3]]>" in text and "sdy" not in text


def test_the_order_of_the_mesh_counts():
    found = partition(_product(", device_ids=[3, 1, 2, 0]"), 4, _VERSION)
    assert found.inputs[0].tiles == (2, 2) and found.inputs[0].devices == (3, 1, 2, 0)
    text = str(parse(found.code, name="<program>"))
    assert "replica_groups = dense<[[3, 1], [2, 0]]>" in text


def test_a_process_that_ended_is_started_again():
    partition(_product(), 4, _VERSION)
    os.kill(helper._running._child.pid, signal.SIGKILL)
    assert partition(_product(), 4, _VERSION).inputs[0].tiles == (2, 2)


def test_what_is_no_program():
    with pytest.raises(PartitionError, match="(?s)does not partition it: .*error"):
        partition(b"func.func @main(", 4, _VERSION)
    assert partition(_product(), 4, _VERSION).outputs[0].copies == 2


def test_what_takes_too_long_says_where():
    partition(_product(), 4, _VERSION)
    os.kill(helper._running._child.pid, signal.SIGSTOP)
    with pytest.raises(
        PartitionError, match=r"(?s)longer than 0\.01 s \(setting partitioner_seconds\)"
    ):
        partition(_product(), 4, _VERSION, seconds=0.01)
    assert partition(_product(), 4, _VERSION).inputs[0].tiles == (2, 2)


def test_an_end_says_what_it_was_at(monkeypatch):
    def cut_off(stream):
        helper._running._errors.write(
            b"begins sdy-flatten\nbegins sdy-close\nfatal error: no f32\n"
        )
        raise EOFError

    with monkeypatch.context() as patched:
        patched.setattr(helper, "read_message", cut_off)
        with pytest.raises(PartitionError, match="in sdy-close: fatal error: no f32"):
            partition(_product(), 4, _VERSION)


def test_many_processes_have_one_handler_at_exit(monkeypatch):
    registered = []
    monkeypatch.setattr(helper.atexit, "register", registered.append)
    for _ in range(2):
        partition(_product(), 4, _VERSION)
        helper._running.end()
    assert registered == []


def test_an_interrupt_leaves_no_answer_to_the_next_program(monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(helper.json, "loads", interrupted)
        partition(_product(), 4, _VERSION)
    found = partition(_product(", device_ids=[3, 1, 2, 0]"), 4, _VERSION)
    assert found.inputs[0].devices == (3, 1, 2, 0)
