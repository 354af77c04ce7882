// collective_exchange.cpp -- see collective_exchange.h.
#include "cpu/collective_exchange.h"

#include <algorithm>
#include <cstring>

#include "core/buffer.h"
#include "core/processes.h"

namespace lamina {
namespace {

// Bytes of an all-reduce's operands up to which every process gets all of them whole, and combines
// everything itself; beyond, in two steps, each combines its part for all. Twice a message's
// latency in bytes: that is where what p whole operands take (their bytes) meets what 2 (p - 1)
// messages of parts take (their latency), for any p. Between processes of one machine latency is 1
// us, and 4 GB pass in a second.
constexpr int64_t kWholeBytes = 8192;

// Processes up to which whole operands go straight to all others. Among more they are handed on: in
// step k a process gets from the one 2^k places further on what that has, and so all in log2(p)
// steps. A step waits for the one before, so few processes are done sooner with a message to each.
constexpr size_t kStraightProcesses = 4;

// The members of a group by process.
class Members {
 public:
  Members(const Places& places, const Team::Group& group) : places_(places) {
    const CollectiveSpec& spec = *group.spec;
    for (int m = 0; m < group.size; ++m) {
      const int device = static_cast<int>(spec.members[group.number * spec.group_size + m]);
      if (places.is_here(device)) {
        here_.push_back(m);
        continue;
      }
      auto found = std::find_if(others_.begin(), others_.end(), [&](const Other& other) {
        return other.process == places.process(device);
      });
      if (found == others_.end()) {
        others_.push_back({places.process(device), places.number(device), {}});
        found = others_.end() - 1;
      }
      found->members.push_back(m);
    }
    const auto first = spec.members[group.number * spec.group_size + here_.front()];
    first_number_ = places.number(static_cast<int>(first));
  }

  struct Other {
    int process;
    int first_number;  // of its first member, among the process's devices
    std::vector<int> members;
  };
  const std::vector<int>& here() const { return here_; }
  const std::vector<Other>& others() const { return others_; }
  int64_t tag_to(const Other& other) const {
    return int64_t{first_number_} * places_.most() + other.first_number;
  }
  int64_t tag_from(const Other& other) const {
    return int64_t{other.first_number} * places_.most() + first_number_;
  }

 private:
  const Places& places_;
  std::vector<int> here_;
  std::vector<Other> others_;
  int first_number_;
};

// Tags of messages. A pair of devices, the first of the group in either process, goes through its
// collectives in one order, so their numbers tell messages of different groups apart that are under
// way at once. The rest of the tag says which collective it is: processes that have got out of step
// wait for each other instead of taking one thing for another.
class Tags {
 public:
  Tags(const Processes& processes, const Places& places, CollectiveKind kind,
       const CollectiveSpec& spec)
      : pairs_(int64_t{places.most()} * places.most()) {
    uint64_t hash = 0xcbf29ce484222325u;
    const int64_t words[] = {int64_t(kind), spec.dtype,  spec.op,
                             spec.count,    spec.groups, spec.group_size};
    for (const int64_t word : words) hash = (hash ^ uint64_t(word)) * 0x100000001b3u;
    const int64_t kinds = std::max<int64_t>(1, processes.most_tags() / pairs_);
    base_ = static_cast<int64_t>(hash >> 20) % kinds * pairs_;
  }
  int64_t of(int64_t pair) const { return base_ + pair; }

 private:
  int64_t pairs_, base_;
};

bool team_has_failed(void* team) { return static_cast<Team*>(team)->has_failed(); }

// One collective of this process with others, done by the first of the group's devices here.
class Exchange {
 public:
  Exchange(Device* here, CollectiveKind kind, const Team::Group& group, Slots* slots)
      : team_(here->team),
        kind_(kind),
        group_(group),
        spec_(*group.spec),
        slots_(*slots),
        tags_(*Processes::joined(), here->team->places(), kind, spec_) {}

