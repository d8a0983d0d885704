// Version of the library. The cubin cache does not key on it: a cubin is keyed by what shaped it.
#pragma once

namespace chord {

inline constexpr int kVersionMajor = 0;
inline constexpr int kVersionMinor = 1;
inline constexpr int kVersionPatch = 0;
inline constexpr const char* kVersionText = "0.1.0";

}  // namespace chord
