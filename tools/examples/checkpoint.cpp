// Folders of shards.
#include "tools/examples/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "tools/examples/checked_json.h"

namespace chord::examples {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kMaxIndexBytes = std::int64_t{256} << 20;  // Kimi K2's has about 25 MB

// A shard lies beside its index: a name that leads elsewhere is not followed.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == name.npos && name.find('\0') == name.npos &&
         name != "." && name != "..";
}

Result<std::string> single_file_in(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".safetensors") found.push_back(at->path().string());
  if (error) return Error{ErrorCode::io_error, "checkpoint " + folder, error.message(), ""};
  if (found.size() == 1) return found.front();
  return Error{ErrorCode::not_found, "checkpoint " + folder,
               fmt::format("no {}, and {} safetensors files", kIndexName, found.size()),
               "pass a folder that has the index of its shards, or one safetensors file"};
}

}  // namespace

Result<std::string> read_text(const std::string& path, std::int64_t most) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  const auto failed = [&] {
    const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io_error;
    return Error{code, "read " + path, std::strerror(errno), ""};
  };
  if (!file) return failed();
  std::string text;
  char piece[1 << 16];
  while (const std::size_t got = std::fread(piece, 1, sizeof piece, file.get())) {
    text.append(piece, got);
    if (static_cast<std::int64_t>(text.size()) > most)
      return Error{ErrorCode::corrupt, "read " + path, fmt::format("more than {} bytes", most), ""};
  }
  if (std::ferror(file.get()) != 0) return failed();
  return text;
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostNamed) text += fmt::format(" and {} more", names.size() - kMostNamed);
  return text;
}

Status check_form(const TensorInfo& info, const std::string& dtype,
                  const std::vector<std::int64_t>& shape) {
  if (!element_bytes(info.dtype))
    return Error{ErrorCode::unsupported, info.label(),
                 fmt::format("its dtype {} is not one that is known", shown(info.dtype)),
                 fmt::format("it has to be {}", form_of(dtype, shape))};
  if (info.dtype == dtype && info.shape == shape) return {};
  return Error{ErrorCode::invalid_argument, info.label(), info.form(),
               fmt::format("it has to be {}", form_of(dtype, shape))};
}

Result<Checkpoint> Checkpoint::open(const std::string& path) {
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    return Error{ErrorCode::not_found, "checkpoint " + path, "no such file or folder", ""};
  if (!fs::is_directory(status)) {
    checkpoint.folder_ = fs::path(path).parent_path().string();
    CHORD_TRY(checkpoint.take_single_file(path));
    return checkpoint;
  }
  checkpoint.folder_ = path;
  const std::string index = (fs::path(path) / kIndexName).string();
  if (fs::exists(index, error)) {
    CHORD_TRY(checkpoint.read_index(index));
  } else {
    CHORD_TRY(const std::string file, single_file_in(path));
    CHORD_TRY(checkpoint.take_single_file(file));
  }
  return checkpoint;
}

Status Checkpoint::take_single_file(const std::string& file) {
  CHORD_TRY(const SafetensorsFile* opened, shard(file));
  for (const auto& [name, info] : opened->tensors()) shard_of_.emplace(name, file);
  return {};
}

Status Checkpoint::read_index(const std::string& index) {
  CHORD_TRY(const std::string text, read_text(index, kMaxIndexBytes));
  CHORD_TRY(const json parsed, parse_object(text, index));
  const auto refuse = [&](std::string found) {
    return Error{ErrorCode::corrupt, index, std::move(found), "fetch the index again"};
  };
  const auto weight_map = parsed.find("weight_map");
  if (weight_map == parsed.end() || !weight_map->is_object())
    return refuse("it has no object 'weight_map'");
  std::set<std::string> shards;
  for (const auto& [name, shard] : weight_map->items()) {
    if (!shard.is_string() || !is_plain_name(shard.get_ref<const std::string&>()))
      return refuse(fmt::format("'{}' lies in {}: no name of a file in this folder", shown(name),
                                shown(shard)));
    const auto& file = shard.get_ref<const std::string&>();
    shards.insert(file);
    shard_of_.emplace(name, (fs::path(folder_) / file).string());
  }
  std::vector<std::string> missing;
  std::error_code error;
  for (const std::string& file : shards)
    if (!fs::exists(fs::path(folder_) / file, error)) missing.push_back(shown(file));
  if (missing.empty()) return {};
  return Error{ErrorCode::not_found, index,
               fmt::format("{} of the {} shards that it names are not there: {}", missing.size(),
                           shards.size(), first_few(missing)),
               "fetch them, or take an index that names only what is there"};
}

Result<const SafetensorsFile*> Checkpoint::shard(const std::string& path) const {
  const std::lock_guard lock(shards_->mutex);
  const auto known = shards_->opened.find(path);
  if (known != shards_->opened.end()) return &known->second;
  CHORD_TRY(SafetensorsFile file, SafetensorsFile::open(path));
  return &shards_->opened.emplace(path, std::move(file)).first->second;
}

Result<std::vector<TensorInfo>> Checkpoint::locate(const std::vector<std::string>& names) const {
  std::vector<TensorInfo> found;
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    const auto at = shard_of_.find(name);
    if (at == shard_of_.end()) {
      missing.push_back(name);
      continue;
    }
    CHORD_TRY(const SafetensorsFile* file, shard(at->second));
    const TensorInfo* info = file->find(name);
    if (info == nullptr) {
      missing.push_back(fmt::format("{} (the index says {}, which lacks it)", name, at->second));
    } else {
      found.push_back(*info);
    }
  }
  if (missing.empty()) return found;
  return Error{ErrorCode::not_found, fmt::format("{} tensors of {}", names.size(), path_),
               fmt::format("{} are missing: {}", missing.size(), first_few(missing)),
               "the checkpoint is of another model or not complete"};
}

Status Checkpoint::read(const TensorInfo& info, std::int64_t offset, std::int64_t bytes,
                        void* to) const {
  CHORD_TRY(const SafetensorsFile* file, shard(info.file));
  return file->read(info, offset, bytes, to);
}

}  // namespace chord::examples
