"""The memory pool: reuse without new memory, bounds, giving back, allocation from threads."""

import gc
import threading

import numpy as np
import pytest

from lamina import runtime
from lamina.array import from_numpy


@pytest.fixture(autouse=True)
def same_limit():
    limit = runtime.pool_stats()["limit_bytes"]
    yield
    runtime.set_pool_limit(limit)


@pytest.mark.parametrize("count", [1, 100, 50_000, 5_000_000])
def test_freed_memory_is_used_again(count):
    values = np.zeros(count, np.float32)
    pointer = from_numpy(values).unsafe_buffer_pointer()
    before = runtime.pool_stats()
    for _ in range(5):
        assert from_numpy(values).unsafe_buffer_pointer() == pointer
    after = runtime.pool_stats()
    assert after["reuses"] - before["reuses"] == after["allocations"] - before["allocations"] == 5
    assert after["live_bytes"] == before["live_bytes"]


def test_sizes_close_to_each_other_share_memory():
    pointer = from_numpy(np.zeros(1000, np.int8)).unsafe_buffer_pointer()
    assert from_numpy(np.zeros(1010, np.int8)).unsafe_buffer_pointer() == pointer


@pytest.mark.parametrize("size", [*range(1, 300), 4095, 4096, 4097, 2**20, 2**21 - 7, 2**21 + 1])
def test_every_size_holds_its_content(size):
    values = np.random.default_rng(size).integers(0, 255, size).astype(np.uint8)
    arrays = [from_numpy(values) for _ in range(3)]
    assert all(np.array_equal(np.asarray(array), values) for array in arrays)
    assert len({array.unsafe_buffer_pointer() for array in arrays}) == 3


def test_kept_memory_is_bounded():
    gc.collect()
    runtime.set_pool_limit(1 << 20)
    assert runtime.pool_stats()["cached_bytes"] <= 1 << 20
    arrays = [from_numpy(np.zeros(1 << 18, np.int8)) for _ in range(16)]
    del arrays
    assert runtime.pool_stats()["cached_bytes"] <= 1 << 20


def test_trim_gives_everything_back():
    from_numpy(np.zeros(1 << 22, np.int8))
    assert runtime.pool_stats()["cached_bytes"] > 0
    runtime.trim_pool()
    assert runtime.pool_stats()["cached_bytes"] == 0


def test_threads_allocate_and_free_at_once():
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        held = []
        for _ in range(300):
            values = np.full(int(rng.integers(1, 100_000)), seed, np.int32)
            held.append((values, from_numpy(values)))
            if len(held) > 8:
                expected, array = held.pop(int(rng.integers(len(held))))
                if not np.array_equal(np.asarray(array), expected):
                    errors.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
