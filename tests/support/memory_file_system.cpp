// See memory_file_system.h.
#include "tests/support/memory_file_system.h"

#include <cerrno>
#include <utility>

namespace chord::testing {
namespace {

class MemoryLock final : public FileLock {
 public:
  MemoryLock(std::shared_ptr<std::set<std::uint64_t>> locked, std::uint64_t number)
      : locked_(std::move(locked)), number_(number) {}
  ~MemoryLock() override { locked_->erase(number_); }

 private:
  std::shared_ptr<std::set<std::uint64_t>> locked_;
  std::uint64_t number_;
};

}  // namespace

MemoryFileSystem::Node* MemoryFileSystem::find(const std::string& path) {
  const auto found = nodes_.find(path);
  return found == nodes_.end() ? nullptr : &found->second;
}

int MemoryFileSystem::refusal(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == 0) return 0;
  const Node* parent = find(path.substr(0, slash));
  if (parent == nullptr) {
    const int above = refusal(path.substr(0, slash));
    return above == 0 ? ENOENT : above;
  }
  return parent->is_directory ? 0 : ENOTDIR;
}

MemoryFileSystem::Node& MemoryFileSystem::add(const std::string& path, bool is_directory) {
  Node& node = nodes_[path];
  node = {.is_directory = is_directory,
          .mode = is_directory ? 0700u : 0600u,
          .modified_ns = clock_.now_ns(),
          .changed_ns = clock_.now_ns(),
          .number = ++made_,
          .bytes = {}};
  return node;
}

FileStat MemoryFileSystem::to_stat(const Node& node) const {
  return {.exists = true,
          .is_regular = !node.is_directory,
          .is_directory = node.is_directory,
          .is_symlink = false,
          .mode = node.mode,
          .owner = user(),
          .size = node.bytes.size(),
          .modified_ns = node.modified_ns,
          .changed_ns = node.changed_ns};
}

void MemoryFileSystem::change_mode(const std::string& path, std::uint32_t mode) {
  if (Node* node = find(path)) node->mode = mode;
}

FileError MemoryFileSystem::read(const std::string& path, std::string& bytes, FileStat* opened) {
  bytes.clear();
  const Node* node = find(path);
  if (node == nullptr) return {refusal(path) == ENOTDIR ? ENOTDIR : ENOENT, "open", path};
  if (node->is_directory) return {EINVAL, "read (not a regular file)", path};
  if (opened != nullptr) *opened = to_stat(*node);
  bytes = node->bytes;
  return {};
}

FileError MemoryFileSystem::write_exclusive(const std::string& path, std::string_view bytes) {
  if (const int refused = refusal(path)) return {refused, "open", path};
  if (find(path) != nullptr) return {EEXIST, "open", path};
  add(path, false).bytes = bytes;
  return {};
}

FileError MemoryFileSystem::overwrite(const std::string& path, std::string_view bytes) {
  if (const int refused = refusal(path)) return {refused, "open", path};
  Node* node = find(path);
  if (node == nullptr) node = &add(path, false);
  if (node->is_directory) return {EISDIR, "open", path};
  node->bytes = bytes;
  node->modified_ns = node->changed_ns = clock_.now_ns();
  return {};
}

// Of files; no test moves a folder.
FileError MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  if (find(from) == nullptr) return {ENOENT, "rename", to};
  if (const int refused = refusal(to)) return {refused, "rename", to};
  const Node* target = find(to);
  if (target != nullptr && target->is_directory) return {EISDIR, "rename", to};
  if (from == to) return {};
  Node moved = std::move(nodes_[from]);
  nodes_.erase(from);
  nodes_[to] = std::move(moved);
  return {};
}

FileError MemoryFileSystem::sync_directory(const std::string& path) {
  return find(path) == nullptr ? FileError{ENOENT, "open", path} : FileError{};
}

FileError MemoryFileSystem::remove(const std::string& path) {
  const auto found = nodes_.find(path);
  if (found == nodes_.end()) return {ENOENT, "remove", path};
  const auto below = nodes_.lower_bound(path + "/");
  if (below != nodes_.end() && below->first.starts_with(path + "/"))
    return {ENOTEMPTY, "remove", path};
  nodes_.erase(found);
  return {};
}

FileError MemoryFileSystem::make_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    const Node* node = find(part);
    if (node != nullptr && !node->is_directory) return {ENOTDIR, "mkdir", part};
    if (node == nullptr) add(part, true);
    if (end == std::string::npos) return {};
  }
}

FileError MemoryFileSystem::list(const std::string& path, std::vector<std::string>& names) {
  names.clear();
  const Node* folder = find(path);
  if (folder == nullptr) return {ENOENT, "open", path};
  if (!folder->is_directory) return {ENOTDIR, "open", path};
  const std::string prefix = path + "/";
  for (auto at = nodes_.lower_bound(prefix); at != nodes_.end() && at->first.starts_with(prefix);
       ++at)
    if (at->first.find('/', prefix.size()) == std::string::npos)
      names.push_back(at->first.substr(prefix.size()));
  return {};
}

FileError MemoryFileSystem::stat(const std::string& path, FileStat& stat) {
  stat = {};
  if (const Node* node = find(path)) stat = to_stat(*node);
  return {};
}

FileError MemoryFileSystem::touch(const std::string& path, std::int64_t time_ns) {
  Node* node = find(path);
  if (node == nullptr) return {ENOENT, "utimensat", path};
  node->modified_ns = time_ns;
  node->changed_ns = clock_.now_ns();
  return {};
}

FileError MemoryFileSystem::try_lock(const std::string& path, std::unique_ptr<FileLock>& held) {
  held.reset();
  if (const int refused = refusal(path)) return {refused, "open", path};
  Node* node = find(path);
  if (node == nullptr) node = &add(path, false);
  if (node->is_directory) return {EISDIR, "open", path};
  if (locked_->insert(node->number).second)
    held = std::make_unique<MemoryLock>(locked_, node->number);
  return {};
}

}  // namespace chord::testing
