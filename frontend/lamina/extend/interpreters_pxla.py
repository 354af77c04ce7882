"""What JAX has left in interpreters.pxla: the mesh in whose block a thread is."""

from __future__ import annotations

from typing import Any

from lamina.sharding.mesh import get_mesh

__all__ = ["thread_resources"]


class _Environment:
    @property
    def physical_mesh(self) -> Any:
        """The mesh of `with mesh:` or `set_mesh`; one without axes where there is none."""
        return get_mesh()


class _ThreadResources:
    """The resources of this thread."""

    env = _Environment()


thread_resources = _ThreadResources()
