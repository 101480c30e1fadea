// Assertions for programmer errors only: bad input from users or from disk is a Status, never a CHECK.
#ifndef ASHLAR_SRC_BASE_CHECK_H_
#define ASHLAR_SRC_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

// Always on; guards memory safety and what is about to be written to disk.
#define ASHLAR_CHECK(condition)                                                                 \
  do {                                                                                          \
    if (!(condition)) [[unlikely]] {                                                            \
      std::fprintf(stderr, "%s:%d: ASHLAR_CHECK failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                             \
    }                                                                                           \
  } while (false)

#ifdef NDEBUG
#define ASHLAR_DCHECK(condition) ((void)sizeof(condition))
#else
#define ASHLAR_DCHECK(condition) ASHLAR_CHECK(condition)
#endif

#endif  // ASHLAR_SRC_BASE_CHECK_H_
