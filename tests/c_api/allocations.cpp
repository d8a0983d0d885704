// The allocator of the test program: malloc, counted. A file of its own, so that the compiler does
// not see through it. A sanitizer keeps its own, and nothing is counted.
#include "tests/c_api/allocations.h"

#include <cstdlib>
#include <new>

namespace {

thread_local bool counting = false;
thread_local int allocations = 0;

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t bytes) {
  if (counting) ++allocations;
  if (void* pointer = std::malloc(bytes == 0 ? 1 : bytes)) return pointer;
  throw std::bad_alloc();
}
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }
#endif

namespace chord::c_api_test {

void start_counting() {
  allocations = 0;
  counting = true;
}

int stop_counting() {
  counting = false;
  return allocations;
}

}  // namespace chord::c_api_test
