// AnalyzerPool: analyzers are not thread safe and costly to make, so threads borrow them.
#ifndef ASHLAR_SRC_ENGINE_ANALYZER_POOL_H_
#define ASHLAR_SRC_ENGINE_ANALYZER_POOL_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "ashlar/schema.h"
#include "src/base/mutex.h"
#include "src/text/analyzed_document.h"

namespace ashlar::engine {

// Threads: any.
class AnalyzerPool {
 public:
  using Pointer = std::unique_ptr<text::DocumentAnalyzer>;

  // One analyzer and the schema that it was made for; goes back to the pool when destroyed.
  class Loan {
   public:
    Loan(AnalyzerPool* pool, std::shared_ptr<const Schema> schema, Pointer analyzer)
        : pool_(pool), schema_(std::move(schema)), analyzer_(std::move(analyzer)) {}
    Loan(Loan&&) = default;
    Loan& operator=(Loan&&) = delete;
    ~Loan() {
      if (analyzer_ != nullptr) pool_->Return(schema_, std::move(analyzer_));
    }
    text::DocumentAnalyzer& operator*() const { return *analyzer_; }
    text::DocumentAnalyzer* operator->() const { return analyzer_.get(); }
    const Schema& schema() const { return *schema_; }

   private:
    AnalyzerPool* pool_;
    std::shared_ptr<const Schema> schema_;
    Pointer analyzer_;
  };

  // From now on loans are of this schema.
  void SetSchema(std::shared_ptr<const Schema> schema) {
    std::vector<Pointer> old;
    MutexLock lock(&mutex_);
    schema_ = std::move(schema);
    idle_.swap(old);
  }

  absl::StatusOr<Loan> Borrow() {
    std::shared_ptr<const Schema> schema;
    Pointer analyzer;
    {
      MutexLock lock(&mutex_);
      schema = schema_;
      if (!idle_.empty()) {
        analyzer = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (analyzer == nullptr) {
      absl::StatusOr<Pointer> made = text::DocumentAnalyzer::Create(*schema);
      if (!made.ok()) return made.status();
      analyzer = *std::move(made);
    }
    return Loan(this, std::move(schema), std::move(analyzer));
  }

 private:
  void Return(const std::shared_ptr<const Schema>& schema, Pointer analyzer) {
    MutexLock lock(&mutex_);
    if (schema == schema_) idle_.push_back(std::move(analyzer));
  }

  Mutex mutex_;
  std::shared_ptr<const Schema> schema_ ABSL_GUARDED_BY(mutex_);
  std::vector<Pointer> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_ANALYZER_POOL_H_
