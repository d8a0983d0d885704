// Whether this build is one for a sanitizer, for tests that can show nothing there, or take minutes
// to do so. A test that leaves itself out says why:
//
//   CHORD_SKIP_UNDER_SANITIZERS("times under a sanitizer say nothing");
#pragma once

#include <gtest/gtest.h>

namespace chord::testing {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

inline constexpr bool kSanitized = kThreadSanitizer || kAddressSanitizer;

}  // namespace chord::testing

#define CHORD_SKIP_UNDER_SANITIZERS(reason) \
  if (::chord::testing::kSanitized) GTEST_SKIP() << (reason)
#define CHORD_SKIP_UNDER_THREAD_SANITIZER(reason) \
  if (::chord::testing::kThreadSanitizer) GTEST_SKIP() << (reason)
