"""The disk store: whole entries or none, whatever other processes, users and disks do."""

import errno
import os
import signal
import stat
import subprocess
import sys
import time
import warnings

import pytest

from lamina.runtime import store as store_module
from lamina.runtime.store import Store, StoreWarning, default_store

KEY = "a1b2c3"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


def entry_path(store, kind="kernel", key=KEY):
    return store.directory / kind / key[:2] / key


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 1000])
def test_put_and_get(store, data):
    assert store.get("kernel", KEY) is None
    assert store.put("kernel", KEY, data)
    assert store.get("kernel", KEY) == data
    assert store.get("artifact", KEY) is None
    assert Store(store.directory).get("kernel", KEY) == data


def test_put_replaces(store):
    store.put("alias", KEY, b"old")
    store.put("alias", KEY, b"new")
    assert store.get("alias", KEY) == b"new"


def test_only_the_user_can_read_or_write(store):
    store.put("kernel", KEY, b"code")
    path = entry_path(store)
    while path != store.directory.parent:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
        path = path.parent


@pytest.mark.parametrize("key", ["../../etc", "a/b", "", "ab", "x" * 200, "a\0b"])
def test_names_stay_in_the_directory(store, key):
    with pytest.raises(ValueError, match="not a name"):
        store.put("kernel", key, b"")
    with pytest.raises(ValueError, match="not a name"):
        store.get(key, KEY)


@pytest.mark.parametrize("cut", [0, 7, 47, 48, 100, -1])
def test_cut_off_entries_are_ignored_and_rebuilt(store, cut):
    store.put("kernel", KEY, b"x" * 100)
    path = entry_path(store)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.warns(StoreWarning, match="ignores the entry"):
        assert store.get("kernel", KEY) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.get("kernel", KEY) is None  # warned once
        store.put("kernel", KEY, b"again")
        assert store.get("kernel", KEY) == b"again"


def test_every_damaged_byte_is_noticed(store):
    store.put("kernel", KEY, bytes(range(64)))
    path = entry_path(store)
    whole = path.read_bytes()
    with pytest.warns(StoreWarning):
        for position in range(len(whole)):
            damaged = bytearray(whole)
            damaged[position] ^= 1
            path.write_bytes(bytes(damaged))
            assert store.get("kernel", KEY) is None


def test_an_entry_under_another_name_is_damaged(store):
    store.put("kernel", KEY, b"code of a")
    os.rename(entry_path(store), entry_path(store, key=KEY[:2] + "other"))
    with pytest.warns(StoreWarning, match="checksum"):
        assert store.get("kernel", KEY[:2] + "other") is None


