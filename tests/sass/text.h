// Listings written by hand: addresses and the frame around a function are filled in.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace chord::sass_test {

// Lines that end in ':' are labels, the others instructions: {".L_x_0:", "HMMA R0, R4",
// "@P0 BRA `(.L_x_0)"}. The label .L_end closes the function.
inline std::string text_of(const std::vector<std::string>& lines,
                           const std::string& function = "chord_kernel") {
  std::string text = fmt::format(
      "\t.target\tsm_90a\n\n//---- .text.{0} ----\n\t.section\t.text.{0},\"ax\",@progbits\n"
      "        .size           {0},(.L_end - {0})\n{0}:\n.text.{0}:\n",
      function);
  int address = 0;
  for (const std::string& line : lines) {
    if (line.ends_with(':')) {
      text += line + "\n";
      continue;
    }
    const bool predicated = line.starts_with('@');
    text += fmt::format("        /*{:04x}*/ {:>18}{} ;\n", address, predicated ? "" : " ", line);
    address += 16;
  }
  return text + ".L_end:\n\n\n//---- SYMBOLS ----\n";
}

// A turn of a loop over K: a wait that is retried in place, `mma` tensor instructions, the rest.
inline void add_loop(std::vector<std::string>& lines, int number, int mma, int rest) {
  lines.push_back(fmt::format(".L_loop_{}:", number));
  lines.push_back(fmt::format(".L_wait_{}:", number));
  lines.push_back("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2+URZ], R3");
  lines.push_back(fmt::format("@!P0 BRA `(.L_wait_{})", number));
  for (int i = 0; i < mma; ++i) lines.push_back("HMMA.16816.F32.BF16 R4, R8, R12, R4");
  for (int i = 0; i < rest; ++i) lines.push_back("LOP3.LUT R0, R0, 0xf000f, RZ, 0xc0, !PT");
  lines.push_back(fmt::format("@P1 BRA `(.L_loop_{})", number));
}
inline constexpr int kFrameOfLoop = 3;  // the wait, its branch, and the branch back

}  // namespace chord::sass_test
