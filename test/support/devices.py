"""Several virtual devices, in lamina and in JAX, for the tests that need them."""

from collections.abc import Iterator

import pytest

import lamina
from lamina.sharding import AxisType, Mesh


@pytest.fixture
def eight_devices() -> Iterator[None]:
    """Eight CPU devices. (JAX's are asked for in conftest.py: before it starts.)"""
    old = lamina.config.num_cpu_devices.value
    lamina.config.update("num_cpu_devices", 8)
    yield
    lamina.config.update("num_cpu_devices", old)


def auto_mesh(sizes: tuple[int, ...], names: tuple[str, ...]) -> Mesh:
    """A mesh of the first devices over whose axes the partitioner spreads arrays."""
    return lamina.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(sizes))
