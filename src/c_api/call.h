// Where every call of the C face begins and ends: one guard, and the errors that name an argument.
// Must not know what any of the calls does.
//
//   return guarded("chord_plan_gemm", [&](const Call& call) -> Status {
//     CHORD_TRY(call.need(plan, "plan"));
//     ...
//   });
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "chord/chord.h"
#include "chord/status.h"
#include "src/c_api/spelling.h"

namespace chord::c_api {

// The bits of an enum that a caller may have filled with anything: such a value is never loaded as
// the enum it is not.
template <class Enum>
std::int32_t raw(const Enum& value) {
  static_assert(sizeof value == sizeof(std::int32_t));
  std::int32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

class Call {
 public:
  explicit constexpr Call(const char* function) : function_(function) {}

  // "chord_plan_gemm: argument `descriptor.n` <found> (<help>)"
  Error wrong(std::string_view argument, std::string_view found, std::string help) const;

  Status need(const void* pointer, std::string_view argument) const {
    if (pointer != nullptr) [[likely]]
      return {};
    return wrong(argument, "is NULL", "pass a pointer");
  }

  // `first` is the C value of the first of `count` enumerators of ours.
  template <class Ours, class Theirs>
  Result<Ours> choose(const Theirs& value, std::string_view argument, int count,
                      int first = 0) const {
    const std::int32_t bits = raw(value);
    if (bits < first || bits >= first + count) return not_among(argument, bits, first, count);
    return static_cast<Ours>(bits - first);
  }

  // Switches: 0 or 1.
  Result<bool> flag(std::int32_t value, std::string_view argument) const {
    if (value != 0 && value != 1) return not_among(argument, value, 0, 2);
    return value == 1;
  }

  // Copies `text` and a final zero; `needed` is written also when it does not fit.
  Status copy_text(std::string_view text, char* to, std::size_t capacity,
                   std::size_t* needed) const;

 private:
  Error not_among(std::string_view argument, std::int32_t value, int first, int count) const;

  const char* function_;
};

// These fill the thread's last error and return its status.
chord_status_t record(const Error& error) noexcept;
chord_status_t record_exception(const char* function, const char* what) noexcept;
chord_status_t record_out_of_memory(const char* function) noexcept;

const chord_error_t* last_error() noexcept;

// Nothing but a status leaves. On success neither the guard nor Call allocates.
template <class Body>
chord_status_t guarded(const char* function, Body&& body) noexcept {
  try {
    const Status status = body(Call(function));
    if (status.ok()) [[likely]]
      return CHORD_SUCCESS;
    return record(spelled_for_c(function, status.error()));
  } catch (const std::bad_alloc&) {
    return record_out_of_memory(function);
  } catch (const std::exception& exception) {
    return record_exception(function, exception.what());
  } catch (...) {
    return record_exception(function, "something that is no std::exception");
  }
}

}  // namespace chord::c_api
