// Model and shard flags, and reading a config.json with every failure named.
#include "tools/cli_model.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "chord/model.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

constexpr std::size_t kMaxConfigBytes = 16u << 20;  // real ones have a few kilobytes

Error config_error(const std::string& path, std::string found) {
  return Error{ErrorCode::invalid_argument, fmt::format("--config {}", path), std::move(found),
               "pass the config.json of a Hugging Face model folder"};
}

Result<std::string> read_config(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return config_error(path, "a folder, not a file");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) return config_error(path, std::strerror(errno));
  std::string bytes(kMaxConfigBytes + 1, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
  if (std::ferror(file.get()) != 0) return config_error(path, std::strerror(errno));
  if (bytes.size() > kMaxConfigBytes)
    return config_error(path, fmt::format("more than {} bytes", kMaxConfigBytes));
  return bytes;
}

std::string known_models() { return fmt::format("{}", fmt::join(builtin_model_names(), ", ")); }

}  // namespace

void add_model_flags(CLI::App& app, ModelFlags& flags) {
  const std::string group = "Model";
  app.add_option("--model", flags.model, "built-in model: " + known_models())
      ->type_name("NAME")
      ->check(flag_text())
      ->group(group);
  app.add_option("--config", flags.config, "config.json of a Hugging Face model instead")
      ->type_name("FILE")
      ->check(flag_text())
      ->group(group);
  app.add_option("--ep", flags.ep, "experts are shared by this many GPUs")
      ->type_name("WAYS")
      ->transform(whole_number(1, 1 << 20))
      ->group(group);
  app.add_option("--tp", flags.tp, "every expert is cut into this many parts")
      ->type_name("WAYS")
      ->transform(whole_number(1, 1 << 20))
      ->group(group);
  app.add_flag("--fuse-swiglu", flags.fuse_swiglu,
               "gate/up ends in SwiGLU (weights packed in RowOrder::gate_up)")
      ->group(group);
  app.add_flag("--fuse-weights", flags.fuse_weights,
               "down multiplies every row by its top-k weight")
      ->group(group);
}

Result<ModelConfig> load_model(const ModelFlags& flags) {
  if (!flags.model.empty() && !flags.config.empty())
    return Error{ErrorCode::invalid_argument, "a model", "both --model and --config",
                 "give one of them"};
  if (!flags.model.empty()) return builtin_model(flags.model);
  if (flags.config.empty())
    return Error{ErrorCode::invalid_argument, "a model", "neither --model nor --config",
                 fmt::format("--model {} or --config FILE", builtin_model_names().front())};
  CHORD_TRY(const std::string json, read_config(flags.config));
  return read_model_config(json, flags.config);
}

Result<Shard> shard_of(const ModelFlags& flags) {
  if (flags.ep != 0 && flags.tp != 0)
    return Error{ErrorCode::invalid_argument, "a shard of the model",
                 fmt::format("both --ep {} and --tp {}", flags.ep, flags.tp), "give one of them"};
  if (flags.ep == 0 && flags.tp == 0)
    return Error{ErrorCode::invalid_argument, "a shard of the model", "neither --ep nor --tp",
                 "say how the model is cut: --ep 8 or --tp 8"};
  if (flags.ep != 0) return Shard{ShardAxis::expert, flags.ep};
  return Shard{ShardAxis::tensor, flags.tp};
}

}  // namespace chord::tools
