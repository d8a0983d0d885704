// Reading and checking of safetensors headers.
#include "tools/examples/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/examples/checked_json.h"

namespace chord::examples {
namespace {

using nlohmann::json;

constexpr std::int64_t kLengthBytes = 8;
constexpr std::int64_t kMaxHeaderBytes = 100'000'000;  // the bound of the format's own reader
constexpr const char* kDamaged = "the file is cut or damaged; fetch it again";

Error refused(const TensorInfo& info, std::string found) {
  return Error{ErrorCode::corrupt, info.label(), std::move(found), kDamaged};
}

Error failed(const std::string& what) {
  const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io_error;
  return Error{code, what, std::strerror(errno), ""};
}

Result<std::vector<std::int64_t>> whole_numbers(const TensorInfo& info, const json& entry,
                                                const char* field) {
  const auto found = entry.find(field);
  if (found == entry.end() || !found->is_array())
    return refused(info, fmt::format("its header has no list '{}'", field));
  std::vector<std::int64_t> numbers;
  for (const json& value : *found) {
    const std::optional<std::int64_t> number = whole_number(value);
    if (!number)
      return refused(
          info, fmt::format("{} is {}: no list of whole numbers from 0 on", field, shown(*found)));
    numbers.push_back(*number);
  }
  return numbers;
}

// Empty when the product does not fit.
std::optional<std::int64_t> byte_size(const std::vector<std::int64_t>& shape,
                                      std::int64_t element) {
  std::int64_t bytes = element;
  for (const std::int64_t size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  return bytes;
}

Status check_size(const TensorInfo& info) {
  const std::optional<std::int64_t> element = element_bytes(info.dtype);
  if (!element) return {};
  const std::optional<std::int64_t> bytes = byte_size(info.shape, *element);
  if (bytes == info.bytes()) return {};
  return refused(info,
                 fmt::format("{} has {} bytes, data_offsets give it {}", info.form(),
                             bytes ? std::to_string(*bytes) : "more than 2^63", info.bytes()));
}

Result<TensorInfo> read_entry(const std::string& path, const std::string& name, const json& entry,
                              std::int64_t data_begin, std::int64_t data_bytes) {
  TensorInfo info;
  info.name = name;
  info.file = path;
  if (!entry.is_object()) return refused(info, "its header entry is no object");
  const auto dtype = entry.find("dtype");
  if (dtype == entry.end() || !dtype->is_string())
    return refused(info, "its header has no text 'dtype'");
  info.dtype = dtype->get<std::string>();
  CHORD_TRY(info.shape, whole_numbers(info, entry, "shape"));
  CHORD_TRY(const std::vector<std::int64_t> offsets, whole_numbers(info, entry, "data_offsets"));
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    return refused(
        info, fmt::format("data_offsets are {}: no begin and end", shown(entry["data_offsets"])));
  if (offsets[1] > data_bytes)
    return refused(info, fmt::format("data_offsets [{}, {}] lie outside the {} bytes of data",
                                     offsets[0], offsets[1], data_bytes));
  info.begin = data_begin + offsets[0];
  info.end = data_begin + offsets[1];
  CHORD_TRY(check_size(info));
  return info;
}

Status check_overlaps(const std::map<std::string, TensorInfo>& tensors) {
  std::vector<const TensorInfo*> order;
  for (const auto& [name, info] : tensors)
    if (info.bytes() > 0) order.push_back(&info);
  std::sort(order.begin(), order.end(),
            [](const TensorInfo* a, const TensorInfo* b) { return a->begin < b->begin; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i]->begin < order[i - 1]->end)
      return refused(*order[i],
                     fmt::format("its bytes overlap those of '{}'", shown(order[i - 1]->name)));
  return {};
}

}  // namespace

std::string TensorInfo::label() const {
  return fmt::format("tensor '{}' of {}", shown(name), file);
}

std::string TensorInfo::form() const { return form_of(shown(dtype), shape); }

std::string form_of(std::string_view dtype, const std::vector<std::int64_t>& shape) {
  return fmt::format("{} [{}]", dtype, fmt::join(shape, ", "));
}

std::optional<std::int64_t> element_bytes(std::string_view dtype) {
  static constexpr std::pair<std::string_view, int> kKnown[] = {
      {"F64", 8}, {"I64", 8}, {"U64", 8},     {"F32", 4},     {"I32", 4},
      {"U32", 4}, {"F16", 2}, {"BF16", 2},    {"I16", 2},     {"U16", 2},
      {"I8", 1},  {"U8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}};
  for (const auto& [known, bytes] : kKnown)
    if (dtype == known) return bytes;
  return std::nullopt;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return failed("open " + path);
  SafetensorsFile file(path, descriptor);
  CHORD_TRY(file.read_header());
  return file;
}

SafetensorsFile::~SafetensorsFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status SafetensorsFile::read_at(std::int64_t at, std::int64_t bytes, void* to,
                                const std::string& what) const {
  for (std::int64_t done = 0; done < bytes;) {
    const ssize_t got = ::pread(descriptor_, static_cast<char*>(to) + done,
                                static_cast<std::size_t>(bytes - done), at + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(what);
    if (got == 0)
      return Error{ErrorCode::corrupt, what,
                   fmt::format("the file ends {} bytes early", bytes - done), kDamaged};
    done += got;
  }
  return {};
}

Status SafetensorsFile::read_header() {
  const std::string what = "header of " + path_;
  const auto refuse = [&](std::string found) {
    return Error{ErrorCode::corrupt, what, std::move(found), kDamaged};
  };
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return failed(what);
  if (!S_ISREG(status.st_mode)) return refuse("no regular file");
  const std::int64_t file_bytes = status.st_size;
  if (file_bytes < kLengthBytes)
    return refuse(fmt::format("{} bytes, too few for the header's length", file_bytes));

  unsigned char length[kLengthBytes];
  CHORD_TRY(read_at(0, kLengthBytes, length, what));
  std::uint64_t header_bytes = 0;
  for (int i = kLengthBytes - 1; i >= 0; --i) header_bytes = header_bytes << 8 | length[i];
  const std::int64_t rest = file_bytes - kLengthBytes;
  if (header_bytes > static_cast<std::uint64_t>(rest))
    return refuse(fmt::format("a header of {} bytes in a file of {}", header_bytes, file_bytes));
  if (header_bytes > kMaxHeaderBytes)
    return refuse(fmt::format("a header of {} bytes, more than {}", header_bytes, kMaxHeaderBytes));

  std::string text(header_bytes, '\0');
  CHORD_TRY(read_at(kLengthBytes, static_cast<std::int64_t>(header_bytes), text.data(), what));
  CHORD_TRY(const json header, parse_object(text, what));
  const std::int64_t data_begin = kLengthBytes + static_cast<std::int64_t>(header_bytes);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    CHORD_TRY(TensorInfo info, read_entry(path_, name, entry, data_begin, file_bytes - data_begin));
    tensors_.emplace(name, std::move(info));
  }
  return check_overlaps(tensors_);
}

const TensorInfo* SafetensorsFile::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

Status SafetensorsFile::read(const TensorInfo& info, std::int64_t offset, std::int64_t bytes,
                             void* to) const {
  if (offset < 0 || bytes < 0 || offset > info.bytes() - bytes)
    return Error{ErrorCode::internal, info.label(),
                 fmt::format("{} bytes from byte {} of its {}", bytes, offset, info.bytes()), ""};
  return read_at(info.begin + offset, bytes, to, info.label());
}

}  // namespace chord::examples
