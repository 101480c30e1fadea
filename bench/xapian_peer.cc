// Xapian as a peer.
#include <xapian.h>

#include <filesystem>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/peers.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

// Runs what may throw Xapian's errors.
template <class Step>
auto Caught(Step step) -> absl::StatusOr<decltype(step())> {
  try {
    return step();
  } catch (const Xapian::Error& error) {
    return Internal(absl::StrCat("Xapian: ", error.get_description()));
  }
}

class XapianPeer : public Peer {
 public:
  explicit XapianPeer(std::string directory)
      : directory_(std::move(directory)), writer_(directory_ + "/db", Xapian::DB_CREATE_OR_OPEN) {}

  std::string_view name() const override { return "xapian"; }
  std::string_view form() const override {
    return "glass, TermGenerator without stems, with positions, contents as data, compacted before searching; BM25 k1 "
           "1.2, "
           "b 0.75, its own idf";
  }

  absl::Status Write(const WriteBatch& batch) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return Caught([&] {
             for (const WriteBatch::Operation& operation : batch.operations())
               writer_.add_document(DocumentOf(operation.document));
             writer_.commit();
             return true;
           })
        .status();
  }

  absl::Status Optimize() override {
    return Caught([&] {
             writer_.commit();
             writer_.close();
             Xapian::Database(directory_ + "/db").compact(directory_ + "/compact");
             std::filesystem::remove_all(directory_ + "/db");
             reader_ = Xapian::Database(directory_ + "/compact");
             return true;
           })
        .status();
  }

  absl::StatusOr<PeerSearch> Prepare(const TextQuery& query, uint64_t k) override {
    return Caught([&] {
      const auto enquire = std::make_shared<Xapian::Enquire>(reader_);
      const Xapian::Query::op kind = query.kind == TextQuery::Kind::kAll      ? Xapian::Query::OP_AND
                                     : query.kind == TextQuery::Kind::kPhrase ? Xapian::Query::OP_PHRASE
                                                                              : Xapian::Query::OP_OR;
      enquire->set_query(Xapian::Query(kind, query.words.begin(), query.words.end()));
      if (k == 0) {
        enquire->set_weighting_scheme(Xapian::BoolWeight());
      } else {
        enquire->set_weighting_scheme(Xapian::BM25Weight(1.2, 0, 1, 0.75, 0));
      }
      const Xapian::doccount all = reader_.get_doccount();
      return PeerSearch([enquire, k, all] {
        return Caught([&]() -> uint64_t {
          if (k == 0) return enquire->get_mset(0, 1, all).get_matches_estimated();
          return enquire->get_mset(0, static_cast<Xapian::doccount>(k)).size();
        });
      });
    });
  }

 private:
  Xapian::Document DocumentOf(const Document& from) {
    Xapian::Document document;
    terms_.set_document(document);
    terms_.set_termpos(0);
    std::string data;
    for (const char* field : {"title", "body"}) {
      const std::string text(TextOf(from, field));
      terms_.index_text(text);
      terms_.increase_termpos();
      absl::StrAppend(&data, text, "\n");
    }
    absl::StrAppend(&data, ToAbsl(TextOf(from, "id")));
    document.set_data(data);
    return document;
  }

  std::mutex mutex_;
  const std::string directory_;
  Xapian::WritableDatabase writer_;
  Xapian::Database reader_;
  Xapian::TermGenerator terms_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> MakeXapianPeer(const std::string& directory) {
  return Caught([&]() -> std::unique_ptr<Peer> { return std::make_unique<XapianPeer>(directory); });
}

}  // namespace ashlar::bench
