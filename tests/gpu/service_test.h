// What a GPU test starts as a process of its own.
#pragma once

namespace chord::gpu_test {

inline constexpr const char* kForkFlag = "--fork-after-explain";

// Plans and looks into the cache, forks, and launches in the child. 0: the child's result is right.
int fork_after_explain();

}  // namespace chord::gpu_test
