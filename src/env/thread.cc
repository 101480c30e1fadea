#include "src/env/thread.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

#include "src/base/status.h"

namespace ashlar::env {
namespace {

class PosixThread final : public Thread {
 public:
  explicit PosixThread(std::function<void()> body) : body_(std::move(body)) {}
  ~PosixThread() override {
    if (started_) pthread_join(thread_, nullptr);
  }

  absl::Status Begin(const char* name) {
    // A handler of the application must not run here. Signals that this thread itself causes go to it all the same.
    sigset_t all, before;
    sigfillset(&all);
    for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, own);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int error = pthread_create(&thread_, nullptr, &PosixThread::Run, this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0) return ResourceExhausted("the system gives no thread");
    started_ = true;
    pthread_setname_np(thread_, name);
    return absl::OkStatus();
  }

 private:
  static void* Run(void* self) {
    static_cast<PosixThread*>(self)->body_();
    return nullptr;
  }

  const std::function<void()> body_;
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Thread>> Thread::Start(const char* name, std::function<void()> body) {
  auto thread = std::make_unique<PosixThread>(std::move(body));
  ASHLAR_RETURN_IF_ERROR(thread->Begin(name));
  return std::unique_ptr<Thread>(std::move(thread));
}

}  // namespace ashlar::env
