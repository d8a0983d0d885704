// The one symbol that compiler and loader agree on.
#pragma once

namespace chord::cuda {

// The extern "C" kernel of every cubin: no symbol hunting.
inline constexpr const char* kEntryName = "chord_kernel";

}  // namespace chord::cuda
