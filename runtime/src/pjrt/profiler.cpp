// profiler.cpp -- PJRT's extension for profilers: when programs and kernels ran, as an XSpace.
//
// The framework starts and stops a profiler of ours with its own, and puts the plane of the trace
// that it gives beside those of the host.
#include <cstring>
#include <map>
#include <string>

#include "core/recording.h"
#include "pjrt/functions.h"
#include "pjrt/proto.h"
#include "pjrt/status.h"

namespace lamina::pjrt {

struct Profiler {
  int64_t begin_ns = 0;
  bool is_recording = false;
  std::string space;  // serialised

  void stop();
};

struct ProfilerError {
  std::string message;
};

namespace {

// Trace viewers show planes of devices that the framework does not know itself by this prefix.
constexpr char kPlane[] = "/device:CUSTOM:lamina";

// The numbers of fields of tensorflow.profiler's messages.
enum SpaceField { kPlanes = 1 };
enum PlaneField { kPlaneName = 2, kLines = 3, kEventNames = 4, kStatNames = 5 };
enum LineField { kLineId = 1, kLineName = 2, kLineTime = 3, kEvents = 4 };
enum EventField { kEventName = 1, kEventOffset = 2, kEventDuration = 3 };
enum StatField { kStatName = 1, kStatText = 5 };
enum MetadataField { kId = 1, kName = 2, kStats = 5 };
enum EntryField { kKey = 1, kValue = 2 };

// An entry of a table from numbers to messages.
Proto numbered(int64_t number, const Proto& value) {
  Proto entry;
  entry.number(kKey, number);
  entry.message(kValue, value);
  return entry;
}

Proto line_of(const RecordedThread& thread, int64_t begin_ns) {
  constexpr int64_t kPicoseconds = 1000;  // in a nanosecond
  Proto line;
  line.number(kLineId, thread.id);
  line.text(kLineName, thread.lost == 0 ? thread.name
                                        : thread.name + " (" + std::to_string(thread.lost) +
                                              " calls more than are kept)");
  line.number(kLineTime, begin_ns);
  for (const RecordedCall& call : thread.calls) {
    Proto event;
    event.number(kEventName, call.name + 1);  // 0 stands for none
    event.number(kEventOffset, (call.begin_ns - begin_ns) * kPicoseconds);
    event.number(kEventDuration, (call.end_ns - call.begin_ns) * kPicoseconds);
    line.message(kEvents, event);
  }
  return line;
}

std::string space_of(const Recording& recording, int64_t begin_ns) {
  Proto plane;
  plane.text(kPlaneName, kPlane);
  std::vector<bool> occurs(recording.names.size());
  for (const RecordedThread& thread : recording.threads) {
    plane.message(kLines, line_of(thread, begin_ns));
    for (const RecordedCall& call : thread.calls) occurs[static_cast<size_t>(call.name)] = true;
  }
  std::map<std::string, int64_t> kinds;
  for (size_t i = 0; i < occurs.size(); ++i) {
    if (!occurs[i]) continue;
    const auto number = static_cast<int64_t>(i) + 1;
    Proto name;
    name.number(kId, number);
    name.text(kName, recording.names[i].name);
    for (const auto& [kind, value] : recording.names[i].details) {
      Proto stat;
      stat.number(kStatName,
                  kinds.try_emplace(kind, static_cast<int64_t>(kinds.size()) + 1).first->second);
      stat.text(kStatText, value);
      name.message(kStats, stat);
    }
    plane.message(kEventNames, numbered(number, name));
  }
  for (const auto& [kind, number] : kinds) {
    Proto name;
    name.number(kId, number);
    name.text(kName, kind);
    plane.message(kStatNames, numbered(number, name));
  }
  Proto space;
  space.message(kPlanes, plane);
  return space.bytes();
}

template <typename A, void (*function)(A&)>
ProfilerError* guarded_profiler(void* args) {
  try {
    function(*static_cast<A*>(args));
    return nullptr;
  } catch (const std::exception& error) {
    return new ProfilerError{error.what()};
  }
}

void profiler_create(Profiler_CreateArgs& args) { args.profiler = new Profiler; }

void profiler_destroy(Profiler_DestroyArgs& args) {
  args.profiler->stop();
  delete args.profiler;
}

void profiler_start(Profiler_StartArgs& args) {
  args.profiler->stop();
  args.profiler->begin_ns = begin_recording();
  args.profiler->is_recording = true;
}

void profiler_stop(Profiler_StopArgs& args) { args.profiler->stop(); }

// Asked for the size first, the framework reads what is given with it, or comes again with memory.
void profiler_collect_data(Profiler_CollectDataArgs& args) {
  std::string& space = args.profiler->space;
  if (args.buffer == nullptr) {
    args.buffer = reinterpret_cast<uint8_t*>(space.data());
  } else {
    std::memcpy(args.buffer, space.data(), space.size());
  }
  args.buffer_size_in_bytes = space.size();
}

}  // namespace

void Profiler::stop() {
  if (!is_recording) return;
  is_recording = false;
  space = space_of(end_recording(begin_ns), begin_ns);
}

ExtensionBase* profiler_extension(ExtensionBase* next) {
  static const ProfilerApi api{
      sizeof(ProfilerApi),
      nullptr,
      [](Profiler_Error_DestroyArgs* args) { delete args->error; },
      [](Profiler_Error_MessageArgs* args) {
        give(args->error->message, &args->message, &args->message_size);
      },
      [](Profiler_Error_GetCodeArgs* args) -> ProfilerError* {
        args->code = static_cast<int>(ErrorCode::kInternal);
        return nullptr;
      },
      guarded_profiler<Profiler_CreateArgs, profiler_create>,
      guarded_profiler<Profiler_DestroyArgs, profiler_destroy>,
      guarded_profiler<Profiler_StartArgs, profiler_start>,
      guarded_profiler<Profiler_StopArgs, profiler_stop>,
      guarded_profiler<Profiler_CollectDataArgs, profiler_collect_data>,
  };
  static ProfilerExtension extension{
      {sizeof(ProfilerExtension), ExtensionType::kProfiler, next}, &api, 0};
  return &extension;
}

}  // namespace lamina::pjrt
