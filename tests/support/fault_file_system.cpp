// See fault_file_system.h.
#include "tests/support/fault_file_system.h"

#include <utility>

namespace chord::testing {
namespace {

constexpr std::size_t kMostWritten = 8;

bool answers_error(Effect effect) {
  return effect == Effect::fail || effect == Effect::fail_after || effect == Effect::fail_halfway;
}

void disguise(const Fault& fault, FileStat& stat) {
  if (fault.effect == Effect::strange_owner) stat.owner += 1;
  if (fault.effect == Effect::loose_mode) stat.mode |= 022;
}

}  // namespace

void FaultFileSystem::fail(const std::string& call, int error_number, int times) {
  std::lock_guard lock(mutex_);
  failures_[call] = {error_number, times};
}

void FaultFileSystem::fail_if(Rule rule) {
  std::lock_guard lock(mutex_);
  rule_ = std::move(rule);
}

void FaultFileSystem::direct(Director director) {
  std::lock_guard lock(mutex_);
  director_ = std::move(director);
}

void FaultFileSystem::heal() {
  std::lock_guard lock(mutex_);
  failures_.clear();
  rule_ = nullptr;
  director_ = nullptr;
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

Fault FaultFileSystem::next_fault(const std::string& call, const std::string& path) {
  std::lock_guard lock(mutex_);
  ++calls_[call];
  if (director_) return director_(call, path);
  if (rule_)
    if (const int error_number = rule_(call, path)) return {Effect::fail, error_number};
  const auto failure = failures_.find(call);
  if (failure == failures_.end() || failure->second.times <= 0) return {};
  --failure->second.times;
  return {Effect::fail, failure->second.error_number};
}

FileError FaultFileSystem::fault(const std::string& call, const std::string& path) {
  return perform(call, path, [] { return FileError{}; });
}

FileError FaultFileSystem::perform(const std::string& call, const std::string& path,
                                   const Work& work) {
  const Fault fault = next_fault(call, path);
  if (fault.effect == Effect::pretend) return {};
  if (!answers_error(fault.effect)) return work();
  if (fault.effect == Effect::fail_after) (void)work();
  return {fault.error_number, call, path};
}

void FaultFileSystem::spoil(const Fault& fault, std::string& bytes) {
  if (bytes.empty()) return;
  const std::size_t at = fault.random % bytes.size();
  if (fault.effect == Effect::cut || fault.effect == Effect::fail_halfway) bytes.resize(at);
  if (fault.effect == Effect::flip)
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (fault.random % 8)));
  std::lock_guard lock(mutex_);
  if (fault.effect == Effect::swap && !written_.empty())
    bytes = written_[fault.random % written_.size()];
}

FileError FaultFileSystem::read(const std::string& path, std::string& bytes, FileStat* opened) {
  const Fault fault = next_fault("read", path);
  if (answers_error(fault.effect)) return {fault.error_number, "read", path};
  if (FileError error = real_.read(path, bytes, opened)) return error;
  spoil(fault, bytes);
  if (fault.effect == Effect::pretend) bytes.clear();
  if (opened != nullptr) disguise(fault, *opened);
  return {};
}

FileError FaultFileSystem::write(const std::string& call, const std::string& path,
                                 std::string_view bytes,
                                 const std::function<FileError(std::string_view)>& work) {
  const Fault fault = next_fault(call, path);
  if (fault.effect == Effect::pretend) return {};
  const FileError error{answers_error(fault.effect) ? fault.error_number : 0, call, path};
  if (fault.effect == Effect::fail) return error;
  std::string written(bytes);
  spoil(fault, written);
  if (FileError real_error = work(written)) return real_error;
  std::lock_guard lock(mutex_);
  if (written_.size() < kMostWritten) written_.emplace_back(bytes);
  return error;
}

FileError FaultFileSystem::write_slowly(const std::string& path, std::string_view bytes) {
  clock_->sleep_ms(pause_ms_);
  if (FileError error = real_.write_exclusive(path, bytes.substr(0, bytes.size() / 2)))
    return error;
  clock_->sleep_ms(pause_ms_);
  return real_.overwrite(path, bytes);
}

FileError FaultFileSystem::write_exclusive(const std::string& path, std::string_view bytes) {
  return write("write_exclusive", path, bytes, [&](std::string_view written) {
    return clock_ == nullptr ? real_.write_exclusive(path, written) : write_slowly(path, written);
  });
}

