// shared.h -- what the runtime's library offers to others that are loaded beside it.
#pragma once

// Everything else is hidden.
#define LAMINA_SHARED __attribute__((visibility("default")))
