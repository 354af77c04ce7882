"""The garbage collector is held off while modules are imported, and does not walk what they made."""

import gc
import sys
import types

from lamina.core import garbage


def import_many(count, monkeypatch):
    """Modules that something imports, with more objects than a collection waits for."""
    for i in range(count):
        name = f"imported_by_a_test_{i}"
        module = types.ModuleType(name)
        module.held = [[] for _ in range(100)]
        monkeypatch.setitem(sys.modules, name, module)


def collections_while(action):
    """How many collections run meanwhile."""
    begun = []

    def note(phase, info):
        if phase == "start":
            begun.append(info["generation"])

    gc.collect()
    gc.callbacks.append(note)
    try:
        action()
    finally:
        gc.callbacks.remove(note)
    return len(begun)


def test_what_an_import_made_is_taken_for_old(monkeypatch):
    def action():
        with garbage.held_off():
            import_many(100, monkeypatch)
        kept = [[] for _ in range(10)]
        assert len(kept) == 10 and gc.isenabled()

    assert collections_while(action) == 0
    old = {id(x) for x in gc.get_objects(generation=2)}
    assert all(id(sys.modules[f"imported_by_a_test_{i}"].held) in old for i in range(100))
    assert gc.get_freeze_count() == 0


def test_what_is_frozen_stays_so(monkeypatch):
    gc.freeze()
    try:
        with garbage.held_off():
            import_many(100, monkeypatch)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_a_program_that_imports_nothing_is_collected():
    def action():
        with garbage.held_off():
            made = [[] for _ in range(10_000)]
        assert len([*made, []]) == 10_001
        assert [[] for _ in range(10)]

    assert collections_while(action) > 0
