// recording.h -- when programs and their kernels began and ended, while a profiler asks for it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/shared.h"

namespace lamina {

// What a number in a recording stands for: a name, and what else is known of it.
struct RecordedName {
  std::string name;
  std::vector<std::pair<std::string, std::string>> details;
};

// Times are nanoseconds since the epoch, as profilers count them.
struct RecordedCall {
  int64_t name;
  int64_t begin_ns, end_ns;
};

struct RecordedThread {
  int64_t id = 0;  // the system's
  std::string name;
  std::vector<RecordedCall> calls;
  size_t lost = 0;  // calls beyond those that are kept
};

struct Recording {
  std::vector<RecordedThread> threads;
  std::vector<RecordedName> names;  // by the numbers in the calls
};

LAMINA_SHARED bool is_recording();

// Several may record at the same time: each takes what happened since it began.
LAMINA_SHARED int64_t begin_recording();
LAMINA_SHARED Recording end_recording(int64_t begin_ns);

// The number of a name; the same for the same.
LAMINA_SHARED int64_t recorded_name(RecordedName name);

// Keeps when a scope began and ended, where somebody records.
class RecordedScope {
 public:
  explicit RecordedScope(const std::string& name);
  ~RecordedScope();
  RecordedScope(const RecordedScope&) = delete;

 private:
  const std::string& name_;
  int64_t begin_ns_;
};

}  // namespace lamina

extern "C" {
// What code around a kernel calls: before it, and with that time after it.
LAMINA_SHARED int64_t lamina_record_begin();
LAMINA_SHARED void lamina_record_end(int64_t name, int64_t begin_ns);
}
