// The rule of struct sizes: how a caller's struct of an older or newer header becomes the one of
// this library, and back. Must not know any field but the first.
//
//   CHORD_TRY(const auto options, read_struct(call, options_pointer, "options"));
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "src/c_api/call.h"

namespace chord::c_api {

// The sizes that a struct has had since the first release, oldest first, the current one last. A
// release that appends fields to a struct specialises this; what an older struct lacks reads as
// zero, so zero has to be the default of every appended field.
template <class T>
inline constexpr std::array<std::size_t, 1> kKnownSizes{sizeof(T)};

// No struct of a newer header is larger: a wild size is refused before anything behind the known
// fields is read.
inline constexpr std::size_t kMostStructBytes = 4096;

// How many bytes of the caller's struct may be read and written; what lies behind is all zero.
Result<std::size_t> shared_struct_bytes(const Call& call, const void* at, std::string_view argument,
                                        std::span<const std::size_t> known);

Error reserved_is_set(const Call& call, std::string_view argument, std::int32_t value);

// Refuses a null pointer and a reserved word that is not zero, too.
template <class T>
Result<T> read_struct(const Call& call, const T* at, std::string_view argument) {
  CHORD_TRY(const std::size_t bytes, shared_struct_bytes(call, at, argument, kKnownSizes<T>));
  T value{};
  std::memcpy(&value, at, bytes);
  if constexpr (requires { value.reserved; }) {
    if (value.reserved != 0) return reserved_is_set(call, argument, value.reserved);
  }
  return value;
}

// A struct that is to be filled: checked before the work, written after it.
template <class T>
class OutStruct {
 public:
  static Result<OutStruct> check(const Call& call, T* at, std::string_view argument) {
    CHORD_TRY(const std::size_t bytes, shared_struct_bytes(call, at, argument, kKnownSizes<T>));
    return OutStruct(at, bytes);
  }

  // The caller's struct_size stays.
  void write(T value) const { write_to(at_, value); }
  // Another struct of the same size.
  void write_to(void* at, T value) const {
    std::memcpy(&value, at_, sizeof(std::size_t));
    std::memcpy(at, &value, bytes_);
  }
  std::size_t caller_bytes() const {
    std::size_t bytes = 0;
    std::memcpy(&bytes, at_, sizeof bytes);
    return bytes;
  }

 private:
  OutStruct(T* at, std::size_t bytes) : at_(at), bytes_(bytes) {}

  T* at_;
  std::size_t bytes_;
};

}  // namespace chord::c_api
