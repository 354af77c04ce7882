// processes.h -- the processes that run programs together, and messages between them.
//
// MPI carries the messages. Its functions and handles come from whoever loaded it, as numbers:
// handles of four bytes (MPICH's own interface) and of eight (the standard ABI, Open MPI) both
// work. Everything here is point-to-point and never blocks inside MPI, so that a process that is
// missed is known by name, and threads need not take turns for longer than a look.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/completion.h"

namespace lamina {

// Addresses of MPI's functions, and handles of the communicator that belongs to us.
struct MpiInterface {
  int64_t handle_size;  // bytes: 4 or 8
  uint64_t isend, irecv, test, iprobe;
  uint64_t communicator, byte;
  int64_t most_tags;
};

// One message under way.
struct Transfer {
  uint64_t request;  // MPI's handle
  int process;
  bool receives;
};

class Mpi;

class Processes {
 public:
  // The processes this one belongs to; null where it runs alone.
  static Processes* joined();
  static void join(int rank, int size, const MpiInterface& interface);
  static void leave();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int64_t most_tags() const { return most_tags_; }
  // How long a thread that waits for messages keeps its CPU busy: not at all where processes share
  // one.
  void set_spinning(int64_t ns) { spinning_ns_ = ns; }

  // Why no program can run on all processes any more; empty where one can.
  std::string trouble();
  // The same, after asking whether another process has said that it failed or came to its end.
  std::string listen();
  // given[p] goes to process p; gives what each has for this one, in their order. `what` is what
  // waits.
  Error exchange(const std::string& what, const std::vector<std::string>& given, int64_t timeout_ns,
                 std::vector<std::string>* received);
  // Says to all others that this process can't go on, or (with an empty reason) has come to its
  // end.
  void tell_others(const std::string& reason);

  // A run of the programs of a group of devices, which all processes count alike.
  struct Awaited {
    uint64_t group, number;
  };
  // Says to all others that this process waits for a run to end.
  void say_waits(const Awaited& run);
  // The processes that have not said so of that run or a later one.
  std::vector<int> do_not_wait(const Awaited& run);

 private:
  friend class Transfers;
  static constexpr size_t kNews = 512;  // bytes of what tell_others sends
  struct News {
    int rank;
    std::array<char, kNews> text;
  };

  Processes(int rank, int size, const MpiInterface& interface);
  // What `process` has said, if anything.
  bool look_for_news(int process, std::string* text);
  void set_trouble(const std::string& text);

  const int rank_, size_;
  const int64_t most_tags_;
  const std::unique_ptr<Mpi> mpi_;
  std::atomic<int64_t> spinning_ns_{0};
  std::mutex mutex_;  // one thread in MPI at a time
  std::mutex trouble_mutex_;
  std::string trouble_;
  std::vector<std::unique_ptr<News>> sent_;
  std::vector<std::unique_ptr<Awaited>> said_;
  std::map<std::pair<int, uint64_t>, uint64_t> waits_;  // process and group -> the latest run
};

// Messages that are waited for together. Those between two processes with one tag arrive in the
// order in which they were sent.
class Transfers {
 public:
  explicit Transfers(Processes* processes) : processes_(processes) {}
  Transfers(const Transfers&) = delete;

  // Tags are below most_tags(); kHostTag is another. The memory stays as it is until wait() is
  // over.
  static constexpr int64_t kHostTag = -1;
  void send(int process, int64_t tag, const void* data, int64_t bytes);
  void receive(int process, int64_t tag, void* data, int64_t bytes);

  // Until all are there; at most timeout_ns, or until stop(context). Gives why they are not: `what`
  // is what waits. Memory of transfers that did not end may be written as long as the process
  // lives.
  Error wait(const std::string& what, int64_t timeout_ns, bool (*stop)(void*), void* context);

 private:
  void start(bool receives, int process, int64_t tag, char* data, int64_t bytes);
  bool progress();
  Error look_around(const std::string& what, int64_t waited_ns, int64_t timeout_ns);

  Processes* const processes_;
  std::vector<Transfer> open_;
  int error_ = 0;
};

// This thread sleeps while messages are under way: others compute.
void leave_cpu_while_waiting();

}  // namespace lamina
