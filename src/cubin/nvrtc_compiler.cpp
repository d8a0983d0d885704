// One NVRTC program per compile; its log, its cubin, its facts.
#include "src/cubin/nvrtc_compiler.h"

#include <fmt/format.h>

#include <chrono>

#include "src/cuda/entry.h"

namespace chord::cubin {
namespace {

using cuda::NvrtcApi;

class Program {
 public:
  explicit Program(const NvrtcApi& api) : api_(api) {}
  ~Program() {
    if (handle_ != nullptr) api_.destroy_program(&handle_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Status create(const CompileRequest& request) {
    std::vector<const char*> names, texts;
    for (const auto& [include_name, text] : request.headers) {
      names.push_back(include_name.c_str());
      texts.push_back(text.c_str());
    }
    const auto result =
        api_.create_program(&handle_, request.source.c_str(), request.name.c_str(),
                            static_cast<int>(names.size()), texts.data(), names.data());
    if (result == cuda::NVRTC_SUCCESS) return {};
    return Error{ErrorCode::compile_failed, "create the NVRTC program " + request.name,
                 api_.get_error_string(result), ""};
  }

  cuda::nvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return api_.compile_program(handle_, static_cast<int>(pointers.size()), pointers.data());
  }

  std::string log() const {
    return text(api_.get_program_log_size, api_.get_program_log, kTerminated);
  }
  std::string ptx() const { return text(api_.get_ptx_size, api_.get_ptx, kTerminated); }
  std::string cubin() const { return text(api_.get_cubin_size, api_.get_cubin, kBinary); }

 private:
  enum Ending { kTerminated, kBinary };

  // Empty if NVRTC has nothing.
  std::string text(cuda::nvrtcResult (*size)(cuda::nvrtcProgram, std::size_t*),
                   cuda::nvrtcResult (*read)(cuda::nvrtcProgram, char*), Ending ending) const {
    std::size_t bytes = 0;
    if (size(handle_, &bytes) != cuda::NVRTC_SUCCESS || bytes == 0) return {};
    std::string out(bytes, '\0');
    if (read(handle_, out.data()) != cuda::NVRTC_SUCCESS) return {};
    if (ending == kTerminated && out.back() == '\0') out.pop_back();
    return out;
  }

  const NvrtcApi& api_;
  cuda::nvrtcProgram handle_ = nullptr;
};

std::vector<std::string> all_options(const NvrtcApi& api, const CompileRequest& request) {
  std::vector<std::string> options = compile_options(request.arch);
  options.insert(options.end(), request.options.begin(), request.options.end());
  // NVRTC has a cache of its own since 12.9, and refuses the option before. It has no say in the
  // code that comes out, so it is no part of the key.
  if (api.major > 12 || (api.major == 12 && api.minor >= 9)) options.push_back("--no-cache");
  return options;
}

// nvrtcVersion has no build number, but two builds of one release may differ in the code they
// make; the PTX of any program names it.
Result<std::string> full_version(const NvrtcApi& api) {
  Program program(api);
  CHORD_TRY(program.create({.name = "version.cu"}));
  if (program.compile({}) != cuda::NVRTC_SUCCESS)
    return Error{ErrorCode::unavailable, "ask " + api.path + " for its version",
                 "it does not compile an empty program: " + program.log(),
                 "its libnvrtc-builtins of the same version must lie beside it"};
  const std::string version = read_ptx_version(program.ptx());
  if (version.empty())
    return Error{ErrorCode::unavailable, "ask " + api.path + " for its version",
                 "the PTX that it writes does not name it", "use the NVRTC of a CUDA toolkit"};
  return "NVRTC " + version;
}

Error compile_error(const CompileRequest& request, const std::string& compiler,
                    const std::string& found) {
  return Error{ErrorCode::compile_failed,
               fmt::format("compile {} for {} with {}", request.name, name(request.arch), compiler),
               found, ""};
}

}  // namespace

NvrtcCompiler::NvrtcCompiler(std::optional<std::string> library) : library_(std::move(library)) {}
NvrtcCompiler::NvrtcCompiler(NvrtcApi api) : api_(std::move(api)) {}

Result<const NvrtcApi*> NvrtcCompiler::opened() {
  std::call_once(open_once_, [this] {
    if (!api_) api_.emplace(cuda::open_nvrtc(library_));
  });
  if (!api_->ok()) return api_->error();
  return &**api_;
}

Result<std::string> NvrtcCompiler::identity() {
  CHORD_TRY(const NvrtcApi* api, opened());
  std::call_once(identity_once_, [&] { identity_.emplace(full_version(*api)); });
  return *identity_;
}

Result<CompiledCubin> NvrtcCompiler::compile(const CompileRequest& request) {
  CHORD_TRY(const NvrtcApi* api, opened());
  CHORD_TRY(cuda::check_nvrtc_version(*api, request.arch));
  CompiledCubin out;
  CHORD_TRY(out.compiler, identity());
  Program program(*api);
  CHORD_TRY(program.create(request));

  const auto start = std::chrono::steady_clock::now();
  const auto result = program.compile(all_options(*api, request));
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;

  out.compile_ms = elapsed.count();
  out.log = program.log();
  if (result != cuda::NVRTC_SUCCESS)
    return compile_error(request, out.compiler,
                         fmt::format("{}\n{}", api->get_error_string(result), out.log));
  if (const std::string refusal = find_ptxas_refusal(out.log); !refusal.empty())
    return compile_error(request, out.compiler, "ptxas gave up speed silently: " + refusal);
  out.cubin = program.cubin();
  const auto facts = read_ptxas_log(out.log, cuda::kEntryName);
  if (out.cubin.empty() || !facts)
    return compile_error(request, out.compiler,
                         fmt::format("no code for {} came out\n{}", cuda::kEntryName, out.log));
  out.registers = facts->registers;
  out.local_bytes = facts->local_bytes;
  out.spill_bytes = facts->spill_bytes;
  return out;
}

}  // namespace chord::cubin
