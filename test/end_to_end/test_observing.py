"""monitoring and profiler: what a program tells of itself."""

import gzip
import json

import numpy as np
import pytest

import lamina
from lamina import monitoring, profiler


def test_events_of_a_compilation_and_of_a_user(monkeypatch):
    heard = []

    def listen(event, *values, **kwargs):
        heard.append((event, len(values), kwargs))

    kinds = ("event", "event_duration_secs", "event_time_span", "scalar")
    for kind in kinds:
        getattr(monitoring, f"register_{kind}_listener")(listen)
    try:

        def doubled(x):
            return 2 * x + 41

        lamina.jit(doubled)(np.float32(3))
        monitoring.record_event("/mine", size=3)
        monitoring.record_scalar("/loss", 0.5)
        monitoring.unregister_scalar_listener(listen)
        monitoring.record_scalar("/loss", 0.25)
        with pytest.raises(AssertionError):
            monitoring.unregister_scalar_listener(listen)
    finally:
        monitoring.clear_event_listeners()
    monitoring.record_event("/nobody hears")
    assert ("/mine", 0, {"size": 3}) in heard and ("/loss", 1, {}) in heard
    assert [e for e, _, k in heard if k.get("fun_name") == "doubled"].count(monitoring.TRACE) == 2
    assert len([e for e, _, _ in heard if e == "/loss"]) == 1


def test_a_trace_has_calls_stages_and_annotations(tmp_path):
    @lamina.jit
    def observed(x):
        return x * 3 - 1

    @profiler.annotate_function
    def outer(x):
        return observed(x)

    x = np.arange(4, dtype=np.float32)
    observed(x)  # calls that the fast path knows are in the trace all the same
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        with profiler.StepTraceAnnotation("step", step_num=7):
            np.testing.assert_array_equal(outer(x), x * 3 - 1)
        observed(x[:2])
        with pytest.raises(RuntimeError, match="already"):
            profiler.start_trace(tmp_path)
    observed(x)
    with pytest.raises(RuntimeError, match="No profile"):
        profiler.stop_trace()
    (file,) = tmp_path.glob("plugins/profile/*/*.trace.json.gz")
    assert (file.parent / "perfetto_trace.json.gz").exists()
    events = json.loads(gzip.open(file).read())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    calls = [e for e in spans if e["name"] == "jit(observed)"]
    assert [e["args"]["argument 0"] for e in calls] == ["float32[4]", "float32[2]"]
    (step,) = (e for e in spans if e["name"] == "step")
    assert step["args"] == {"step_num": 7}
    assert step["ts"] <= calls[0]["ts"] <= calls[0]["ts"] + calls[0]["dur"] <= step["ts"] + step["dur"]
    assert any(e["name"].endswith("outer") for e in spans)
    assert any(e["name"] == "jaxpr_trace observed" for e in spans)
