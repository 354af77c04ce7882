"""The name of a program in the disk store, found without lowering it (and so without MLIR)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from lamina import config
from lamina.core.jaxpr_key import jaxpr_key
from lamina.core.source_info import package_folders

if TYPE_CHECKING:
    from lamina.jit.program_plan import Plan


def program_key(plan: Plan, target: Any = None) -> str | None:
    """A digest of everything that decides the machine code: the jaxpr with its constants, what is
    donated, the settings, the target (by default this machine's processor) and lamina itself. None
    if something in it has no text form.
    """
    import hashlib

    from lamina.backends.target import Target

    text = jaxpr_key(plan.closed.jaxpr)
    if text is None:
        return None
    digest = hashlib.blake2b(digest_size=20)

    def add(*parts: Any) -> None:
        for part in parts:
            data = part if isinstance(part, bytes) else str(part).encode()
            digest.update(len(data).to_bytes(8, "little") + data)

    target = target or Target.host()
    add(fingerprint(), target.describe(), config.trace_key(), plan.name)
    add(text)
    for value, hoisted in zip(plan.closed.consts, plan.hoisted, strict=True):
        if hoisted:
            add("argument", value.shape, value.dtype)
        else:
            array = np.asarray(value)
            add("constant", array.shape, array.dtype, array.tobytes())
    if plan.local is not None:
        add("mesh", plan.local.mesh.shape_tuple)
    if plan.requested is not None:
        from lamina import partitioning

        add("partitioned", plan.requested.key(), partitioning.version())
    add(sorted(plan.aliases.items()), plan.donors, plan.arg_names, plan.result_paths)
    return digest.hexdigest()


@functools.cache
def fingerprint() -> str:
    """Changes with every change of lamina's own files (a source checkout's too), and with other builds
    of MLIR and LLVM."""
    from lamina.backends.versions import digest_of_files, vendor_builds

    return "\n".join((digest_of_files(package_folders()), *vendor_builds()))
