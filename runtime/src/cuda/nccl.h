// nccl.h -- collectives among GPUs by NVIDIA's NCCL, which is opened at run time: nothing of it is
// needed to build. The numbers of its types and operations come with the launch plan
// (passes/kernels/gpu/collectives.py).
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/collective_kind.h"
#include "core/processes.h"
#include "cuda/device.h"

namespace lamina::cuda {

struct Nccl;

// Thrown where a run was ended because of what another device, or NCCL, said.
class Aborted : public CudaError {
 public:
  explicit Aborted(const std::string& why) : CudaError(-1, why) {}
};

// What one GPU calls NCCL with, for the groups of a collective. Null where it is in none of them.
struct Communicator {
  Handle handle = nullptr;
  int rank = -1, size = 0;
};

using Groups = std::vector<std::vector<int>>;

// The GPUs of a mesh, in its order, and their communicators. Each device is a rank of a
// communicator of all; those of groups are split off it, once for each way of grouping. Calls on it
// are made by the thread that issues a device's program; communicators are made by the one that
// loads programs.
class Clique {
 public:
  // `here` are the positions in the mesh of this process's devices, `numbers` the devices there.
  // `id` is what the process of the first device got from `unique_id`; where all are here, empty.
  // The same again for the same devices. Throws Unavailable without NCCL.
  static Clique& of(const std::string& path, int size, const std::vector<int>& here,
                    const std::vector<int>& numbers, const std::string& id);
  // What all processes of a new clique are to be told. Throws Unavailable, CudaError.
  static std::string unique_id(const std::string& path);

  int size() const { return size_; }
  bool spans_processes() const { return devices_.size() < static_cast<size_t>(size_); }
  // Of a position of this process, for groups of positions; without any, of all. Throws CudaError,
  // also where the groups are new and a callback of the clique's programs asks.
  const Communicator* among(const Groups& groups, int position);
  // The number of NCCL's library, 23203 for 2.32.3.
  int version() const;
  const Nccl& library() const { return *nccl_; }

  // Before a run, whose devices issue it while the lock is held: no other run is issued and no
  // communicator made meanwhile. After a failure communicators are there again. Throws CudaError
  // where they can't be.
  std::unique_lock<std::mutex> begin_run();
  // Ends what all devices here have under way: runs that are not over fail with this text.
  void abort(const std::string& why);
  // A device here issues another collective: its thread calls NCCL while this is there, and waits
  // for nobody who may end that. Throws Aborted where the clique is down.
  class Calling {
   public:
    Calling(Clique& clique, int position);
    ~Calling() { --clique_.calling_; }
    Calling(const Calling&) = delete;

   private:
    Clique& clique_;
  };

  // Of the devices here those that have issued fewer of them than this one, named.
  std::string missing_here(int position);

  // How many times that has been done.
  uint64_t aborts() const { return aborts_.load(std::memory_order_acquire); }
  // What NCCL says of the communicators here since their calls returned; empty where all is well.
  std::string trouble();
  // "cuda:1, device 1 of 4".
  std::string name(int position) const;

 private:
  friend class Watch;
  Clique(const Nccl* nccl, int size, const std::vector<int>& here, const std::vector<int>& numbers,
         std::string id);
  const Communicator* known(const Groups& groups, int position);
  void wait_for_devices() const;
  void make_all();
  void split(const Groups& groups, std::vector<Communicator>* of_groups);

  const Nccl* const nccl_;
  const int size_;
  const std::vector<int> here_;
  std::vector<Device*> devices_;
  std::string id_;
  std::mutex turns_;  // taken before the mutex: of runs that are issued, and what they begin with
  std::mutex mutex_;  // of what follows; who has it waits for no GPU
  std::map<Groups, std::vector<Communicator>> communicators_;  // of the devices here
  std::atomic<uint64_t> aborts_{0};
  bool is_down_ = false;
  std::atomic<int> calling_{0};  // threads within NCCL
  std::string failure_;
  std::set<Watch*> watches_;
  std::map<int, uint64_t> runs_,
      came_;  // by position: what it began, and the collectives it issued
};

// One run of a program of a clique, for whoever waits for it.
class Watch {
 public:
  Watch(Clique* clique, int position, std::string program);
  ~Watch();
  Watch(const Watch&) = delete;

  // After this event of the device the run is over; null: the event is no more.
  void ends_with(Device* device, Handle event);
  // Throws Aborted where the run was aborted. To be called before what it computed is read.
  void check_not_aborted();
  // The same where the run is not over: also where NCCL says that something is wrong, or it has
  // been waited for as long as collectives may take.
  void look();
  // Waits for what is issued on a stream so far, and looks meanwhile.
  void wait(Device& device, Handle stream, const std::string& what);

 private:
  friend class Clique;
  // Who has not come to a collective in the time that it may take.
  std::string overdue();
  // This run, as all processes number it.
  Processes::Awaited awaited() const;

  Clique* const clique_;
  const int position_;
  const std::string program_;
  const uint64_t aborts_;
  // With the clique's mutex.
  Device* device_ = nullptr;
  Handle event_ = nullptr;
  bool is_over_ = false;
  bool has_said_ = false;  // to the other processes, that this one waits
  uint64_t number_ = 0;    // of the position's runs
  std::chrono::steady_clock::time_point since_{};
};

// A collective of a program, as one of its devices does it.
struct Collective {
  CollectiveKind kind;
  int type = 0, op = 0;  // NCCL's numbers
  size_t count = 0;      // elements of that type; see CollectiveKind
  size_t element_bytes = 0;
  const Communicator* communicator = nullptr;
  // Of a permutation: the ranks that this one sends to, and the one that it hears from.
  std::vector<int> targets;
  int source = -1;
};

// Issues it on a stream of the device. `about` ends the text where it fails. Throws CudaError.
void issue_collective(Clique& clique, int position, const Collective& collective, Address operand,
                      Address result, Handle stream, const std::string& about);

}  // namespace lamina::cuda
