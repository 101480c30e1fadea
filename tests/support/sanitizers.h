// Which sanitizer a test is built with: g++ defines macros, clang has features.
#ifndef ASHLAR_TESTS_SUPPORT_SANITIZERS_H_
#define ASHLAR_TESTS_SUPPORT_SANITIZERS_H_

#if defined(__SANITIZE_ADDRESS__)
#define ASHLAR_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASHLAR_ADDRESS_SANITIZER 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define ASHLAR_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ASHLAR_THREAD_SANITIZER 1
#endif
#endif

#endif  // ASHLAR_TESTS_SUPPORT_SANITIZERS_H_
