// leaving.h -- how the process ends while computations run that nobody will see the results of.
#pragma once

#include "core/shared.h"

namespace lamina {

// This thread has frames of native code (compiled programs, MLIR, our own) that run Python, or run
// without the GIL. Where Python ends the thread, as versions before 3.14 do with one that asks for
// the GIL while the interpreter goes away, they must not be unwound: they are half done, and their
// destructors need the GIL. The thread sleeps instead, and a process that ends meanwhile runs no
// destructors either: the code may need what they destroy (its memory, the threads of a library).
class LAMINA_SHARED InNativeCode {
 public:
  InNativeCode() { enter(); }
  ~InNativeCode() { leave(); }
  InNativeCode(const InNativeCode&) = delete;

  // The same for a stretch that is no scope of C++; may be nested.
  static void enter();
  static void leave();
};

// The interpreter goes away, on this thread: others give nothing back to it from now on.
void leave_python();

// Whether it does, and this thread is another than the one it ends on.
bool python_leaves_without_me();

// Never returns. For a thread that needs the interpreter when there is none any more.
[[noreturn]] LAMINA_SHARED void sleep_until_the_end();

// In a forked child: its parent's threads are not there.
void forget_other_threads();

}  // namespace lamina
