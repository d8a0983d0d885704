// See compilers.h.
#include "cache/compilers.h"

#include <algorithm>
#include <utility>

#include "cache/key.h"
#include "cache/publish.h"

namespace chord::cache {
namespace {

constexpr std::size_t kMaxIdentityBytes = 4096;

bool is_trusted_folder(const std::string& path, Trust trust, FileSystem& files) {
  FileStat stat;
  return !files.stat(path, stat) && stat.is_directory &&
         why_not_trusted(stat, trust, files.user()).empty();
}

}  // namespace

FileError record_compiler(const Layout& layout, const std::string& identity, FileSystem& files,
                          const Clock& clock) {
  const std::string name = content_name(identity);
  std::string known;
  const std::string path = layout.compilers() + "/" + name;
  if (!files.read(path, known) && known == identity) return files.touch(path, clock.now_ns());
  if (FileError error = publish_file(files, clock, layout.compilers(), name, identity))
    return error;
  return files.touch(path, clock.now_ns());
}

std::vector<RecordedCompiler> recorded_compilers(const Layout& layout, Trust trust,
                                                 FileSystem& files) {
  std::vector<RecordedCompiler> compilers;
  std::vector<std::string> names;
  if (!is_trusted_folder(layout.root, trust, files)) return compilers;
  if (!is_trusted_folder(layout.compilers(), trust, files)) return compilers;
  if (files.list(layout.compilers(), names)) return compilers;
  for (const std::string& name : names) {
    RecordedCompiler compiler;
    FileStat opened;
    if (!is_content_name(name)) continue;
    if (files.read(layout.compilers() + "/" + name, compiler.identity, &opened)) continue;
    if (!why_not_trusted(opened, trust, files.user()).empty()) continue;
    if (compiler.identity.size() > kMaxIdentityBytes) continue;
    if (content_name(compiler.identity) != name) continue;  // cut or damaged
    compiler.last_use_ns = opened.modified_ns;
    compilers.push_back(std::move(compiler));
  }
  std::stable_sort(compilers.begin(), compilers.end(),
                   [](const RecordedCompiler& a, const RecordedCompiler& b) {
                     return a.last_use_ns > b.last_use_ns;
                   });
  return compilers;
}

}  // namespace chord::cache
