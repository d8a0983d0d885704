// See fault_file_system.h.
#include "tests/support/fault_file_system.h"

#include <utility>

namespace chord::testing {

void FaultFileSystem::fail(const std::string& call, int error_number, int times) {
  std::lock_guard lock(mutex_);
  failures_[call] = {error_number, times};
}

void FaultFileSystem::fail_if(Rule rule) {
  std::lock_guard lock(mutex_);
  rule_ = std::move(rule);
}

void FaultFileSystem::heal() {
  std::lock_guard lock(mutex_);
  failures_.clear();
  rule_ = nullptr;
}

void FaultFileSystem::slow_writes(std::int64_t pause_ms, const Clock& clock) {
  pause_ms_ = pause_ms;
  clock_ = &clock;
}

int FaultFileSystem::calls(const std::string& call) const {
  std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  return found == calls_.end() ? 0 : found->second;
}

FileError FaultFileSystem::fault(const std::string& call, const std::string& path) {
  std::lock_guard lock(mutex_);
  ++calls_[call];
  if (rule_)
    if (const int error_number = rule_(call, path)) return {error_number, call, path};
  const auto failure = failures_.find(call);
  if (failure == failures_.end() || failure->second.times <= 0) return {};
  --failure->second.times;
  return {failure->second.error_number, call, path};
}

FileError FaultFileSystem::read(const std::string& path, std::string& bytes, FileStat* opened) {
  if (FileError error = fault("read", path)) return error;
  return real_.read(path, bytes, opened);
}

FileError FaultFileSystem::write_exclusive(const std::string& path, std::string_view bytes) {
  if (FileError error = fault("write_exclusive", path)) return error;
  if (clock_ == nullptr) return real_.write_exclusive(path, bytes);
  clock_->sleep_ms(pause_ms_);
  if (FileError error = real_.write_exclusive(path, bytes.substr(0, bytes.size() / 2)))
    return error;
  clock_->sleep_ms(pause_ms_);
  return real_.overwrite(path, bytes);
}

FileError FaultFileSystem::rename(const std::string& from, const std::string& to) {
  if (FileError error = fault("rename", to)) return error;
  return real_.rename(from, to);
}

FileError FaultFileSystem::sync_directory(const std::string& path) {
  if (FileError error = fault("sync_directory", path)) return error;
  return real_.sync_directory(path);
}

FileError FaultFileSystem::remove(const std::string& path) {
  if (FileError error = fault("remove", path)) return error;
  return real_.remove(path);
}

FileError FaultFileSystem::make_directories(const std::string& path) {
  if (FileError error = fault("make_directories", path)) return error;
  return real_.make_directories(path);
}

FileError FaultFileSystem::list(const std::string& path, std::vector<std::string>& names) {
  if (FileError error = fault("list", path)) return error;
  return real_.list(path, names);
}

FileError FaultFileSystem::stat(const std::string& path, FileStat& stat) {
  if (FileError error = fault("stat", path)) return error;
  return real_.stat(path, stat);
}

FileError FaultFileSystem::touch(const std::string& path, std::int64_t time_ns) {
  if (FileError error = fault("touch", path)) return error;
  return real_.touch(path, time_ns);
}

FileError FaultFileSystem::try_lock(const std::string& path, std::unique_ptr<FileLock>& held) {
  held.reset();
  if (FileError error = fault("try_lock", path)) return error;
  if (locks_ == Locks::always_taken) return {};
  if (locks_ == Locks::real) return real_.try_lock(path, held);
  held = std::make_unique<FileLock>();
  return {};
}

FileError FaultFileSystem::overwrite(const std::string& path, std::string_view bytes) {
  if (FileError error = fault("overwrite", path)) return error;
  return real_.overwrite(path, bytes);
}

}  // namespace chord::testing
