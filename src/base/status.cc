#include "src/base/status.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ashlar {
namespace {

constexpr char kPlaceUrl[] = "ashlar/place";

absl::StatusCode CodeOfErrno(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EFBIG:
      return absl::StatusCode::kResourceExhausted;
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status InvalidArgument(std::string_view m) { return absl::InvalidArgumentError(ToAbsl(m)); }
absl::Status NotFound(std::string_view m) { return absl::NotFoundError(ToAbsl(m)); }
absl::Status AlreadyExists(std::string_view m) { return absl::AlreadyExistsError(ToAbsl(m)); }
absl::Status FailedPrecondition(std::string_view m) { return absl::FailedPreconditionError(ToAbsl(m)); }
absl::Status ResourceExhausted(std::string_view m) { return absl::ResourceExhaustedError(ToAbsl(m)); }
absl::Status Unavailable(std::string_view m) { return absl::UnavailableError(ToAbsl(m)); }
absl::Status Unimplemented(std::string_view m) { return absl::UnimplementedError(ToAbsl(m)); }
absl::Status Internal(std::string_view m) { return absl::InternalError(ToAbsl(m)); }

absl::Status WithPlace(absl::Status status, std::string_view file, std::string_view section, uint64_t offset) {
  if (status.ok() || status.GetPayload(kPlaceUrl).has_value()) return status;
  // Offset, section, then the file, which is last because a name may hold any byte but NUL.
  status.SetPayload(kPlaceUrl, absl::Cord(absl::StrCat(offset, "\n", ToAbsl(section), "\n", ToAbsl(file))));
  return status;
}

std::optional<ErrorPlace> PlaceOf(const absl::Status& status) {
  auto payload = status.GetPayload(kPlaceUrl);
  if (!payload.has_value()) return std::nullopt;
  const std::string text(*payload);
  const size_t first = text.find('\n');
  const size_t second = text.find('\n', first + 1);
  if (first == std::string::npos || second == std::string::npos) return std::nullopt;
  ErrorPlace place;
  if (!absl::SimpleAtoi(text.substr(0, first), &place.offset)) return std::nullopt;
  place.section = text.substr(first + 1, second - first - 1);
  place.file = text.substr(second + 1);
  return place;
}

absl::Status DataLoss(std::string_view file, std::string_view section, uint64_t offset, std::string_view message) {
  return WithPlace(absl::DataLossError(
                       absl::StrCat(ToAbsl(file), ": ", ToAbsl(section), " at offset ", offset, ": ", ToAbsl(message))),
                   file, section, offset);
}

absl::Status ErrnoError(int error, std::string_view operation, std::string_view file) {
  return WithPlace(
      absl::Status(CodeOfErrno(error), absl::StrCat(ToAbsl(file), ": ", ToAbsl(operation), ": ", std::strerror(error))),
      file, "", 0);
}

absl::Status Annotate(const absl::Status& status, std::string_view prefix) {
  if (status.ok()) return status;
  absl::Status result(status.code(), absl::StrCat(ToAbsl(prefix), ": ", status.message()));
  status.ForEachPayload(
      [&result](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

}  // namespace ashlar
