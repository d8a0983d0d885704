// Errors are values. Every error says what was asked, what was found and what helps.
//
//   Result<int> half(int x) {
//     if (x % 2 != 0)
//       return Error{ErrorCode::invalid_argument, fmt("half of {}", x), "an odd number", "pass an
//       even one"};
//     return x / 2;
//   }
//   Result<int> quarter(int x) {
//     CHORD_TRY(const int h, half(x));
//     return half(h);
//   }
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "chord/export.h"

namespace chord {

enum class ErrorCode {
  invalid_argument,  // the caller's value can not be right
  unsupported,       // legal, but this library or device does not do it
  not_found,         // a file, library, symbol or entry that was named is not there
  unavailable,       // no GPU, no driver, no compiler on this machine
  compile_failed,    // NVRTC or ptxas refused the source
  cache_miss,        // CHORD_JIT=never and no cubin in the cache
  io_error,          // the file system answered with an error
  corrupt,           // bytes that are not what they claim to be
  driver_error,      // a CUDA driver call failed
  not_prepared,      // launch of something that prepare has not seen
  internal,          // a fault of this library
};

CHORD_API const char* name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string asked;  // what the caller wanted
  std::string found;  // what stood in the way
  std::string help;   // what to do about it; may be empty

  // "asked: found (help)"
  CHORD_API std::string message() const;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return assert(ok()), std::get<0>(state_); }
  const T& value() const& { return assert(ok()), std::get<0>(state_); }
  T&& value() && { return assert(ok()), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return assert(!ok()), std::get<1>(state_); }
  const Error& error() const& { return assert(!ok()), std::get<1>(state_); }
  Error&& error() && { return assert(!ok()), std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  void value() const {}

  Error& error() & { return assert(!ok()), *error_; }
  const Error& error() const& { return assert(!ok()), *error_; }
  Error&& error() && { return assert(!ok()), std::move(*error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace chord

// CHORD_TRY(expression) returns the error of a Status; CHORD_TRY(declaration, expression) also
// binds the value. The only macro of this library that changes control flow.
#define CHORD_TRY_JOIN_(a, b) a##b
#define CHORD_TRY_NAME_(line) CHORD_TRY_JOIN_(chord_try_, line)
#define CHORD_TRY_PICK_(one, two, chosen, ...) chosen
#define CHORD_TRY_1_(expression)                                            \
  do {                                                                      \
    auto chord_try_result = (expression);                                   \
    if (!chord_try_result.ok()) return std::move(chord_try_result).error(); \
  } while (false)
#define CHORD_TRY_2_(declaration, expression)                                               \
  auto CHORD_TRY_NAME_(__LINE__) = (expression);                                            \
  if (!CHORD_TRY_NAME_(__LINE__).ok()) return std::move(CHORD_TRY_NAME_(__LINE__)).error(); \
  declaration = std::move(CHORD_TRY_NAME_(__LINE__)).value()
#define CHORD_TRY(...) CHORD_TRY_PICK_(__VA_ARGS__, CHORD_TRY_2_, CHORD_TRY_1_, )(__VA_ARGS__)
