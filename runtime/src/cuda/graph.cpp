// graph.cpp -- programs as graphs; see program.h.
//
// A graph is a chain: every node waits for the one before. Control flow is conditional nodes: a
// kernel of ours reads what decides and sets the handle that the node looks at, so that no decision
// waits for the host.
#include <utility>

#include "cuda/program.h"

namespace lamina::cuda {
namespace {

// set_condition(handle, address, bytes, low, high, outside): whether the integer at the address is
// within low..high, or is not where `outside` is 1. One byte is unsigned, others are signed. The
// driver provides cudaGraphSetConditional when it loads the module.
constexpr const char* kSetCondition = R"(.version 7.0
.target sm_75
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry lamina_set_condition (
    .param .u64 handle, .param .u64 address, .param .u64 bytes,
    .param .s64 low, .param .s64 high, .param .u64 outside)
{
    .reg .pred %p<8>;
    .reg .b32 %r<4>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [handle];
    ld.param.u64 %d2, [address];
    ld.param.u64 %d3, [bytes];
    ld.param.s64 %d4, [low];
    ld.param.s64 %d5, [high];
    ld.param.u64 %d6, [outside];
    cvta.to.global.u64 %d2, %d2;
    setp.eq.u64 %p1, %d3, 1;
    setp.eq.u64 %p2, %d3, 4;
    setp.eq.u64 %p3, %d3, 8;
    mov.s64 %d7, 0;
    @%p1 ld.global.u8 %d7, [%d2];
    @%p2 ld.global.s32 %d7, [%d2];
    @%p3 ld.global.s64 %d7, [%d2];
    setp.ge.s64 %p4, %d7, %d4;
    setp.le.and.s64 %p5, %d7, %d5, %p4;
    setp.ne.u64 %p6, %d6, 0;
    xor.pred %p7, %p5, %p6;
    selp.u32 %r1, 1, 0, %p7;
    {
        .param .b64 given_handle;
        .param .b32 given_value;
        st.param.b64 [given_handle], %d1;
        st.param.b32 [given_value], %r1;
        call.uni cudaGraphSetConditional, (given_handle, given_value);
    }
    ret;
}
)";

CopyNode copy_node(const Step& step, const Addresses& addresses) {
  CopyNode node{};
  node.source_type = node.target_type = kDeviceMemory;
  node.source = addresses.of(step.places[0]);
  node.target = addresses.of(step.places[1]);
  node.width = step.bytes;
  node.height = node.depth = 1;
  return node;
}

MemsetNode memset_node(const Step& step, const Addresses& addresses) {
  return {addresses.of(step.places[0]),    0, step.element, step.element_bytes,
          step.bytes / step.element_bytes, 1};
}

KernelNode kernel_node(const Launch& launch, void** parameters) {
  return {launch.function,
          {launch.grid[0], launch.grid[1], launch.grid[2]},
          {launch.block[0], launch.block[1], launch.block[2]},
          launch.shared_bytes,
          parameters,
          nullptr,
          nullptr,
          nullptr};
}

bool moves(const Step& step) {
  for (const Place& place : step.places) {
    if (place.space != Space::kConstant) return true;
  }
  return false;
}

}  // namespace

Handle Device::set_condition() {
  std::call_once(condition_once_, [this] {
    Handle module = nullptr, function = nullptr;
    if (driver().module_load(&module, kSetCondition) == kSuccess &&
        driver().module_function(&function, module, "lamina_set_condition") == kSuccess) {
      set_condition_ = function;
    }
  });
  return set_condition_;
}

Graph::Graph(Program& program, const Addresses& addresses, uint64_t number)
    : program_(&program), addresses_(addresses), number_(number) {
  const Driver& cuda = driver();
  check(cuda.graph_create(&graph_, 0), "cuGraphCreate");
  try {
    Handle last = nullptr;
    add(graph_, program.steps, &last);
    check(cuda.graph_instantiate(&exec_, graph_, 0), "cuGraphInstantiateWithFlags",
          [&] { return "for " + program.name; });
  } catch (...) {
    cuda.graph_destroy(graph_);
    throw;
  }
}

