// effects.h -- calls whose effects somebody may wait for.
#pragma once

#include "completion.h"

namespace lamina {

// Remembers a queued call that has effects beyond its results.
void note_effects(const Ref<Completion>& completion);

// Waits for all of them. False with the error set of the first that failed and was not raised yet.
bool wait_for_effects();

}  // namespace lamina
