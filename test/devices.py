"""Several virtual devices, in lamina and in JAX, for the tests that need them."""

from collections.abc import Iterator

import pytest

import lamina


@pytest.fixture
def eight_devices() -> Iterator[None]:
    """Eight CPU devices. (JAX's are asked for in conftest.py: before it starts.)"""
    old = lamina.config.num_cpu_devices.value
    lamina.config.update("num_cpu_devices", 8)
    yield
    lamina.config.update("num_cpu_devices", old)
