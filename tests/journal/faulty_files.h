// A file system that passes everything on, writes down what changes a disk, and fails the n-th write or sync when told to.
#ifndef ASHLAR_TESTS_JOURNAL_FAULTY_FILES_H_
#define ASHLAR_TESTS_JOURNAL_FAULTY_FILES_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/env/env.h"

namespace ashlar::journal {

class FaultyFiles : public env::FileSystem {
 public:
  explicit FaultyFiles(env::FileSystem* base) : base_(*base) {}

  // The n-th write from now (1: the next one) writes `bytes` bytes and fails.
  void FailWrite(int n, uint64_t bytes, absl::Status status) { writes_[write_count_ + n] = {bytes, std::move(status)}; }
  void FailSync(int n, absl::Status status) { syncs_[sync_count_ + n] = std::move(status); }
  // The next `times` creations of a file fail.
  void FailCreate(absl::Status status, int times) {
    create_status_ = std::move(status);
    create_failures_ = times;
  }
  void Heal() {
    writes_.clear();
    syncs_.clear();
    create_failures_ = 0;
    fired_ = false;
  }
  bool fired() const { return fired_; }
  const std::vector<std::string>& log() const { return log_; }
  void ClearLog() { log_.clear(); }

  absl::StatusOr<std::unique_ptr<env::WritableFile>> CreateFile(const std::string& path) override {
    if (create_failures_ > 0) {
      --create_failures_;
      fired_ = true;
      return create_status_;
    }
    return Wrap(path, base_.CreateFile(path));
  }
  absl::StatusOr<std::unique_ptr<env::WritableFile>> OpenForWrite(const std::string& path) override {
    return Wrap(path, base_.OpenForWrite(path));
  }
  absl::StatusOr<std::unique_ptr<env::ReadableFile>> OpenForRead(const std::string& path) override {
    return base_.OpenForRead(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    log_.push_back(absl::StrCat("rename ", from, " ", to));
    return base_.Rename(from, to);
  }
  absl::Status Link(const std::string& from, const std::string& to) override { return base_.Link(from, to); }
  absl::Status Remove(const std::string& path) override { return base_.Remove(path); }
  absl::StatusOr<uint64_t> FileSize(const std::string& path) override { return base_.FileSize(path); }
  absl::StatusOr<bool> Exists(const std::string& path) override { return base_.Exists(path); }
  absl::StatusOr<uint64_t> AvailableBytes(const std::string& path) override { return base_.AvailableBytes(path); }
  absl::StatusOr<std::vector<DirectoryEntry>> List(const std::string& directory) override {
    return base_.List(directory);
  }
  absl::Status CreateDirectory(const std::string& path) override { return base_.CreateDirectory(path); }
  absl::Status SyncDirectory(const std::string& path) override {
    log_.push_back(absl::StrCat("syncdir ", path));
    if (absl::Status status = NextSync(); !status.ok()) return status;
    return base_.SyncDirectory(path);
  }
  absl::StatusOr<std::unique_ptr<env::FileLock>> Lock(const std::string& path) override { return base_.Lock(path); }
  absl::StatusOr<bool> IsLocked(const std::string& path) override { return base_.IsLocked(path); }
  absl::StatusOr<std::unique_ptr<env::SharedPage>> MapShared(const std::string& path, size_t size,
                                                             bool writable) override {
    return base_.MapShared(path, size, writable);
  }
  std::string NativePath(const std::string& path) const override { return base_.NativePath(path); }

 private:
  class File : public env::WritableFile {
   public:
    File(FaultyFiles* owner, std::string path, std::unique_ptr<env::WritableFile> base)
        : owner_(*owner), path_(std::move(path)), base_(std::move(base)) {}
    absl::Status WriteAt(uint64_t offset, ByteSpan bytes) override {
      owner_.log_.push_back(absl::StrCat("write ", path_, " ", offset, " ", bytes.size()));
      const auto fault = owner_.writes_.find(++owner_.write_count_);
      if (fault == owner_.writes_.end()) return base_->WriteAt(offset, bytes);
      owner_.fired_ = true;
      const auto [kept, status] = fault->second;
      base_->WriteAt(offset, bytes.first(std::min<uint64_t>(kept, bytes.size()))).IgnoreError();
      return status;
    }
    absl::Status Append(ByteSpan bytes) override { return WriteAt(base_->size(), bytes); }
    absl::Status Sync() override {
      owner_.log_.push_back(absl::StrCat("sync ", path_));
      if (absl::Status status = owner_.NextSync(); !status.ok()) return status;
      return base_->Sync();
    }
    absl::Status Truncate(uint64_t size) override { return base_->Truncate(size); }
    uint64_t size() const override { return base_->size(); }
    absl::Status Close() override { return base_->Close(); }

   private:
    FaultyFiles& owner_;
    const std::string path_;
    const std::unique_ptr<env::WritableFile> base_;
  };

  absl::Status NextSync() {
    const auto fault = syncs_.find(++sync_count_);
    if (fault == syncs_.end()) return absl::OkStatus();
    fired_ = true;
    return fault->second;
  }
  absl::StatusOr<std::unique_ptr<env::WritableFile>> Wrap(const std::string& path,
                                                          absl::StatusOr<std::unique_ptr<env::WritableFile>> file) {
    if (!file.ok()) return file.status();
    return std::unique_ptr<env::WritableFile>(std::make_unique<File>(this, path, *std::move(file)));
  }

  env::FileSystem& base_;
  std::map<int, std::pair<uint64_t, absl::Status>> writes_;
  std::map<int, absl::Status> syncs_;
  int write_count_ = 0, sync_count_ = 0, create_failures_ = 0;
  absl::Status create_status_;
  bool fired_ = false;
  std::vector<std::string> log_;
};

}  // namespace ashlar::journal

#endif  // ASHLAR_TESTS_JOURNAL_FAULTY_FILES_H_
