// Line by line: the function's label, labels, instructions, the label that ends it.
#include "src/sass/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

namespace chord::sass {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

bool is_one_of(std::string_view opcode, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), opcode) != names.end();
}

// "`(.L_x_14)" in the operands, if it is there.
std::string_view label_in(std::string_view operands) {
  const std::size_t begin = operands.find("`(");
  const std::size_t end = operands.find(')', begin == operands.npos ? 0 : begin);
  if (begin == operands.npos || end == operands.npos) return {};
  return operands.substr(begin + 2, end - begin - 2);
}

class Parser {
 public:
  explicit Parser(std::string_view function) : function_(function) {}

  Result<Listing> parse(std::string_view text) {
    while (!text.empty() && !ended_) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      CHORD_TRY(line(trimmed(text.substr(0, end))));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (!begun_) return bad("it has no such function");
    if (!ended_) return bad("it ends before the function does");
    if (listing_.empty()) return bad("the function has no instruction");
    CHORD_TRY(resolve());
    return std::move(listing_);
  }

 private:
  Error bad(std::string found) const {
    return Error{ErrorCode::corrupt, fmt::format("read the listing of {}", function_),
                 std::move(found), "it must be what nvdisasm -c prints of one cubin"};
  }

  // Before the function only its size matters: .size chord_kernel,(.L_x_317 - chord_kernel)
  Status line(std::string_view text) {
    if (text.empty()) return {};
    if (!begun_) {
      const std::string size = fmt::format("{},(", function_);
      if (text.starts_with(".size") && trimmed(text.substr(5)).starts_with(size)) {
        const std::string_view range = trimmed(text.substr(5)).substr(size.size());
        end_label_ = range.substr(0, range.find(' '));
      }
      begun_ = text.ends_with(':') && text.substr(0, text.size() - 1) == function_;
      if (begun_ && end_label_.empty()) return bad("its size is not given before it");
      return {};
    }
    if (text.ends_with(':')) {
      const std::string_view label = text.substr(0, text.size() - 1);
      labels_.emplace(label, listing_.size());
      ended_ = label == end_label_;
      return {};
    }
    if (text.starts_with("/*")) return instruction(text);
    if (text.starts_with(".section")) return bad("its section ends before the function does");
    return text.starts_with('.') || text.starts_with("//")
               ? Status()
               : bad(fmt::format("a line that is no instruction: {}", text.substr(0, 80)));
  }

  // /*2550*/ @!P0 BRA `(.L_x_14) ;
  Status instruction(std::string_view text) {
    const std::string shown(text.substr(0, 80));
    std::uint64_t address = 0;
    const auto [after, error] =
        std::from_chars(text.data() + 2, text.data() + text.size(), address, 16);
    const std::string_view mark = text.substr(static_cast<std::size_t>(after - text.data()));
    if (error != std::errc() || !mark.starts_with("*/"))
      return bad("an instruction without an address: " + shown);
    if (address != listing_.size() * kInstructionBytes)
      return bad(fmt::format("an instruction is missing before: {}", shown));
    std::string_view body = trimmed(mark.substr(2));
    if (!body.ends_with(';')) return bad("an instruction without an end: " + shown);
    body = trimmed(body.substr(0, body.size() - 1));
    const bool predicated = body.starts_with('@');
    if (predicated) body = trimmed(body.substr(std::min(body.find(' '), body.size())));
    if (body.empty()) return bad("an instruction without a name: " + shown);
    return add(body, predicated, shown);
  }

  Status add(std::string_view body, bool predicated, const std::string& shown) {
    const std::size_t name_end = std::min(body.find(' '), body.size());
    const std::string_view operands = trimmed(body.substr(name_end));
    Instruction made;
    const std::size_t opcode_end = std::min(body.find('.'), name_end);
    made.opcode = body.substr(0, opcode_end);
    if (opcode_end < name_end)
      made.modifiers = body.substr(opcode_end + 1, name_end - opcode_end - 1);
    if (is_one_of(made.opcode, {"BRX", "BRXU", "JMX", "JMXU"}))
      return bad("an indirect branch: " + shown);
    if (is_one_of(made.opcode, {"BRA", "JMP"})) {
      const std::string_view label = label_in(operands);
      if (label.empty()) return bad("a branch without a label: " + shown);
      branches_.emplace_back(listing_.size(), label);
      // Other conditions than @P0 are operands: BRA.DIV UR4, `(.L_x_20), BRA.U UP0, `(.L_x_3).
      made.falls_through = predicated || !operands.starts_with("`(");
    } else if (is_one_of(made.opcode, {"EXIT", "RET", "KILL"})) {
      made.falls_through = predicated;
    }
    listing_.push_back(std::move(made));
    return {};
  }

  Status resolve() {
    for (const auto& [index, label] : branches_) {
      const auto known = labels_.find(label);
      if (known == labels_.end() || known->second >= listing_.size())
        return bad(fmt::format("a branch to {}, which is not in the function", label));
      listing_[index].target = known->second;
    }
    return {};
  }

  const std::string_view function_;
  std::string_view end_label_;
  bool begun_ = false, ended_ = false;
  Listing listing_;
  std::map<std::string_view, std::size_t> labels_;
  std::vector<std::pair<std::size_t, std::string_view>> branches_;
};

}  // namespace

Result<Listing> parse_listing(std::string_view text, std::string_view function) {
  return Parser(function).parse(text);
}

}  // namespace chord::sass
