// SQLite's FTS5 as a peer.
#include <sqlite3.h>

#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/peers.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

int BindText(sqlite3_stmt* statement, int place, std::string_view text) {
  return sqlite3_bind_text64(statement, place, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

class SqlitePeer : public Peer {
 public:
  static absl::StatusOr<std::unique_ptr<Peer>> Make(const std::string& directory) {
    auto peer = std::make_unique<SqlitePeer>();
    ASHLAR_RETURN_IF_ERROR(peer->Open(directory));
    return absl::StatusOr<std::unique_ptr<Peer>>(std::move(peer));
  }
  ~SqlitePeer() override {
    insert_.reset();
    sqlite3_close_v2(database_);
  }

  std::string_view name() const override { return "sqlite"; }
  std::string_view form() const override {
    return "FTS5, unicode61 without removing diacritics, contents kept; WAL, synchronous FULL, 512 MiB of cache, files "
           "mapped; "
           "k1 1.2, b 0.75, its own idf";
  }

  absl::Status Write(const WriteBatch& batch) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ASHLAR_RETURN_IF_ERROR(Do("BEGIN IMMEDIATE"));
    for (const WriteBatch::Operation& operation : batch.operations())
      ASHLAR_RETURN_IF_ERROR(Insert(operation.document));
    return Do("COMMIT");
  }

  absl::Status Optimize() override {
    ASHLAR_RETURN_IF_ERROR(Do("INSERT INTO documents(documents) VALUES ('optimize')"));
    return Do("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  absl::StatusOr<PeerSearch> Prepare(const TextQuery& query, uint64_t k) override {
    const char* const sql = k == 0
                                ? "SELECT count(*) FROM documents WHERE documents MATCH ?1"
                                : "SELECT rowid, rank FROM documents WHERE documents MATCH ?1 ORDER BY rank LIMIT ?2";
    ASHLAR_ASSIGN_OR_RETURN(Statement made, Compile(sql));
    const std::shared_ptr<sqlite3_stmt> statement = std::move(made);
    const std::string match = MatchOf(query);
    int code = sqlite3_bind_text64(statement.get(), 1, match.data(), match.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    if (code == SQLITE_OK && k != 0) code = sqlite3_bind_int64(statement.get(), 2, static_cast<int64_t>(k));
    if (code != SQLITE_OK) return Failed(sql);
    return PeerSearch([this, statement, k] { return Search(statement.get(), k == 0); });
  }

 private:
  absl::Status Open(const std::string& directory) {
    if (sqlite3_open(absl::StrCat(directory, "/fts5.db").c_str(), &database_) != SQLITE_OK) return Failed("open");
    for (const char* sql : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA cache_size=-524288",
                            "PRAGMA mmap_size=8589934592",
                            "CREATE VIRTUAL TABLE documents USING fts5(id UNINDEXED, title, body, "
                            "tokenize='unicode61 remove_diacritics 0')"}) {
      ASHLAR_RETURN_IF_ERROR(Do(sql));
    }
    ASHLAR_ASSIGN_OR_RETURN(insert_, Compile("INSERT INTO documents(id, title, body) VALUES (?1, ?2, ?3)"));
    return absl::OkStatus();
  }

  absl::Status Insert(const Document& document) {
    sqlite3_stmt* const insert = insert_.get();
    sqlite3_reset(insert);
    int place = 0;
    for (const char* field : {"id", "title", "body"})
      if (BindText(insert, ++place, TextOf(document, field)) != SQLITE_OK) return Failed("bind");
    return sqlite3_step(insert) == SQLITE_DONE ? absl::OkStatus() : Failed("insert");
  }

  static std::string MatchOf(const TextQuery& query) {
    std::string match;
    const char* const between = query.kind == TextQuery::Kind::kPhrase ? " + "
                                : query.kind == TextQuery::Kind::kAll  ? " AND "
                                                                       : " OR ";
    for (const std::string& word : query.words) absl::StrAppend(&match, match.empty() ? "" : between, "\"", word, "\"");
    return match;
  }

  absl::StatusOr<uint64_t> Search(sqlite3_stmt* statement, bool counts) {
    sqlite3_reset(statement);
    uint64_t hits = 0;
    int code = sqlite3_step(statement);
    for (; code == SQLITE_ROW; code = sqlite3_step(statement))
      hits = counts ? static_cast<uint64_t>(sqlite3_column_int64(statement, 0)) : hits + 1;
    if (code != SQLITE_DONE) return Failed("search");
    return hits;
  }

  absl::StatusOr<Statement> Compile(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) != SQLITE_OK) return Failed(sql);
    return Statement(statement);
  }

  absl::Status Do(const char* sql) {
    return sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK ? absl::OkStatus() : Failed(sql);
  }

  absl::Status Failed(const char* what) {
    return Internal(absl::StrCat("SQLite: ", what, ": ", sqlite3_errmsg(database_)));
  }

  std::mutex mutex_;  // one connection writes
  sqlite3* database_ = nullptr;
  Statement insert_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> MakeSqlitePeer(const std::string& directory) {
  return SqlitePeer::Make(directory);
}

}  // namespace ashlar::bench
