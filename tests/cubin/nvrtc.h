// The NVRTC of this machine, for tests that need a real compiler.
#pragma once

#include <gtest/gtest.h>

#include "src/cubin/nvrtc_compiler.h"
#include "src/cuda/nvrtc_api.h"
#include "src/source/device_text.h"

namespace chord::test {

// Skips the test, with the reason, if there is none.
#define CHORD_NEEDS_NVRTC(api)                                            \
  const auto api##_opened = cuda::open_nvrtc(std::nullopt);               \
  if (!api##_opened.ok()) GTEST_SKIP() << api##_opened.error().message(); \
  const cuda::NvrtcApi& api = *api##_opened

// `source` with the embedded device files that it includes.
inline cubin::CompileRequest request_of(const std::string& name, const std::string& source,
                                        Architecture arch) {
  cubin::CompileRequest request{.name = name, .source = source, .arch = arch};
  const auto files = source::included_files(source, source::embedded_device_files());
  EXPECT_TRUE(files.ok()) << files.error().message();
  if (files.ok())
    for (const auto& file : *files) request.headers.emplace_back(file.name, file.text);
  return request;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace chord::test
