"""Unmodified JAX on lamina: its programs compiled and run by lamina's CPU backend, as a PJRT plugin.

    JAX_PLATFORMS=lamina python train.py

is all where lamina is installed beside JAX (`pip install 'lamina[jax]'`): JAX finds this module by its
entry point and calls `initialize`. In a program, before JAX has made its first array:

    import lamina.jax_plugin
    lamina.jax_plugin.register()

JAX then has the backend "lamina", whose devices say that they are of the platform "cpu": what JAX and its
libraries have for CPUs counts for them, too.
"""

from __future__ import annotations

from pathlib import Path

from lamina.jax_plugin.ffi_targets import listen

_NAME = "lamina"
_LIBRARY = "lamina_pjrt.so"
_VERSIONS = ((0, 10), (0, 12))
"""The versions of JAX that are let in, from and to; 0.12 is tested."""

_PRIORITY = 500
"""Above those of JAX's own backends: who registers it wants it."""


def initialize() -> None:
    """What JAX calls of each plugin that is installed, when it looks for its backends: registers lamina
    where JAX_PLATFORMS (or the setting jax_platforms) names it, so that other programs don't notice."""
    import jax

    wanted = (jax.config.jax_platforms or "").split(",")
    if _NAME in wanted:
        register()


def register(*, priority: int = _PRIORITY) -> None:
    """Makes lamina a backend of the JAX in this process, by default the one that JAX takes.

    priority  JAX takes the backend with the highest one where JAX_PLATFORMS doesn't say. Its CPU
              backend has 0.

    As many devices as JAX's setting jax_num_cpu_devices says, else lamina's num_cpu_devices
    (LAMINA_NUM_CPU_DEVICES), else one.

    Calling it again does nothing. Raises ImportError where JAX is not installed, or is of a version
    that is not let in; RuntimeError where JAX has chosen its backends already.

    >>> import jax
    >>> lamina.jax_plugin.register(priority=-1)          # beside JAX's own, for who asks for it
    >>> jax.jit(lambda x: x + 1, device=jax.devices("lamina")[0])(1.0).item()
    2.0
    """
    bridge = _bridge()
    if _NAME in bridge._backend_factories:
        return
    if bridge.backends_are_initialized():
        raise RuntimeError(
            "JAX has chosen its backends already: register the plugin before the first array is made"
        )
    bridge.register_plugin(
        _NAME, priority=priority, library_path=str(library_path()), options=_options
    )
    listen(_NAME)
    registration = bridge._backend_factories[_NAME]
    make_client = registration.factory

    def make_client_for_cpu_too():  # type: ignore[no-untyped-def]
        client = make_client()
        # What programs ask of jax.devices("cpu") is here where JAX's own CPU backend is not in use; it
        # takes the name where it is, since it is made after those with a higher priority.
        bridge._backends.setdefault("cpu", client)
        return client

    registration.factory = make_client_for_cpu_too


def library_path() -> Path:
    """The plugin itself, a library that exports GetPjrtApi: for other frameworks that load plugins. It
    compiles by the Python in the process."""
    from lamina.runtime import _runtime

    return Path(_runtime.__file__).with_name(_LIBRARY)


def _bridge():  # type: ignore[no-untyped-def]
    """JAX's module of backends, which has no public name; checks the version."""
    try:
        import jax
        from jax._src import xla_bridge
    except ImportError as error:
        raise ImportError("the plugin needs JAX: pip install jax") from error
    least, most = _VERSIONS
    if not least <= jax.__version_info__[:2] <= most:
        raise ImportError(
            "the plugin works with JAX {}.{} to {}.{}, and this is ".format(*least, *most)
            + jax.__version__
        )
    return xla_bridge


def _options() -> dict[str, int]:
    """What the client is made with, asked when JAX makes it."""
    import jax

    import lamina

    count = jax.config.jax_num_cpu_devices
    if count < 1:
        count = lamina.config.num_cpu_devices.value
    return {"num_devices": max(1, int(count))}
