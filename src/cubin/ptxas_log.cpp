// Reads what ptxas and the PTX header say.
#include <charconv>
#include <string_view>

#include "src/cubin/nvrtc_compiler.h"

namespace chord::cubin {
namespace {

constexpr std::string_view kDigits = "0123456789";

// The number right before the next `words`; `text` is left behind them. Empty if there is none.
std::optional<int> number_before(std::string_view& text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at + words.size());
  const std::size_t start = before.find_last_not_of(kDigits) + 1;  // npos + 1 is 0
  int value = 0;
  const auto [end, error] =
      std::from_chars(before.data() + start, before.data() + before.size(), value);
  if (error != std::errc() || end != before.data() + before.size()) return std::nullopt;
  return value;
}

}  // namespace

// ptxas info    : Function properties for chord_kernel
// ptxas         .     256 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
// ptxas info    : Used 30 registers, used 0 barriers, 256 bytes cumulative stack size
std::optional<PtxasFacts> read_ptxas_log(const std::string& log, const std::string& entry) {
  const std::size_t start = log.find("Function properties for " + entry + "\n");
  if (start == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(log).substr(start);
  const auto stack = number_before(rest, " bytes stack frame");
  const auto stores = number_before(rest, " bytes spill stores");
  const auto loads = number_before(rest, " bytes spill loads");
  const auto registers = number_before(rest, " registers");
  if (!stack || !stores || !loads || !registers) return std::nullopt;
  return PtxasFacts{*registers, *stack, *stores + *loads};
}

std::string find_ptxas_refusal(const std::string& log) {
  // C7508: setmaxnreg ignored. C7510-C7519: wgmma serialised. Either costs half the speed or more
  // without a word at run time.
  for (const char* code : {"(C7508)", "(C751"}) {
    const std::size_t at = log.find(code);
    if (at == std::string::npos) continue;
    const std::size_t begin = log.rfind('\n', at) + 1;  // npos + 1 is 0
    return log.substr(begin, log.find('\n', at) - begin);
  }
  return {};
}

std::string read_ptx_version(const std::string& ptx) {
  constexpr std::string_view kBefore = "Cuda compilation tools, release ";
  std::size_t at = ptx.find(kBefore);
  if (at != std::string::npos) at = ptx.find(", V", at);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + 3;
  const std::size_t end = ptx.find_first_not_of("0123456789.", begin);
  return ptx.substr(begin, end - begin);
}

}  // namespace chord::cubin
