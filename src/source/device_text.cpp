// Follows the includes of an entry through the embedded files.
#include "src/source/device_text.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "kernels/embedded.h"

namespace chord::source {
namespace {

// The names between quotes of the #include lines of a text.
std::vector<std::string_view> quoted_includes(std::string_view text) {
  constexpr std::string_view kDirective = "#include \"";
  std::vector<std::string_view> names;
  for (std::size_t at = text.find(kDirective); at != std::string_view::npos;
       at = text.find(kDirective, at)) {
    const bool starts_line = at == 0 || text[at - 1] == '\n';
    at += kDirective.size();
    const std::size_t end = text.find('"', at);
    if (end == std::string_view::npos) break;
    if (starts_line) names.push_back(text.substr(at, end - at));
  }
  return names;
}

void update(XXH3_state_t* state, std::string_view bytes) {
  const std::uint64_t size = bytes.size();
  XXH3_128bits_update(state, &size, sizeof size);
  XXH3_128bits_update(state, bytes.data(), bytes.size());
}

}  // namespace

const std::vector<DeviceFile>& embedded_device_files() {
  static const std::vector<DeviceFile> files = [] {
    std::vector<DeviceFile> all;
    for (std::size_t i = 0; i < kernels::embedded_file_count; ++i) {
      const kernels::EmbeddedFile& file = kernels::embedded_files[i];
      all.push_back({file.name, std::string_view(file.text, file.size)});
    }
    return all;
  }();
  return files;
}

Result<std::vector<DeviceFile>> included_files(std::string_view source,
                                               const std::vector<DeviceFile>& files) {
  std::map<std::string_view, std::string_view> text_of;
  for (const DeviceFile& file : files) text_of[file.name] = file.text;
  std::map<std::string_view, std::string_view> found;
  std::vector<std::string_view> open = quoted_includes(source);
  while (!open.empty()) {
    const std::string_view name = open.back();
    open.pop_back();
    if (found.contains(name)) continue;
    const auto at = text_of.find(name);
    if (at == text_of.end())
      return Error{ErrorCode::internal, fmt::format("device file {}", name),
                   "it is included but not embedded", "embed it or remove the include"};
    found[at->first] = at->second;  // the name of the file, which outlives the source
    for (const std::string_view next : quoted_includes(at->second)) open.push_back(next);
  }
  std::vector<DeviceFile> sorted;
  for (const auto& [name, text] : found) sorted.push_back({name, text});
  return sorted;
}

std::string digest(const std::vector<DeviceFile>& files) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  for (const DeviceFile& file : files) {
    update(state, file.name);
    update(state, file.text);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace chord::source
