// collective.h -- several devices run one program together and meet in its collectives.
//
// A Team is one such run. Each device is a thread; a collective is a meeting of the devices of a
// group, in which each says where its operand and its result are, does its share of the work, and
// leaves when all have done theirs. Another transport (MPI, NCCL) would stand behind
// lamina_collective.
#pragma once

#include <atomic>
#include <condition_variable>
#include <csetjmp>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "completion.h"
#include "shared.h"

namespace lamina {

// What a collective does. Operands and results are dense; n is the size of the group.
enum class CollectiveKind : int32_t {
  kAllReduce,      // count elements -> count elements
  kReduceScatter,  // n * count -> count
  kAllGather,      // count -> n * count
  kAllToAll,       // n * count -> n * count
  kPermute,        // count -> count; zeros where nothing arrives
  kBroadcast,      // count -> count: the first of the group's; zeros outside every group
  kDeviceId,       // -> one uint32
};

// What a collective is, as generated code states it: an array of int64 that lives as long as the
// code. kPermute has pairs (source, target) in place of groups.
struct CollectiveSpec {
  int64_t dtype;         // ElementKind
  int64_t op;            // ReduceOp, of reductions
  int64_t count;         // elements; see CollectiveKind
  int64_t element_size;  // bytes
  int64_t groups;        // number of groups, or of pairs
  int64_t group_size;
  int64_t members[];
};

enum class ElementKind : int64_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
};
enum class ReduceOp : int64_t { kAdd, kMultiply, kMinimum, kMaximum, kAnd, kOr, kXor };

// One run of a program on several devices.
class Team {
 public:
  Team(std::string program, int size, int64_t timeout_ns);

  struct Slot {
    const void* operand;
    void* result;
  };
  // Waits for the whole group; gives everybody's slots, in the group's order. Null where the run
  // has failed.
  const std::vector<Slot>* meet(const char* what, const CollectiveSpec* spec, int64_t group,
                                int member, int size, Slot slot);
  // Waits until the whole group has done its work. False where the run has failed.
  bool leave(const char* what, const CollectiveSpec* spec, int64_t group, int size);

  void fail(const std::string& message) { fail(Error{message, nullptr, nullptr}); }
  void fail(Error error);
  void finished();  // a device has come to the end of the program
  const Error& error() const { return error_; }
  bool has_failed() const { return failed_.load(std::memory_order_relaxed); }
  const std::string& program() const { return program_; }
  int size() const { return size_; }

 private:
  struct Meeting {
    int arrived = 0;
    int working = 0;  // members that read and write the slots
    uint64_t generation = 0;
    std::vector<Slot> slots;
  };
  bool wait(Meeting& meeting, const char* what, int size, std::unique_lock<std::mutex>& lock);
  bool wait_for_others(Meeting& meeting, const char* what, int size,
                       std::unique_lock<std::mutex>& lock);
  void fail_locked(Error error);

  const std::string program_;
  const int size_;
  const int64_t timeout_ns_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<const void*, int64_t>, Meeting> meetings_;
  int waiting_ = 0, done_ = 0;
  std::atomic<bool> failed_{false};
  Error error_;
};

// The device that this thread is, while it runs a program of a team. A device that can't go on
// jumps to `exit`.
struct Device {
  Team* team;
  int index;
  std::jmp_buf exit;
};
Device* current_device();

// Calls body(context, device) once for each device of a new team, each on a thread of its own.
// Gives the first failure, or an empty error.
LAMINA_SHARED Error run_team(const std::string& program, int size,
                             Error (*body)(void* context, int device), void* context);

// This thread becomes a device, or none.
void enter_device(Device* device);

// While a device is in Python code, whose programs are no part of the team's.
class OutsideTeam {
 public:
  OutsideTeam();
  ~OutsideTeam();
  OutsideTeam(const OutsideTeam&) = delete;

 private:
  Device* const device_;
};

// How long a device waits in a collective for others that are still computing.
void set_collective_timeout(double seconds);
int64_t collective_timeout_ns();

}  // namespace lamina

extern "C" {
// The one way of compiled code to other devices.
void lamina_collective(int32_t kind, const void* operand, void* result, const int64_t* spec);
}