Graph::Graph(Graph&& other) noexcept
    : program_(other.program_),
      addresses_(std::move(other.addresses_)),
      number_(other.number_),
      graph_(std::exchange(other.graph_, nullptr)),
      exec_(std::exchange(other.exec_, nullptr)),
      nodes_(std::move(other.nodes_)) {}

Graph::~Graph() {
  if (!program_->device->usable()) return;
  if (exec_ != nullptr) driver().graph_exec_destroy(exec_);
  if (graph_ != nullptr) driver().graph_destroy(graph_);
}

void Graph::launch(Handle stream) {
  check(driver().graph_launch(exec_, stream), "cuGraphLaunch",
        [&] { return "of " + program_->name; });
}

bool Graph::update(Program& program, const Addresses& addresses) {
  const Driver& cuda = driver();
  for (const auto& [step, launch, node] : nodes_) {
    Result code = kSuccess;
    if (step->kind == Step::kLaunch && launch == nullptr) {
      const Handle child = capture(program, *step, addresses);
      code = cuda.graph_update_child(exec_, node, child);
      cuda.graph_destroy(child);
    } else if (step->kind == Step::kLaunch) {
      Parameters parameters(*step, addresses, program.scratch);
      const KernelNode wanted = kernel_node(*launch, parameters.of(*launch));
      code = cuda.graph_update_kernel(exec_, node, &wanted);
    } else if (step->kind == Step::kCopy) {
      const CopyNode wanted = copy_node(*step, addresses);
      code = cuda.graph_update_copy(exec_, node, &wanted, program.device->context());
    } else {
      const MemsetNode wanted = memset_node(*step, addresses);
      code = cuda.graph_update_memset(exec_, node, &wanted, program.device->context());
    }
    if (code != kSuccess) return false;
  }
  addresses_ = addresses;
  return true;
}

void Graph::add(Handle graph, const std::vector<Step>& steps, Handle* last) {
  const Driver& cuda = driver();
  const Handle context = program_->device->context();
  for (const Step& step : steps) {
    const size_t before = *last == nullptr ? 0 : 1;
    Handle node = nullptr;
    switch (step.kind) {
      case Step::kLaunch:
        add_launches(graph, step, last);
        continue;
      case Step::kCopy: {
        const CopyNode wanted = copy_node(step, addresses_);
        check(cuda.graph_copy(&node, graph, last, before, &wanted, context),
              "cuGraphAddMemcpyNode");
        break;
      }
      case Step::kFill: {
        const MemsetNode wanted = memset_node(step, addresses_);
        check(cuda.graph_memset(&node, graph, last, before, &wanted, context),
              "cuGraphAddMemsetNode");
        break;
      }
      case Step::kIf:
      case Step::kSwitch:
        add_branches(graph, step, last);
        continue;
      case Step::kWhile:
        add_while(graph, step, last);
        continue;
      case Step::kCall:
        throw std::logic_error("a program that calls Python is no graph");
      case Step::kCollective:
        add_captured(graph, step, last);
        continue;
    }
    *last = node;
    if (moves(step)) nodes_.push_back({&step, nullptr, node});
  }
}

Handle Graph::capture(Program& program, const Step& step, const Addresses& addresses) {
  const Driver& cuda = driver();
  const Handle stream = program.device->capturing();
  check(cuda.capture_begin(stream, kCaptureThisThread), "cuStreamBeginCapture");
  Handle made = nullptr;
  try {
    if (step.kind == Step::kCollective) {
      program.issue_collective(step, addresses, stream);
    } else {
      program.issue_library(step, addresses, stream);
    }
  } catch (...) {
    cuda.capture_end(stream, &made);
    if (made != nullptr) cuda.graph_destroy(made);
    throw;
  }
  check(cuda.capture_end(stream, &made), "cuStreamEndCapture", [&] { return about(step); });
  return made;
}

void Graph::add_captured(Handle graph, const Step& step, Handle* last) {
  const Handle child = capture(*program_, step, addresses_);
  Handle node = nullptr;
  const Result code =
      driver().graph_child(&node, graph, last, *last == nullptr ? 0 : 1, child);  // copies it
  driver().graph_destroy(child);
  check(code, "cuGraphAddChildGraphNode", [&] { return about(step); });
  *last = node;
  nodes_.push_back({&step, nullptr, node});
}

