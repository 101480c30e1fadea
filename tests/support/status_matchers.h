// Assertions on absl::Status and StatusOr; all take further text by <<.
#ifndef ASHLAR_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define ASHLAR_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ashlar::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

template <class T>
::testing::AssertionResult HasCode(const T& result, absl::StatusCode code) {
  const absl::Status& status = StatusOf(result);
  if (status.code() == code) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << status << ", expected " << absl::StatusCodeToString(code);
}
template <class T>
::testing::AssertionResult IsOk(const T& result) {
  return HasCode(result, absl::StatusCode::kOk);
}

}  // namespace ashlar::testing

#define ASSERT_OK(expression) ASSERT_TRUE(::ashlar::testing::IsOk(expression))
#define EXPECT_OK(expression) EXPECT_TRUE(::ashlar::testing::IsOk(expression))
#define EXPECT_CODE(expression, code) EXPECT_TRUE(::ashlar::testing::HasCode(expression, absl::StatusCode::code))
#define ASHLAR_TEST_CONCAT_INNER(a, b) a##b
#define ASHLAR_TEST_CONCAT(a, b) ASHLAR_TEST_CONCAT_INNER(a, b)
#define ASSERT_OK_AND_ASSIGN_IMPL(result, lhs, expression) \
  auto result = (expression);                              \
  ASSERT_TRUE(result.ok()) << result.status();             \
  lhs = *std::move(result)
#define ASSERT_OK_AND_ASSIGN(lhs, expression) \
  ASSERT_OK_AND_ASSIGN_IMPL(ASHLAR_TEST_CONCAT(ashlar_test_value_, __LINE__), lhs, expression)

#endif  // ASHLAR_TESTS_SUPPORT_STATUS_MATCHERS_H_
