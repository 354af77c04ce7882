// config.cpp -- the state of a thread that is part of every signature.
#include <optional>
#include <utility>

#include "core/signature.h"

namespace lamina {
namespace {

// Written and read under the GIL.
Config process_config;
thread_local std::optional<Config> thread_config;
thread_local bool thread_traces = false;

}  // namespace

Config current_config() { return thread_config.value_or(process_config); }
void set_config(Config config) { process_config = config; }
void set_thread_config(Config config) { thread_config = config; }
void clear_thread_config() { thread_config.reset(); }

bool tracing() { return thread_traces; }
bool set_tracing(bool value) { return std::exchange(thread_traces, value); }

}  // namespace lamina
