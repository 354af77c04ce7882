"""Reading xla.CompileOptionsProto, as jaxlib writes it."""

import numpy as np
import pytest
from jaxlib import xla_client

from lamina.jax_plugin.compile_options import CompileOptions, WireError


def _options(replicas: int, partitions: int, ids=None, **settings) -> bytes:
    made = xla_client.CompileOptions()
    made.num_replicas, made.num_partitions = replicas, partitions
    if ids is not None:
        made.device_assignment = xla_client.DeviceAssignment.create(np.array(ids, np.int32))
    made.executable_build_options.use_spmd_partitioning = True
    made.executable_build_options.use_shardy_partitioner = True
    made.env_option_overrides = list(settings.items())
    return made.SerializeAsString()


def test_counts_and_devices():
    options = CompileOptions.of(_options(2, 3, [[0, 1, 2], [300, 4, 5]]))
    assert (options.num_replicas, options.num_partitions) == (2, 3)
    assert options.device_ids == options.assignment == [[0, 1, 2], [300, 4, 5]]
    assert options.use_spmd_partitioning and options.use_shardy_partitioner


def test_devices_that_are_left_open():
    options = CompileOptions.of(_options(2, 2))
    assert options.device_ids is None and options.assignment == [[0, 1], [2, 3]]
    assert CompileOptions.of(b"") == CompileOptions()


def test_overrides_have_their_types():
    given = {"a": "text", "b": True, "c": -3, "d": 2.5, "e": False, "f": 1 << 40}
    assert CompileOptions.of(_options(1, 1, **given)).settings == given


@pytest.mark.parametrize("data", [b"\xff", b"\x1a\x05\x08", b"\x0b", b"\x80" * 11, b"\x18\x01"])
def test_what_are_no_options(data):
    with pytest.raises(WireError):
        CompileOptions.of(data)
