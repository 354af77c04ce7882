// collective.h -- several devices run one program together and meet in its collectives.
//
// A Team is one such run. Each device is a thread; a collective is a meeting of the devices of a
// group, in which each says where its operand and its result are, does its share of the work, and
// leaves when all have done theirs. Where devices of the group are in other processes, one of those
// here exchanges with these what the others need for their shares (collective_exchange.h).
#pragma once

#include <atomic>
#include <condition_variable>
#include <csetjmp>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/collective_kind.h"
#include "core/completion.h"
#include "core/shared.h"

namespace lamina {

// What a collective is, as generated code states it: an array of int64 that lives as long as the
// code. kPermute has pairs (source, target) in place of groups.
struct CollectiveSpec {
  int64_t dtype;         // ElementKind
  int64_t op;            // ReduceOp, of reductions
  int64_t count;         // elements; see CollectiveKind
  int64_t element_size;  // bytes
  int64_t groups;        // number of groups, or of pairs
  int64_t group_size;    // at most: -1 stands after the members of smaller ones
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

// Where the devices of a run are.
class LAMINA_SHARED Places {
 public:
  // All in this process.
  explicit Places(int size);
  // process[d] is where device d is; those of process `mine` are here.
  Places(std::vector<int> process, int mine);

  int size() const { return static_cast<int>(process_.size()); }
  const std::vector<int>& here() const { return here_; }  // the devices of this process
  bool is_here(int device) const { return process_[device] == mine_; }
  bool spans_processes() const { return here_.size() < process_.size(); }
  int process(int device) const { return process_[device]; }
  // The number of a device among those of its process, and how many one process has at most.
  int number(int device) const { return number_[device]; }
  int most() const { return most_; }

 private:
  std::vector<int> process_, number_, here_;
  int mine_, most_ = 0;
};

// One run of a program on several devices.
class Team {
 public:
  Team(std::string program, const Places* places, int64_t timeout_ns);

  struct Slot {
    const void* operand;
    void* result;
  };
  // The devices of this process that meet in a collective.
  struct Group {
    const char* what;
    const CollectiveSpec* spec;
    int64_t number;  // of the spec's groups
    int size;        // devices of the group, wherever they are
    int here;        // of these in this process
  };
  // Waits for those of this process; gives everybody's slots, in the group's order, with nothing
  // for devices elsewhere. Null where the run has failed.
  std::vector<Slot>* meet(const Group& group, int member, Slot slot);
  // Waits until those of this process have come as far. False where the run has failed.
  bool meet_again(const Group& group);
  // Waits until those of this process have done their work. False where the run has failed.
  bool leave(const Group& group);

  void fail(const std::string& message) { fail(Error{message, nullptr, nullptr}); }
  void fail(Error error);
  void finished();  // a device has come to the end of the program
  const Error& error() const { return error_; }
  bool has_failed() const { return failed_.load(std::memory_order_relaxed); }
  const std::string& program() const { return program_; }
  const Places& places() const { return *places_; }
  int size() const { return places_->size(); }
  int64_t timeout_ns() const { return timeout_ns_; }

 private:
  struct Meeting {
    int arrived = 0;
    int working = 0;  // members that read and write the slots
    uint64_t generation = 0;
    std::vector<Slot> slots;
  };
  Meeting& meeting(const Group& group) { return meetings_[{group.spec, group.number}]; }
  bool wait(Meeting& meeting, const Group& group, std::unique_lock<std::mutex>& lock);
  bool wait_for_others(Meeting& meeting, const Group& group, std::unique_lock<std::mutex>& lock);
  void fail_locked(Error error);

  const std::string program_;
  const Places* const places_;
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
  bool begins = false;  // the next collective is only begun: see lamina_collective_begin
};
Device* current_device();

// Waits until the collective that this thread has begun is over, if there is one.
void end_collective();

// Calls body(context, i) once for each device of a new team that is here, each on a thread of its
// own; the i-th of them is device places.here()[i]. Gives the first failure, or an empty error.
LAMINA_SHARED Error run_team(const std::string& program, const Places& places,
                             Error (*body)(void* context, int i), void* context);

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

// Whether this thread runs a callback of a program of several devices, which has them all.
bool called_by_team();

// How long a device waits in a collective for others that are still computing.
void set_collective_timeout(double seconds);
int64_t collective_timeout_ns();

}  // namespace lamina

extern "C" {
// The one way of compiled code to other devices.
void lamina_collective(int32_t kind, const void* operand, void* result, const int64_t* spec);
// Before a collective: it is begun, where others of the team are in other processes. Until
// lamina_collective_end the thread computes meanwhile what does not need its result, and begins no
// other collective.
void lamina_collective_begin();
void lamina_collective_end();
}
