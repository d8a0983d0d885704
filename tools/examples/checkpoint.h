// Tensors by name, wherever they lie: a folder whose model.safetensors.index.json says which shard
// holds which tensor, a folder with one safetensors file, or one such file.
//
//   CHORD_TRY(const Checkpoint checkpoint, Checkpoint::open("/models/kimi"));
//   CHORD_TRY(const auto found, checkpoint.locate({"model.layers.1.mlp.gate.weight"}));
//   CHORD_TRY(check_form(found[0], "BF16", {384, 7168}));
//   CHORD_TRY(checkpoint.read(found[0], 0, found[0].bytes(), buffer));
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/examples/safetensors.h"

namespace chord::examples {

inline constexpr const char* kIndexName = "model.safetensors.index.json";

// Refuses a tensor of another dtype or shape, naming both.
Status check_form(const TensorInfo& info, const std::string& dtype,
                  const std::vector<std::int64_t>& shape);

class Checkpoint {
 public:
  // With an index, every shard that it names has to be there; headers are read when needed.
  static Result<Checkpoint> open(const std::string& path);

  bool has(const std::string& name) const { return shard_of_.count(name) == 1; }
  // Every tensor's name and the path of its file.
  const std::map<std::string, std::string>& names() const { return shard_of_; }
  const std::string& path() const { return path_; }
  const std::string& folder() const { return folder_; }

  // All of them, or one error that names the first that are missing and counts them: neither in
  // the index, or in the index and not in the shard that it names.
  Result<std::vector<TensorInfo>> locate(const std::vector<std::string>& names) const;

  // Safe from several threads.
  Status read(const TensorInfo& info, std::int64_t offset, std::int64_t bytes, void* to) const;

 private:
  struct Shards {
    std::mutex mutex;
    std::map<std::string, SafetensorsFile> opened;  // by path
  };
  Checkpoint() : shards_(std::make_unique<Shards>()) {}
  Status read_index(const std::string& index);
  Status take_single_file(const std::string& file);
  Result<const SafetensorsFile*> shard(const std::string& path) const;

  std::string path_, folder_;
  std::map<std::string, std::string> shard_of_;
  std::unique_ptr<Shards> shards_;
};

// A text file of at most `most` bytes.
Result<std::string> read_text(const std::string& path, std::int64_t most);

// "a, b, c and 7 more"
std::string first_few(const std::vector<std::string>& names);

}  // namespace chord::examples
