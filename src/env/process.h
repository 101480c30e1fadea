// Process facts: forks and standard descriptors. After a fork the child must not touch what the parent holds (locks,
// journals, LMDB), so handles remember the generation they were made in.
#ifndef ASHLAR_SRC_ENV_PROCESS_H_
#define ASHLAR_SRC_ENV_PROCESS_H_

#include <cstdint>

namespace ashlar::env {

// Grows by one in the child of every fork(). One relaxed load; any thread.
uint64_t ForkGeneration();

// Opens /dev/null on those of the descriptors 0, 1 and 2 that are closed, so that no file of a store gets one of them and
// what a program prints can't land in it.
void ReserveStandardDescriptors();

}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_PROCESS_H_
