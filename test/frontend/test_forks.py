"""What a forked child finds of locks and settings that other threads hold."""

import gc
import os
import threading
import warnings
from concurrent import futures

from lamina.core import garbage
from lamina.forks import new_lock


def in_child(check):
    """Whether the check holds in a forked child."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are threads is the point; JAX says so, too
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_finds_locks_free_that_threads_take_in_any_order():
    first, second = new_lock(), new_lock()
    stop = threading.Event()
    pair = [0, 0]

    def change(outer, inner):
        while not stop.is_set():
            with outer:
                pair[0] += 1
                pair[1] += 1
            with inner:
                pass

    threads = [
        threading.Thread(target=change, args=locks) for locks in ((first, second), (first, first))
    ]
    for thread in threads:
        thread.start()

    def check():
        free = first.acquire(timeout=5) and second.acquire(timeout=5)
        return free and pair[0] == pair[1]

    try:
        assert all(in_child(check) for _ in range(50))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_who_forks_may_hold_a_lock():
    lock = new_lock()
    with lock:
        assert in_child(lambda: lock.acquire(blocking=False))
    with futures.ThreadPoolExecutor() as pool:
        found = pool.submit(lambda: lock.acquire(blocking=False) and (lock.release() or True))
        assert found.result(), "the parent has it still"


def test_a_child_collects_though_another_thread_of_its_parent_was_compiling():
    inside, leave = threading.Event(), threading.Event()

    def compile_():
        with garbage.held_off():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=compile_)
    thread.start()
    inside.wait()
    try:
        assert not gc.isenabled()
        assert in_child(gc.isenabled)
        assert not gc.isenabled()
    finally:
        leave.set()
        thread.join()
    assert gc.isenabled()
