// Files of checkpoints as tests break them.
#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "chord/status.h"

namespace chord::examples {

using Json = nlohmann::ordered_json;

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string length_of(std::uint64_t header_bytes) {
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(header_bytes >> (8 * i));
  return length;
}

inline void write_tensors(const std::string& path, const std::string& header,
                          const std::string& data) {
  write_bytes(path, length_of(header.size()) + header + data);
}

// Rewrites the header of a file and leaves its data.
inline void edit_header(const std::string& path, const std::function<void(Json&)>& edit) {
  const std::string bytes = read_bytes(path);
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  Json header = Json::parse(bytes.substr(8, length));
  edit(header);
  write_tensors(path, header.dump(), bytes.substr(8 + length));
}

inline void edit_json(const std::string& path, const std::function<void(Json&)>& edit) {
  Json json = Json::parse(read_bytes(path));
  edit(json);
  write_bytes(path, json.dump());
}

// The message of what has to be an error; empty when it is none.
template <class T>
std::string message_of(const Result<T>& result) {
  return result.ok() ? std::string() : result.error().message();
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace chord::examples
