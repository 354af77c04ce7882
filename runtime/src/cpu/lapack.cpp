// lapack.cpp -- see lapack.h.
#include "cpu/lapack.h"

#include "cpu/threads.h"

namespace lamina {
namespace {

struct Loop {
  const LapackJob* job;
  void (*matrices)(const LapackJob&, int64_t, int64_t);
};

}  // namespace

void for_each_matrix(const LapackJob& job, void (*matrices)(const LapackJob&, int64_t, int64_t)) {
  Loop loop{&job, matrices};
  lamina_parallel_for(
      [](void* context, int64_t lo, int64_t hi) {
        const Loop& all = *static_cast<const Loop*>(context);
        try {
          all.matrices(*all.job, lo, hi);
        } catch (const OutOfMemory&) {
          lamina_fail("out of memory: the work arrays of LAPACK could not be allocated");
        }
      },
      &loop, job.call->batch, job.call->grain);
}

LapackSymbols lapack_symbols() {
  LapackSymbols symbols;
  add_factorisations(symbols);
  add_eigenvalue_problems(symbols);
  add_solvers(symbols);
  return symbols;
}

}  // namespace lamina
