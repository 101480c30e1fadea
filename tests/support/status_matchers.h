// Assertions on absl::Status and StatusOr.
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

}  // namespace ashlar::testing

#define ASSERT_OK(expression)                                                              \
  do {                                                                                     \
    const auto& ashlar_test_result = (expression);                                         \
    ASSERT_TRUE(ashlar_test_result.ok()) << ::ashlar::testing::StatusOf(ashlar_test_result); \
  } while (false)
#define EXPECT_OK(expression)                                                              \
  do {                                                                                     \
    const auto& ashlar_test_result = (expression);                                         \
    EXPECT_TRUE(ashlar_test_result.ok()) << ::ashlar::testing::StatusOf(ashlar_test_result); \
  } while (false)
#define EXPECT_CODE(expression, expected_code)                                                      \
  do {                                                                                              \
    const auto& ashlar_test_result = (expression);                                                  \
    EXPECT_EQ(::ashlar::testing::StatusOf(ashlar_test_result).code(), absl::StatusCode::expected_code) \
        << ::ashlar::testing::StatusOf(ashlar_test_result);                                         \
  } while (false)
#define ASHLAR_TEST_CONCAT_INNER(a, b) a##b
#define ASHLAR_TEST_CONCAT(a, b) ASHLAR_TEST_CONCAT_INNER(a, b)
#define ASSERT_OK_AND_ASSIGN_IMPL(result, lhs, expression)       \
  auto result = (expression);                                    \
  ASSERT_TRUE(result.ok()) << result.status();                   \
  lhs = *std::move(result)
#define ASSERT_OK_AND_ASSIGN(lhs, expression) \
  ASSERT_OK_AND_ASSIGN_IMPL(ASHLAR_TEST_CONCAT(ashlar_test_value_, __LINE__), lhs, expression)

#endif  // ASHLAR_TESTS_SUPPORT_STATUS_MATCHERS_H_
