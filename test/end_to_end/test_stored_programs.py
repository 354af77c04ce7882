"""Programs in the disk store: whose name tells compilers apart, and which is compiled again where what
is stored is none, even under a right checksum."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import lamina
from lamina.backends import kernels
from lamina.runtime.artifact import Artifact
from lamina.runtime.store import default_store

X = np.arange(6, dtype=np.float32)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _run():
    """Runs a program that this process does not know yet, and one that came as text."""
    lamina.clear_caches()
    found = lamina.jit(lambda x: x * 3 + 1)(X)
    np.testing.assert_array_equal(found, X * 3 + 1)
    text = "func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {\n" \
           "  %y = stablehlo.add %x, %x : tensor<6xf32>\n  return %y : tensor<6xf32>\n}"  # fmt: skip
    np.testing.assert_array_equal(lamina.compile_stablehlo(text)(X)[0], X + X)


def _entries(folder, kind):
    return {path.name for path in (folder / kind).glob("??/*")}


@pytest.mark.parametrize("package", ["llvmlite", "torch_mlir"])
def test_another_build_of_a_vendor_is_another_compiler(tmp_path, package):
    def fingerprint():
        code = "from lamina.jit.program_key import fingerprint; print(fingerprint())"
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            check=True,
        )
        return done.stdout

    found = {fingerprint()}
    assert found == {fingerprint()}
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    (tmp_path / f"{package}-99.dist-info").mkdir()
    found.add(fingerprint())
    (tmp_path / f"{package}-99.dist-info" / "RECORD").write_text("of another build of this version")
    found.add(fingerprint())
    assert len(found) == 3


@pytest.mark.parametrize(
    "spoil",
    [
        lambda a: Artifact({"abi_version": a.manifest["abi_version"]}, a.objects, a.source),
        lambda a: Artifact(a.manifest | {"entry": "nowhere"}, a.objects, a.source),
        lambda a: Artifact(a.manifest | {"imports": ["no_such_function"]}, a.objects, a.source),
        lambda a: Artifact(a.manifest, {name: b"no object" for name in a.objects}, a.source),
        lambda a: Artifact(a.manifest, {}, a.source),
    ],
    ids=["manifest", "entry", "imports", "objects", "no objects"],
)
def test_a_right_checksum_over_what_is_no_program(folder, spoil):
    _run()
    store = default_store()
    names = {kind: _entries(folder, kind) for kind in ("alias", "artifact")}
    assert all(names.values())
    for kind, keys in names.items():
        for key in keys:
            artifact = Artifact.from_bytes(store.get(kind, key))
            assert store.put(kind, key, spoil(artifact).to_bytes())
    _run()
    for kind, keys in names.items():
        assert _entries(folder, kind) == keys
        for key in keys:  # what was spoilt has been replaced
            assert Artifact.from_bytes(store.get(kind, key)).objects


@pytest.mark.parametrize(
    "content",
    [b"", b"{}\n", b"[" * 100_000, b"\xff\n", b"[1]\ncode",
     *(json.dumps({"symbol": "k", "scratch_bytes": 0, "imports": []} | changed).encode() + b"\ncode"
       for changed in ({}, {"scratch_bytes": -1}, {"scratch_bytes": "1"}, {"imports": [1]},
                       {"imports": None}, {"symbol": 3}))],
)  # fmt: skip
def test_a_right_checksum_over_what_is_no_kernel(folder, content):
    _run()
    store = default_store()
    keys = _entries(folder, "kernel")
    assert keys
    for key in keys:
        assert store.put("kernel", key, content)
        assert kernels._stored(store, key.partition("-")[0]) is None
    for kind in ("alias", "artifact"):
        for path in (folder / kind).glob("??/*"):
            path.unlink()
    _run()
