// Process facts: forks. After a fork the child must not touch what the parent holds (locks, journals, LMDB), so handles
// remember the generation they were made in.
#ifndef ASHLAR_SRC_ENV_PROCESS_H_
#define ASHLAR_SRC_ENV_PROCESS_H_

#include <cstdint>

namespace ashlar::env {

// Grows by one in the child of every fork(). One relaxed load; any thread.
uint64_t ForkGeneration();

}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_PROCESS_H_
