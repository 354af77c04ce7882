"""Artifacts as bytes: whole ones come back equal, others are refused by name."""

import json
import struct

import pytest

from lamina.runtime import artifact
from lamina.runtime.artifact import ABI_VERSION, Artifact, ArtifactError

LEAST = {
    "abi_version": ABI_VERSION,
    "name": "f",
    "entry": "main",
    "inputs": [{"dtype": "float32", "shape": [2, 3]}],
    "outputs": [{"dtype": "bfloat16", "shape": [], "alias_of": None}],
    "arena_bytes": 64,
    "imports": ["expf"],
    "target": {"kind": "cpu"},
}
WHOLE = Artifact(
    {**LEAST, "nested": {"list": [1, 2.5, None, "é"]}},
    {"entry": b"\0\1\2", "kernels": b"", "more": bytes(range(256)) * 10},
    b"ML\xefR and what follows",
)


def test_round_trip():
    assert Artifact.from_bytes(WHOLE.to_bytes()) == WHOLE
    assert Artifact.from_bytes(Artifact(LEAST).to_bytes()).objects == {}


def test_every_damaged_byte_is_noticed():
    data = WHOLE.to_bytes()
    for position in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 0x40
        with pytest.raises(ArtifactError):
            Artifact.from_bytes(bytes(damaged))


def test_cut_off_or_extended_bytes_are_noticed():
    data = WHOLE.to_bytes()
    for end in (0, 5, 47, 48, 60, len(data) - 1):
        with pytest.raises(ArtifactError):
            Artifact.from_bytes(data[:end])
    with pytest.raises(ArtifactError, match="damaged"):
        Artifact.from_bytes(data + b"\0")


def test_other_formats_and_versions_are_refused():
    with pytest.raises(ArtifactError, match="not an artifact"):
        Artifact.from_bytes(b"\x7fELF" + bytes(100))
    other = Artifact({"abi_version": ABI_VERSION + 1})
    with pytest.raises(ArtifactError, match=f"ABI {ABI_VERSION + 1}"):
        Artifact.from_bytes(other.to_bytes())


def _block(head, rest=b""):
    """An artifact with this head, whose checksum is right."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    whole = Artifact(LEAST).to_bytes()
    body = struct.pack("<Q", len(text)) + text + rest
    checksum = artifact._checksum(body)
    return whole[:8] + struct.pack("<Q32s", len(body), checksum) + body


@pytest.mark.parametrize(
    "head",
    [b"", b"[", b"[]", b"\xff", b"[" * 100_000, {}, {"manifest": LEAST}, {"manifest": 3, "objects": {}},
     {"manifest": LEAST, "objects": {"a": 1}}, {"manifest": LEAST, "objects": {"a": -1}},
     {"manifest": LEAST, "objects": {"a": 0.5}}, {"manifest": LEAST, "objects": {"a": "1"}},
     {"manifest": LEAST, "objects": 7}],
)  # fmt: skip
def test_malformed_heads_under_a_right_checksum_are_refused(head):
    with pytest.raises(ArtifactError, match="malformed|ABI None"):
        Artifact.from_bytes(_block(head))


@pytest.mark.parametrize(
    "changed",
    [{"name": 1}, {"entry": None}, {"inputs": {}}, {"inputs": [7]}, {"arena_bytes": -1},
     {"arena_bytes": 2**70}, {"arena_bytes": True}, {"imports": [1]}, {"target": "cpu"},
     {"imports": [""]}, {"entry": ""}, {"entry": "a\0b"},
     {"target": {"kind": []}}, {"target": {"kind": "cpu", "features": 1}},
     {"cost": {"flops": "many"}}, {"target": {"kind": "cuda"}},
     *({"outputs": [{"dtype": "float32", "shape": [2]} | row]}
       for row in ({"dtype": "object"}, {"dtype": 4}, {"shape": None}, {"shape": [-1]},
                   {"shape": [2**40, 2**40]}, {"shape": [1.5]}, {"alias_of": 1}, {"alias_of": "0"}))],
)  # fmt: skip
def test_malformed_manifests_under_a_right_checksum_are_refused(changed):
    with pytest.raises(ArtifactError, match="malformed"):
        Artifact.from_bytes(_block({"manifest": LEAST | changed, "objects": {}}))


def test_a_length_beyond_the_end_is_refused():
    data = struct.pack("<Q", 2**63) + b"{}"
    whole = Artifact(LEAST).to_bytes()
    block = whole[:8] + struct.pack("<Q32s", len(data), artifact._checksum(data)) + data
    with pytest.raises(ArtifactError, match="malformed"):
        Artifact.from_bytes(block)
