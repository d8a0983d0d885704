// dlopen, dlsym and the path behind them.
#include "src/base/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

namespace chord::base {
namespace {

std::string loaded_path(void* handle, const std::string& name) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return name;
  return map->l_name != nullptr && map->l_name[0] != '\0' ? map->l_name : name;
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::open(const std::string& name) {
  // An empty name would answer the program itself.
  if (name.empty())
    return Error{ErrorCode::invalid_argument, "open a shared library", "an empty name", ""};
  // RTLD_LOCAL: two versions of one library in a process must not see each other's symbols.
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return Error{ErrorCode::unavailable, "open " + name, why != nullptr ? why : "dlopen failed",
                 ""};
  }
  return DynamicLibrary(handle, loaded_path(handle, name));
}

void* DynamicLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace chord::base