def test_links_and_directories_are_not_followed(store, tmp_path):
    store.put("kernel", KEY, b"code")
    path = entry_path(store)
    os.rename(path, tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(StoreWarning):
        assert store.get("kernel", KEY) is None
    path.unlink()
    path.mkdir()
    assert store.get("kernel", KEY) is None


def test_a_pipe_in_the_place_of_an_entry_is_not_waited_for(store):
    store.put("kernel", KEY, b"code")
    entry_path(store).unlink()
    os.mkfifo(entry_path(store), 0o600)
    with pytest.warns(StoreWarning, match="not a file of this user"):
        assert store.get("kernel", KEY) is None
    assert store.put("kernel", KEY, b"code") and store.get("kernel", KEY) == b"code"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_entries_that_others_can_write_are_ignored(store, mode):
    store.put("kernel", KEY, b"code")
    os.chmod(entry_path(store), mode)
    with pytest.warns(StoreWarning, match="others could write to it"):
        assert store.get("kernel", KEY) is None


def test_an_entry_larger_than_the_bound_is_not_read(tmp_path):
    Store(tmp_path / "cache").put("kernel", KEY, b"code")
    store = Store(tmp_path / "cache", max_bytes=1 << 20)
    os.truncate(entry_path(store), 1 << 33)
    with pytest.warns(StoreWarning, match="larger than the store"):
        assert store.get("kernel", KEY) is None


def test_foreign_entries_and_directories_are_refused(store, monkeypatch):
    store.put("kernel", KEY, b"code")
    me = os.getuid()
    other = Store(store.directory)
    assert other.get("kernel", KEY) == b"code"
    monkeypatch.setattr(store_module.os, "getuid", lambda: me + 1)
    with pytest.warns(StoreWarning, match="not a file of this user"):
        assert other.get("kernel", KEY) is None
    with pytest.warns(StoreWarning, match="it must belong to you"):
        assert Store(store.directory).get("kernel", KEY) is None


def test_a_directory_that_others_can_write_is_not_used(store):
    store.put("kernel", KEY, b"code")
    os.chmod(store.directory, 0o777)
    fresh = Store(store.directory)
    with pytest.warns(StoreWarning, match="others could write to it"):
        assert fresh.get("kernel", KEY) is None
    assert not fresh.put("kernel", KEY, b"code")


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file" / "cache")
    with pytest.warns(StoreWarning, match="cannot use"):
        assert not store.put("kernel", KEY, b"code")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.get("kernel", KEY) is None
        assert not store.put("kernel", KEY, b"code")


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EACCES, errno.EDQUOT])
def test_a_disk_that_takes_nothing(store, monkeypatch, code):
    """Read-only, full, forbidden: one warning, and what was there can still be read."""
    store.put("kernel", KEY, b"code")

    def refuse(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(store_module.tempfile, "mkstemp", refuse)
    with pytest.warns(StoreWarning, match="cannot write") as caught:
        assert not store.put("kernel", "other", b"code")
        assert not store.put("kernel", "third", b"code")
    assert len(caught) == 1
    assert store.get("kernel", KEY) == b"code"


def test_a_disk_that_fills_up_in_the_middle_of_a_write():
    """/dev/full takes no bytes: the partial file is removed, the entry stays absent."""
    code = """
import os, sys, tempfile, warnings
from lamina.runtime import store as s
real = tempfile.mkstemp
def on_full_disk(**options):
    descriptor, name = real(**options)
    os.close(descriptor)
    return os.open("/dev/full", os.O_WRONLY), name
s.tempfile.mkstemp = on_full_disk
directory = tempfile.mkdtemp()
store = s.Store(directory + "/cache")
with warnings.catch_warnings(record=True) as caught:
    assert not store.put("kernel", "a1b2c3", b"x" * 100000)
assert "No space left" in str(caught[0].message)
assert [f for _, _, files in os.walk(directory) for f in files] == []
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_the_least_recently_used_entries_go_first(tmp_path):
    store = Store(tmp_path / "cache", max_bytes=10_000)
    now = time.time()
    for i in range(8):
        assert store.put("kernel", f"key{i}", bytes(1000))
        os.utime(entry_path(store, key=f"key{i}"), (now - 100 + i, now - 100 + i))
    assert store.get("kernel", "key0") is not None  # now the most recent
    for i in range(8, 15):
        store.put("kernel", f"key{i}", bytes(1000))
    assert store.size() <= 10_000
    assert store.get("kernel", "key0") is not None
    assert store.get("kernel", "key1") is None
    assert store.get("kernel", "key14") is not None


def test_writes_below_the_bound_do_not_list_the_entries(tmp_path, monkeypatch):
    """Neither the first one of a process nor any other: how much there is has been counted."""
    listed = []
    entries = Store._entries
    monkeypatch.setattr(Store, "_entries", lambda self: listed.append(1) or entries(self))
    for process in range(3):
        store = Store(tmp_path / "cache", max_bytes=1_000_000)
        for i in range(50):
            assert store.put("kernel", f"key{process}-{i}", bytes(2000))
            assert store.put("kernel", "same", bytes(100_000))  # which replaces itself
    assert not listed
    store = Store(tmp_path / "cache", max_bytes=1_000_000)
    for i in range(400):
        assert store.put("kernel", f"more{i}", bytes(10_000))
    assert store.size() <= 1_000_000
    assert 10 < sum(listed) < 40  # once for each eighth of the bound


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"-5", b"9" * 300])
def test_a_count_that_is_wrong_is_made_again(tmp_path, content):
    store = Store(tmp_path / "cache", max_bytes=10_000)
    store.put("kernel", "first", bytes(1000))
    (store.directory / "bytes").write_bytes(content)
    for i in range(30):
        assert store.put("kernel", f"key{i}", bytes(1000))
    assert store.size() <= 20_000 and store.get("kernel", "key29") is not None


def test_a_count_that_is_a_pipe(tmp_path):
    store = Store(tmp_path / "cache", max_bytes=10_000)
    store.put("kernel", KEY, b"code")
    (store.directory / "bytes").unlink()
    os.mkfifo(store.directory / "bytes")
    assert store.put("kernel", KEY, b"code") and store.get("kernel", KEY) == b"code"


def test_an_entry_larger_than_the_store(tmp_path):
    store = Store(tmp_path / "cache", max_bytes=100)
    assert not store.put("kernel", KEY, bytes(1000))
    assert store.get("kernel", KEY) is None


def test_clear(store):
    store.put("kernel", KEY, b"1")
    store.put("artifact", KEY, b"2")
    store.clear()
    assert store.get("kernel", KEY) is None and store.size() == 0


def test_stale_partial_files_are_removed(store):
    store.put("kernel", KEY, b"1")
    stale = entry_path(store).parent / ".partial-dead"
    fresh = entry_path(store).parent / ".partial-alive"
    for path in (stale, fresh):
        path.write_bytes(b"half")
    os.utime(stale, (1, 1))
    store.clear()
    assert not stale.exists() and fresh.exists()


WRITER = """
import sys
from lamina.runtime.store import Store
store = Store(sys.argv[1], max_bytes=3_000_000)
print("ready", flush=True)
for round in range(int(sys.argv[2])):
    for key in range(5):
        data = bytes([round % 256]) * (100_000 + key)
        store.put("kernel", f"key{key}", data)
        found = store.get("kernel", f"key{key}")
        assert found is None or found == found[:1] * (100_000 + key), "a torn entry"
"""


def writer(directory, rounds):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", WRITER, str(directory), str(rounds)],
        stdout=subprocess.PIPE,
    )


def test_two_processes_on_one_store(tmp_path):
    processes = [writer(tmp_path / "cache", 60) for _ in range(2)]
    assert [process.wait(timeout=600) for process in processes] == [0, 0]
    for process in processes:
        process.stdout.close()
    store = Store(tmp_path / "cache")
    assert all(len(store.get("kernel", f"key{key}")) == 100_000 + key for key in range(5))


def test_kill_in_the_middle_of_writing(tmp_path):
    for delay in (0.0, 0.01, 0.03):
        process = writer(tmp_path / "cache", 100_000)
        assert process.stdout.readline() == b"ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=600)
        process.stdout.close()
    store = Store(tmp_path / "cache")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for key in range(5):
            data = store.get("kernel", f"key{key}")
            assert data is None or len(data) == 100_000 + key
        assert store.put("kernel", "key0", b"fresh") and store.get("kernel", "key0") == b"fresh"


def test_the_default_store_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(tmp_path / "here"))
    assert default_store().directory == tmp_path / "here"
    assert default_store() is default_store()
    monkeypatch.delenv("LAMINA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_store().directory == tmp_path / "lamina"
    monkeypatch.setenv("LAMINA_CACHE", "0")
    assert default_store() is None