  // What others need of the operands here, against what those here need of theirs.
  bool operands(const Members& members, Ref<Buffer>* staging);
  // The same for whole operands of an all-reduce among many processes, which hand them on.
  bool handed_on(const Members& members, Ref<Buffer>* staging);
  // Parts of an all-reduce's result that those here have combined, against the others'.
  bool parts(const Members& members);
  // A permutation's operands, to where they belong.
  bool permutation();

  bool whole() const;
  // Bytes of a member's operand: all of it, and where the part begins that a member combines of an
  // all-reduce's.
  int64_t bytes() const { return spec_.count * spec_.element_size; }
  int64_t part(int64_t member) const {
    return part_of(spec_, member, group_.size) * spec_.element_size;
  }

 private:
  bool finish(Transfers* transfers);
  int64_t staged_bytes(const Members& members) const;

  Team* const team_;
  const CollectiveKind kind_;
  const Team::Group& group_;
  const CollectiveSpec& spec_;
  Slots& slots_;
  const Tags tags_;
};

bool Exchange::whole() const { return group_.size == 2 || bytes() <= kWholeBytes; }

bool Exchange::finish(Transfers* transfers) {
  const std::string what = std::string("[") + group_.what + "] of " + team_->program();
  Error error = transfers->wait(what, team_->timeout_ns(), team_has_failed, team_);
  if (error.empty()) return true;
  team_->fail(std::move(error));
  return false;
}

// Bytes of one other member's operand that are kept here until all have done their shares.
int64_t Exchange::staged_bytes(const Members& members) const {
  switch (kind_) {
    case CollectiveKind::kAllReduce: {
      if (whole()) return bytes();
      int64_t total = 0;
      for (const int m : members.here()) total += part(m + 1) - part(m);
      return total;
    }
    case CollectiveKind::kReduceScatter:
      return bytes() * static_cast<int64_t>(members.here().size());
    case CollectiveKind::kBroadcast:
      return bytes();
    default:
      return 0;  // received where it belongs
  }
}

bool Exchange::operands(const Members& members, Ref<Buffer>* staging) {
  if (kind_ == CollectiveKind::kAllReduce && whole() &&
      members.others().size() >= kStraightProcesses) {
    return handed_on(members, staging);
  }
  const int64_t staged = staged_bytes(members);
  const bool broadcasts = kind_ == CollectiveKind::kBroadcast;
  const int64_t others = broadcasts ? 1 : group_.size - static_cast<int64_t>(members.here().size());
  if (staged > 0) *staging = Ref<Buffer>::steal(Buffer::allocate(staged * others));
  char* free = staged > 0 ? static_cast<char*>((*staging)->data()) : nullptr;
  Transfers transfers(Processes::joined());

  // What is received is waited for before anything is sent: large messages then go straight there.
  for (const Members::Other& other : members.others()) {
    const int64_t tag = tags_.of(members.tag_from(other));
    for (const int m : other.members) {
      Team::Slot& slot = slots_[m];
      slot = {nullptr, nullptr};
      if (broadcasts && m != 0) continue;
      if (staged > 0) {
        slot.operand = free;
        free += staged;
      }
      auto* at = static_cast<char*>(const_cast<void*>(slot.operand));
      switch (kind_) {
        case CollectiveKind::kAllReduce:
          if (whole()) {
            transfers.receive(other.process, tag, at, bytes());
            break;
          }
          for (const int h : members.here()) {
            transfers.receive(other.process, tag, at, part(h + 1) - part(h));
            at += part(h + 1) - part(h);
          }
          break;
        case CollectiveKind::kReduceScatter:
          for (const int h : members.here()) {
            (void)h;
            transfers.receive(other.process, tag, at, bytes());
            at += bytes();
          }
          break;
        case CollectiveKind::kAllGather: {
          char* result = static_cast<char*>(slots_[members.here().front()].result);
          slot.operand = result + m * bytes();
          transfers.receive(other.process, tag, result + m * bytes(), bytes());
          break;
        }
        case CollectiveKind::kAllToAll:
          for (const int h : members.here()) {
            char* result = static_cast<char*>(slots_[h].result);
            transfers.receive(other.process, tag, result + m * bytes(), bytes());
          }
          break;
        default:  // kBroadcast
          transfers.receive(other.process, tag, at, bytes());
      }
    }
  }
  for (const Members::Other& other : members.others()) {
    const int64_t tag = tags_.of(members.tag_to(other));
    for (const int m : members.here()) {
      const char* operand = static_cast<const char*>(slots_[m].operand);
      if (broadcasts && m != 0) continue;
      if (kind_ == CollectiveKind::kReduceScatter || kind_ == CollectiveKind::kAllToAll) {
        for (const int o : other.members) {
          transfers.send(other.process, tag, operand + o * bytes(), bytes());
        }
      } else if (kind_ == CollectiveKind::kAllReduce && !whole()) {
        for (const int o : other.members) {
          transfers.send(other.process, tag, operand + part(o), part(o + 1) - part(o));
        }
      } else {
        transfers.send(other.process, tag, operand, bytes());
      }
    }
  }
  return finish(&transfers);
}

bool Exchange::handed_on(const Members& members, Ref<Buffer>* staging) {
  // The processes from this one on, round: of each the members whose operands it has, and where
  // those begin in what is staged.
  struct Place {
    const Members::Other* process;  // null for this one
    const std::vector<int>* members;
    int64_t at;
  };
  const int rank = Processes::joined()->rank();
  std::vector<Place> round{{nullptr, &members.here(), 0}};
  for (const Members::Other& other : members.others()) round.push_back({&other, &other.members, 0});
  const auto distance = [&](const Place& place) {
    const int process = place.process == nullptr ? rank : place.process->process;
    return process >= rank ? process - rank : process - rank + Processes::joined()->size();
  };
  std::sort(round.begin(), round.end(),
            [&](const Place& a, const Place& b) { return distance(a) < distance(b); });
  int64_t total = 0;
  for (Place& place : round) {
    place.at = total;
    total += static_cast<int64_t>(place.members->size()) * bytes();
  }
  *staging = Ref<Buffer>::steal(Buffer::allocate(std::max<int64_t>(total, 1)));
  char* const data = static_cast<char*>((*staging)->data());
  for (const Place& place : round) {
    char* at = data + place.at;
    for (const int m : *place.members) {
      if (place.process == nullptr) {
        std::memcpy(at, slots_[m].operand, static_cast<size_t>(bytes()));
      } else {
        slots_[m] = {at, nullptr};
      }
      at += bytes();
    }
  }
  const size_t count = round.size();
  for (size_t step = 1; step < count; step *= 2) {
    const size_t blocks = std::min(step, count - step);
    const int64_t received_to = step + blocks < count ? round[step + blocks].at : total;
    // What the process `step` places before lacks begins with this one's own.
    const int64_t sent = blocks < count ? round[blocks].at : total;
    const Members::Other& from = *round[step].process;
    const Members::Other& to = *round[count - step].process;
    Transfers transfers(Processes::joined());
    transfers.receive(from.process, tags_.of(members.tag_from(from)), data + round[step].at,
                      received_to - round[step].at);
    transfers.send(to.process, tags_.of(members.tag_to(to)), data, sent);
    if (!finish(&transfers)) return false;
  }
  return true;
}

bool Exchange::parts(const Members& members) {
  char* result = static_cast<char*>(slots_[members.here().front()].result);
  Transfers transfers(Processes::joined());
  for (const Members::Other& other : members.others()) {
    for (const int m : other.members) {
      transfers.receive(other.process, tags_.of(members.tag_from(other)), result + part(m),
                        part(m + 1) - part(m));
    }
  }
  for (const Members::Other& other : members.others()) {
    for (const int m : members.here()) {
      transfers.send(other.process, tags_.of(members.tag_to(other)), result + part(m),
                     part(m + 1) - part(m));
    }
  }
  return finish(&transfers);
}

bool Exchange::permutation() {
  const Places& places = team_->places();
  Transfers transfers(Processes::joined());
  for (const bool receives : {true, false}) {
    for (int64_t pair = 0; pair < spec_.groups; ++pair) {
      const int source = static_cast<int>(spec_.members[2 * pair]);
      const int target = static_cast<int>(spec_.members[2 * pair + 1]);
      if (places.is_here(source) == places.is_here(target)) continue;
      const int64_t tag =
          tags_.of(int64_t{places.number(source)} * places.most() + places.number(target));
      if (receives && places.is_here(target)) {
        transfers.receive(places.process(source), tag, slots_[target].result, bytes());
      } else if (!receives && places.is_here(source)) {
        transfers.send(places.process(target), tag, slots_[source].operand, bytes());
      }
    }
  }
  return finish(&transfers);
}

// The slots as one member here sees them: `staged` is what one other member sent for all that are
// here, one after the other, and each takes its part for the place where its own would be.
Slots seen_by(const Slots& slots, const Members& members, int64_t staged_at, int64_t own_at) {
  Slots seen = slots;
  for (const Members::Other& other : members.others()) {
    for (const int m : other.members) {
      const auto at = reinterpret_cast<uintptr_t>(slots[m].operand);
      seen[m].operand = reinterpret_cast<const void*>(at + staged_at - own_at);
    }
  }
  return seen;
}

bool share_permutation(Device* here, const Team::Group& group, Slots* slots, int member) {
  if (here->index == here->team->places().here().front()) {
    Exchange exchange(here, CollectiveKind::kPermute, group, slots);
    if (!exchange.permutation()) return false;
  }
  permute(*group.spec, *slots, member);
  return true;
}

}  // namespace

bool share_with_others(Device* here, CollectiveKind kind, const Team::Group& group, Slots* slots,
                       int member, bool* done) {
  if (kind == CollectiveKind::kPermute) {
    if (share_permutation(here, group, slots, member)) return true;
    here->team->leave(group);
    return false;
  }
  const Team& team = *here->team;
  const CollectiveSpec& spec = *group.spec;
  const Members members(team.places(), group);
  const auto& all_here = members.here();
  const bool leads = member == all_here.front();
  const auto number = std::find(all_here.begin(), all_here.end(), member) - all_here.begin();
  const auto count_here = static_cast<int64_t>(all_here.size());
  Exchange exchange(here, kind, group, slots);
  Ref<Buffer> staging;
  if (leads && !exchange.operands(members, &staging)) {
    staging.detach();  // MPI may still write there
    here->team->leave(group);
    return false;
  }
  if (!here->team->meet_again(group)) return false;

  const bool in_parts = kind == CollectiveKind::kAllReduce && !exchange.whole();
  if (kind == CollectiveKind::kAllReduce && !in_parts) {
    *done = reduce_all_of(spec, *slots, part_of(spec, number, count_here),
                          part_of(spec, number + 1, count_here));
  } else if (in_parts || kind == CollectiveKind::kReduceScatter) {
    int64_t staged_at = exchange.bytes() * number, own_at = exchange.bytes() * member;
    if (in_parts) {
      staged_at = 0;
      for (int64_t i = 0; i < number; ++i) {
        staged_at += exchange.part(all_here[i] + 1) - exchange.part(all_here[i]);
      }
      own_at = exchange.part(member);
    }
    *done = do_share(kind, spec, seen_by(*slots, members, staged_at, own_at), member);
  } else {
    *done = do_share(kind, spec, *slots, member);
  }
  if (!*done) return true;

  if (in_parts) {
    if (!here->team->meet_again(group)) return false;
    if (leads && !exchange.parts(members)) {
      here->team->leave(group);
      return false;
    }
    if (!here->team->meet_again(group)) return false;
    const Team::Slot& mine = (*slots)[member];
    const auto* from = static_cast<const char*>((*slots)[all_here.front()].result);
    for (const Members::Other& other : members.others()) {
      for (const int m : other.members) {
        if (leads) break;
        const int64_t lo = exchange.part(m), hi = exchange.part(m + 1);
        std::memcpy(static_cast<char*>(mine.result) + lo, from + lo, hi - lo);
      }
    }
  }
  // What was staged stays until all have read it.
  return count_here == 1 || here->team->meet_again(group);
}

}  // namespace lamina
