// leaving.h -- how the process ends while computations run that nobody will see the results of.
#pragma once

namespace lamina {

// This thread runs compiled code without the GIL: the process may end before it is done.
class OutsidePython {
 public:
  OutsidePython();
  ~OutsidePython();
  OutsidePython(const OutsidePython&) = delete;
};

// The interpreter goes away, on this thread. Others give nothing back to it from now on, and a
// process that ends while compiled code runs runs no destructors: that code may need what they
// destroy (its memory, the threads of a library).
void leave_python();

// Whether it does, and this thread is another than the one it ends on.
bool python_leaves_without_me();

// Never returns. For a thread that asked for the GIL when there is no interpreter any more: Python
// ends it by an exception, which compiled code and destructors can't be unwound by.
[[noreturn]] void sleep_until_the_end();

// In a forked child: its parent's threads are not there.
void forget_other_threads();

}  // namespace lamina
