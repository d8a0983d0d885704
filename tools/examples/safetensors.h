// One safetensors file: 8 bytes of header length (little endian), a JSON header that says dtype,
// shape and place of every tensor, then the bytes of the tensors. Opening reads the header only;
// tensors are read piece by piece with pread, so that a file that shrinks later is an error and
// not a signal.
//
//   CHORD_TRY(const auto file, SafetensorsFile::open("/models/a.safetensors"));
//   const TensorInfo* info = file.find("model.layers.1.mlp.gate.weight");
//   CHORD_TRY(file.read(*info, 0, info->bytes(), buffer));
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chord/status.h"

namespace chord::examples {

struct TensorInfo {
  std::string name;
  std::string file;   // its path
  std::string dtype;  // as spelled: "BF16", "I32"
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // in bytes of the file
  std::int64_t end = 0;

  std::int64_t bytes() const { return end - begin; }
  std::string label() const;  // "tensor 'a.b' of /models/a.safetensors"
  std::string form() const;   // "BF16 [4, 8]"
};

std::string form_of(std::string_view dtype, const std::vector<std::int64_t>& shape);

// Bytes of one element; empty for a dtype that this reader does not know. Such a tensor may lie in
// a file: only the one who asks for its elements is refused.
std::optional<std::int64_t> element_bytes(std::string_view dtype);

class SafetensorsFile {
 public:
  // Refuses a file that is cut, a header that is no JSON or longer than the file, and tensors that
  // lie outside the file, over each other, or have another size than dtype and shape say.
  static Result<SafetensorsFile> open(const std::string& path);

  SafetensorsFile(SafetensorsFile&& other) noexcept { swap(other); }
  SafetensorsFile& operator=(SafetensorsFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~SafetensorsFile();

  const std::map<std::string, TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(const std::string& name) const;

  // `bytes` from `offset` inside the tensor. Safe from several threads.
  Status read(const TensorInfo& info, std::int64_t offset, std::int64_t bytes, void* to) const;

 private:
  SafetensorsFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}
  void swap(SafetensorsFile& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(tensors_, other.tensors_);
  }
  Status read_header();
  Status read_at(std::int64_t at, std::int64_t bytes, void* to, const std::string& what) const;

  std::string path_;
  int descriptor_ = -1;
  std::map<std::string, TensorInfo> tensors_;
};

}  // namespace chord::examples
