#include "tools/document_source.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "tools/json_documents.h"
#include "tools/schema_json.h"

namespace ashlar::tools {

absl::Status SourceLine::Error(const absl::Status& error) const {
  return absl::Status(error.code(), absl::StrCat(file, ":", number, ":", error.message()));
}

absl::StatusOr<std::unique_ptr<DocumentSource>> DocumentSource::Open(std::vector<std::string> paths) {
  uint64_t total = 0;
  bool known = true;
  for (const std::string& path : paths) {
    if (path == "-") {
      known = false;
      continue;
    }
    std::error_code error;
    const auto type = std::filesystem::status(path, error).type();
    if (type == std::filesystem::file_type::not_found) return NotFound(absl::StrCat(path, ": there is no such file"));
    if (type == std::filesystem::file_type::regular) {
      total += std::filesystem::file_size(path, error);
    } else {
      known = false;
    }
  }
  return std::unique_ptr<DocumentSource>(new DocumentSource(std::move(paths), known ? total : 0));
}

absl::StatusOr<bool> DocumentSource::Read(SourceLine* line) {
  while (true) {
    if (reader_ == nullptr) {
      if (next_path_ == paths_.size()) return false;
      ASHLAR_ASSIGN_OR_RETURN(reader_, LineReader::Open(paths_[next_path_]));
      ++next_path_;
    }
    const absl::StatusOr<bool> more = reader_->Next(&line->text);
    if (!more.ok() && more.status().code() != absl::StatusCode::kResourceExhausted) return more.status();
    if (more.ok() && !*more) {
      bytes_done_ += reader_->bytes_total();
      reader_.reset();
      continue;
    }
    if (more.ok() && IsBlank(line->text)) continue;
    line->file = reader_->name();
    line->number = reader_->line_number();
    line->status = more.status();
    if (!more.ok()) line->text = {};
    return true;
  }
}

absl::StatusOr<bool> DocumentSource::Next(SourceLine* line) {
  if (kept_.empty()) return Read(line);
  current_ = std::move(kept_.front().text);
  *line = std::move(kept_.front().line);
  line->text = std::string_view(current_).substr(0, current_.size() - kLinePadding);
  kept_.pop_front();
  return true;
}

absl::StatusOr<Schema> DocumentSource::InferSchema(const std::string& key, const AnalyzerOptions& analyzer,
                                                   bool skip_bad_lines) {
  SchemaInference inference(key.empty() ? std::nullopt : std::optional(key), analyzer);
  size_t bytes = 0;
  while (kept_.size() < kInferenceLines && bytes < kLineBytesMax) {
    SourceLine line;
    ASHLAR_ASSIGN_OR_RETURN(const bool more, Read(&line));
    if (!more) break;
    absl::Status status = line.status;
    if (status.ok()) {
      status = inference.Add(line.text);
      if (!status.ok()) status = line.Error(status);
    }
    if (!status.ok() && !skip_bad_lines) return status;
    bytes += line.text.size();
    std::string text(line.text);
    text.append(kLinePadding, '\0');
    kept_.push_back({std::move(text), std::move(line)});
  }
  absl::StatusOr<Schema> schema = inference.Finish();
  if (!schema.ok()) return Annotate(schema.status(), paths_.size() == 1 ? paths_.front() : "the documents");
  return schema;
}

uint64_t DocumentSource::bytes_read() const { return bytes_done_ + (reader_ != nullptr ? reader_->bytes_read() : 0); }

}  // namespace ashlar::tools
