"""Artifacts as bytes: whole ones come back equal, others are refused by name."""

import pytest

from lamina.runtime.artifact import ABI_VERSION, Artifact, ArtifactError

WHOLE = Artifact(
    {"abi_version": ABI_VERSION, "name": "f", "nested": {"list": [1, 2.5, None, "é"]}},
    {"entry": b"\0\1\2", "kernels": b"", "more": bytes(range(256)) * 10},
    b"ML\xefR and what follows",
)


def test_round_trip():
    assert Artifact.from_bytes(WHOLE.to_bytes()) == WHOLE
    assert Artifact.from_bytes(Artifact({"abi_version": ABI_VERSION}).to_bytes()).objects == {}


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
