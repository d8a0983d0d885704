// Counts what this thread takes from the heap.
#pragma once

namespace chord::c_api_test {

void start_counting();
// How many allocations there have been since.
int stop_counting();

}  // namespace chord::c_api_test
