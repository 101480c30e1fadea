// Thread: a thread of the library's own. It leaves the application's signals to the application's threads.
#ifndef ASHLAR_SRC_ENV_THREAD_H_
#define ASHLAR_SRC_ENV_THREAD_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"

namespace ashlar::env {

class Thread {
 public:
  // Runs `body` in a new thread. `name` has at most 15 characters. ResourceExhausted: the system gives no thread.
  static absl::StatusOr<std::unique_ptr<Thread>> Start(const char* name, std::function<void()> body);
  // Waits for the end of the body. Never called by the body.
  virtual ~Thread() = default;
};

}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_THREAD_H_
