// A shared library opened at run time. Must not know which one: driver, compiler and cuBLAS are
// opened through it.
#pragma once

#include <string>

#include "chord/status.h"

namespace chord::base {

// Never closed: drivers and compilers register exit handlers and keep threads, and unmapping their
// code under those is how processes crash on their way out. Copies share the mapping.
class DynamicLibrary {
 public:
  // `name` is a path, or a name for the loader's search. The error's `found` is the loader's own
  // text.
  static Result<DynamicLibrary> open(const std::string& name);

  // Null if the library has no such symbol.
  void* symbol(const char* name) const;

  // The same, into a function pointer of the caller's type.
  template <class Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }

  // The file that was loaded, as far as the loader tells.
  const std::string& path() const { return path_; }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

}  // namespace chord::base