void Graph::add_launches(Handle graph, const Step& step, Handle* last) {
  if (program_->kernels[step.kernel].library) return add_captured(graph, step, last);
  Parameters parameters(step, addresses_, program_->scratch);
  for (const Launch& launch : program_->kernels[step.kernel].launches) {
    const KernelNode wanted = kernel_node(launch, parameters.of(launch));
    Handle node = nullptr;
    check(driver().graph_kernel(&node, graph, last, *last == nullptr ? 0 : 1, &wanted),
          "cuGraphAddKernelNode", [&] { return about(step); });
    *last = node;
    nodes_.push_back({&step, &launch, node});
  }
}

void Graph::add_branches(Handle graph, const Step& step, Handle* last) {
  const auto count = static_cast<int64_t>(step.bodies.size());
  std::vector<ConditionalHandle> handles;
  // All are decided before the first body runs, which may write where the choice was.
  for (int64_t i = 0; i < count; ++i) {
    handles.push_back(0);
    if (step.bodies[static_cast<size_t>(i)].empty()) continue;
    handles.back() = make_handle(graph);
    if (step.kind == Step::kIf) {
      add_decision(graph, step, handles.back(), 1, 255, i == 1, last);
    } else if (i + 1 < count) {
      add_decision(graph, step, handles.back(), i, i, false, last);
    } else {
      add_decision(graph, step, handles.back(), 0, count - 2, true, last);
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    const auto& steps = step.bodies[static_cast<size_t>(i)];
    if (steps.empty()) continue;
    const Handle body = add_conditional(graph, kIf, handles[static_cast<size_t>(i)], last);
    Handle inner = nullptr;
    add(body, steps, &inner);
  }
}

void Graph::add_while(Handle graph, const Step& step, Handle* last) {
  const ConditionalHandle handle = make_handle(graph);
  add(graph, step.bodies[0], last);
  add_decision(graph, step, handle, 1, 255, false, last);
  const Handle body = add_conditional(graph, kWhile, handle, last);
  Handle inner = nullptr;
  add(body, step.bodies[1], &inner);
  add(body, step.bodies[0], &inner);
  add_decision(body, step, handle, 1, 255, false, &inner);
}

ConditionalHandle Graph::make_handle(Handle graph) {
  ConditionalHandle handle = 0;
  check(driver().graph_conditional(&handle, graph, program_->device->context(), 0, 0),
        "cuGraphConditionalHandleCreate");
  return handle;
}

void Graph::add_decision(Handle graph, const Step& step, ConditionalHandle handle, int64_t low,
                         int64_t high, bool outside, Handle* last) {
  uint64_t values[] = {handle,
                       addresses_.of(step.places[0]),
                       step.bytes,
                       static_cast<uint64_t>(low),
                       static_cast<uint64_t>(high),
                       outside ? uint64_t{1} : 0};
  void* parameters[std::size(values)];
  for (size_t i = 0; i < std::size(values); ++i) parameters[i] = &values[i];
  Launch launch;
  launch.function = program_->device->set_condition();
  const KernelNode wanted = kernel_node(launch, parameters);
  Handle node = nullptr;
  check(driver().graph_kernel(&node, graph, last, *last == nullptr ? 0 : 1, &wanted),
        "cuGraphAddKernelNode", [&] { return about(step); });
  *last = node;
}

Handle Graph::add_conditional(Handle graph, int type, ConditionalHandle handle, Handle* last) {
  GraphNode wanted{};
  wanted.type = kConditionalNode;
  wanted.handle = handle;
  wanted.conditional_type = type;
  wanted.size = 1;
  wanted.context = program_->device->context();
  Handle node = nullptr;
  check(driver().graph_node(&node, graph, last, *last == nullptr ? 0 : 1, &wanted),
        "cuGraphAddNode");
  *last = node;
  return wanted.bodies[0];
}

}  // namespace lamina::cuda