FileError FaultFileSystem::overwrite(const std::string& path, std::string_view bytes) {
  return write("overwrite", path, bytes,
               [&](std::string_view written) { return real_.overwrite(path, written); });
}

class FaultFileSystem::FaultReader final : public FileReader {
 public:
  FaultReader(FaultFileSystem& files, std::string path, std::unique_ptr<FileReader> real)
      : files_(files), path_(std::move(path)), real_(std::move(real)) {}

  FileError read(char* buffer, std::size_t capacity, std::size_t& filled) override {
    if (FileError error = files_.fault("stream_read", path_)) return error;
    return real_->read(buffer, capacity, filled);
  }

 private:
  FaultFileSystem& files_;
  std::string path_;
  std::unique_ptr<FileReader> real_;
};

class FaultFileSystem::FaultWriter final : public FileWriter {
 public:
  FaultWriter(FaultFileSystem& files, std::string path, std::unique_ptr<FileWriter> real)
      : files_(files), path_(std::move(path)), real_(std::move(real)) {}

  FileError write(std::string_view bytes) override {
    if (FileError error = files_.fault("stream_write", path_)) return error;
    return real_->write(bytes);
  }
  FileError finish() override {
    if (FileError error = files_.fault("stream_finish", path_)) return error;
    return real_->finish();
  }

 private:
  FaultFileSystem& files_;
  std::string path_;
  std::unique_ptr<FileWriter> real_;
};

FileError FaultFileSystem::open_reader(const std::string& path,
                                       std::unique_ptr<FileReader>& reader) {
  if (FileError error = fault("open_reader", path)) return error;
  std::unique_ptr<FileReader> real;
  if (FileError error = real_.open_reader(path, real)) return error;
  reader = std::make_unique<FaultReader>(*this, path, std::move(real));
  return {};
}

FileError FaultFileSystem::create_exclusive(const std::string& path,
                                            std::unique_ptr<FileWriter>& writer) {
  if (FileError error = fault("create_exclusive", path)) return error;
  std::unique_ptr<FileWriter> real;
  if (FileError error = real_.create_exclusive(path, real)) return error;
  writer = std::make_unique<FaultWriter>(*this, path, std::move(real));
  return {};
}

FileError FaultFileSystem::rename(const std::string& from, const std::string& to) {
  return perform("rename", to, [&] { return real_.rename(from, to); });
}

FileError FaultFileSystem::sync_directory(const std::string& path) {
  return perform("sync_directory", path, [&] { return real_.sync_directory(path); });
}

FileError FaultFileSystem::remove(const std::string& path) {
  return perform("remove", path, [&] { return real_.remove(path); });
}

FileError FaultFileSystem::make_directories(const std::string& path) {
  return perform("make_directories", path, [&] { return real_.make_directories(path); });
}

FileError FaultFileSystem::touch(const std::string& path, std::int64_t time_ns) {
  return perform("touch", path, [&] { return real_.touch(path, time_ns); });
}

FileError FaultFileSystem::list(const std::string& path, std::vector<std::string>& names) {
  names.clear();
  const Fault fault = next_fault("list", path);
  if (answers_error(fault.effect)) return {fault.error_number, "list", path};
  if (fault.effect == Effect::pretend) return {};
  if (FileError error = real_.list(path, names)) return error;
  if (fault.effect == Effect::cut) names.resize(names.size() / 2);
  return {};
}

FileError FaultFileSystem::stat(const std::string& path, FileStat& stat) {
  stat = {};
  const Fault fault = next_fault("stat", path);
  if (answers_error(fault.effect)) return {fault.error_number, "stat", path};
  if (fault.effect == Effect::pretend) return {};
  if (FileError error = real_.stat(path, stat)) return error;
  disguise(fault, stat);
  return {};
}

FileError FaultFileSystem::try_lock(const std::string& path, std::unique_ptr<FileLock>& held) {
  held.reset();
  const Fault fault = next_fault("try_lock", path);
  if (answers_error(fault.effect)) return {fault.error_number, "try_lock", path};
  if (locks_ == Locks::always_taken) return {};
  const bool is_real = locks_ == Locks::real && fault.effect != Effect::pretend;
  if (is_real) return real_.try_lock(path, held);
  held = std::make_unique<FileLock>();
  return {};
}

}  // namespace chord::testing
