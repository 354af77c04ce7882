"""JAX's CPU backend is the default of all tests; lamina's devices stand beside them."""

import importlib.metadata

import pytest


@pytest.fixture(scope="session")
def lamina_device():
    """The device that lamina's plugin gives JAX."""
    plugins = [plugin.name for plugin in importlib.metadata.entry_points(group="jax_plugins")]
    assert "lamina" in plugins, "the plugin is not installed: make build"
    import jax

    return jax.devices("lamina")[0]


@pytest.fixture
def on_lamina(lamina_device):
    """What JAX does in a test, it does on lamina."""
    import jax

    with jax.default_device(lamina_device):
        yield lamina_device
