// The status page (SPEC J-10): 4,096 bytes of shared memory with a sequence lock. Every word is an atomic, so a reader that
// races the writer gets torn values, never undefined ones, and the counter tells it so: whoever acquires a released new word
// also sees the odd counter that was stored before it. No fences, because ThreadSanitizer does not know them.
#include <array>
#include <atomic>
#include <cstring>

#include "src/base/checksum.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/journal/journal.h"

namespace ashlar::journal {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr uint64_t kMagic = 0x0001'5355'5441'5453;  // "STATUS" and version 1, in the order of bytes
constexpr int kAttemptsMax = 1000;                  // a publication takes nanoseconds; a dead writer's page never settles

// 0 counter, 1 magic, 2-3 store id, 4 sequence, 5 file number, 6 offset, 7 generation, 8 durable file number, 9 durable
// offset, 10 checksum of words 1 to 9.
constexpr size_t kChecksumWord = 10;
constexpr size_t kWords = 11;
using Words = std::array<uint64_t, kWords>;

uint64_t ChecksumOf(const Words& words) {
  return Checksum(std::as_bytes(std::span(words)).subspan(8, (kChecksumWord - 1) * 8), 0);
}

class SharedStatusPage : public StatusPage {
 public:
  SharedStatusPage(std::unique_ptr<env::SharedPage> page, const format::StoreId& store_id)
      : page_(std::move(page)), store_id_(store_id) {}

  void Publish(const Status& status) override {
    if (page_->data() == nullptr) return;  // read-only
    Words words{};
    words[1] = kMagic;
    std::memcpy(&words[2], store_id_.data(), 16);
    words[4] = status.sequence;
    words[5] = status.position.number;
    words[6] = status.position.offset;
    words[7] = status.generation;
    words[8] = status.durable.number;
    words[9] = status.durable.offset;
    words[kChecksumWord] = ChecksumOf(words);
    // Odd while writing. A writer that died in the middle left it odd.
    const uint64_t writing = Word(0).load(std::memory_order_relaxed) | 1;
    Word(0).store(writing, std::memory_order_relaxed);
    for (size_t i = 1; i < kWords; ++i) Word(i).store(words[i], std::memory_order_release);
    Word(0).store(writing + 1, std::memory_order_release);
  }

  std::optional<Status> Load() const override {
    for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
      Words words{};
      words[0] = Word(0).load(std::memory_order_acquire);
      if (words[0] % 2 == 1) continue;
      for (size_t i = 1; i < kWords; ++i) words[i] = Word(i).load(std::memory_order_acquire);
      if (Word(0).load(std::memory_order_relaxed) != words[0]) continue;
      return Decode(words);
    }
    return std::nullopt;
  }

 private:
  std::optional<Status> Decode(const Words& words) const {
    if (words[1] != kMagic || std::memcmp(&words[2], store_id_.data(), 16) != 0) return std::nullopt;
    if (SiteIsOn(Site::kCheckStatusPage) && words[kChecksumWord] != ChecksumOf(words)) return std::nullopt;
    Status status;
    status.sequence = words[4];
    status.position = {words[5], words[6]};
    status.generation = words[7];
    status.durable = {words[8], words[9]};
    return status;
  }

  // The mapping is page-aligned. A read-only one is only ever loaded from.
  std::atomic_ref<uint64_t> Word(size_t index) const {
    const std::byte* base = static_cast<const env::SharedPage&>(*page_).data();
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(const_cast<std::byte*>(base) + index * 8));
  }

  const std::unique_ptr<env::SharedPage> page_;
  const format::StoreId store_id_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StatusPage>> StatusPage::Open(env::Env env, const std::string& directory,
                                                             const format::StoreId& store_id, bool writable) {
  const std::string path = env::JoinPath(directory, kStatusFileName);
  ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<env::SharedPage> page, env.files->MapShared(path, kPageBytes, writable));
  if (page->size() < kPageBytes) return DataLoss(path, "status page", page->size(), "the file is too short");
  return std::make_unique<SharedStatusPage>(std::move(page), store_id);
}

}  // namespace ashlar::journal
