// See compilers.h.
#include "cache/compilers.h"

#include <algorithm>
#include <utility>

#include "cache/key.h"
#include "cache/publish.h"

namespace chord::cache {
namespace {

constexpr std::size_t kMaxIdentityBytes = 4096;
constexpr std::size_t kMostRemoteIdentities = 32;

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

CacheKey compilers_key(const std::string& signer) {
  return KeyBuilder().field("record", "compilers").field("signer", signer).finish();
}

Entry compilers_record(const std::string& signer, const std::vector<std::string>& identities) {
  Entry record;
  record.key = compilers_key(signer);
  record.kernel_name = "compilers";
  for (std::size_t i = 0; i < std::min(identities.size(), kMostRemoteIdentities); ++i)
    record.cubin += identities[i] + "\n";
  return record;
}

std::vector<std::string> compilers_of(const Entry& record) {
  std::vector<std::string> identities;
  std::string_view text = record.cubin;
  while (!text.empty() && identities.size() < kMostRemoteIdentities) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0 && end <= kMaxIdentityBytes) identities.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return identities;
}

}  // namespace chord::cache
