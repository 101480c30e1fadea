// Checkpoint: a consistent copy of a store in another directory, made while the store is written to.
#ifndef ASHLAR_CHECKPOINT_H_
#define ASHLAR_CHECKPOINT_H_

#include <cstdint>

#include "ashlar/document.h"

namespace ashlar {

struct CheckpointOptions {
  // False: `directory` must not exist. True: it may hold an earlier checkpoint of the same store, which becomes the new one:
  // only segments that it does not have are added, and the rest is removed once the new state is committed. A crash leaves
  // the old checkpoint or the new one.
  bool incremental = false;
  bool hard_links = true;  // where the file system allows; else, and across file systems, bytes are copied
  bool verify = true;      // opens the result and runs Check on it; DataLoss if that finds damage
};

struct CheckpointReport {
  Sequence sequence = 0;  // the checkpoint holds exactly the batches up to this one
  uint64_t documents = 0;
  uint64_t segments_linked = 0;
  uint64_t segments_copied = 0;
  uint64_t segments_kept = 0;  // incremental: were there already
  uint64_t bytes_written = 0;  // hard links write none
};

}  // namespace ashlar

#endif  // ASHLAR_CHECKPOINT_H_
