// Reading of untrusted JSON.
#include "tools/examples/checked_json.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <set>

namespace chord::examples {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;

Error refused(const std::string& what, std::string found) {
  return Error{ErrorCode::corrupt, what, std::move(found),
               "fetch the file again; an interrupted download looks like this"};
}

// Sees every value while it is parsed.
class Watch {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    is_deep = is_deep || depth > kMaxDepth;
    if (is_deep) return false;
    // The keys of an object are one deeper than its beginning.
    if (event == json::parse_event_t::object_start)
      keys_[static_cast<std::size_t>(depth) + 1].clear();
    if (event == json::parse_event_t::key) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (!keys_[static_cast<std::size_t>(depth)].insert(key).second && !twice) twice = key;
    }
    return true;
  }

  bool is_deep = false;
  std::optional<std::string> twice;

 private:
  std::array<std::set<std::string>, kMaxDepth + 2> keys_;  // of the open object of each depth
};

}  // namespace

Result<json> parse_object(std::string_view text, const std::string& what) {
  Watch watch;
  try {
    json value = json::parse(text, std::ref(watch));
    if (watch.is_deep) return refused(what, fmt::format("values nested deeper than {}", kMaxDepth));
    if (watch.twice)
      return refused(what, fmt::format("'{}' stands there twice", shown(*watch.twice)));
    if (!value.is_object()) return refused(what, fmt::format("{}, no object", value.type_name()));
    return value;
  } catch (const json::parse_error& error) {
    return refused(what, fmt::format("no JSON: it stops making sense at byte {} of {}", error.byte,
                                     text.size()));
  } catch (const json::exception&) {
    return refused(what, "no JSON: a number is out of range");
  }
}

std::optional<std::int64_t> whole_number(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  const auto number = value.get<std::int64_t>();
  return number < 0 ? std::nullopt : std::optional(number);
}

std::string shown(const std::string& text) {
  constexpr std::size_t kMost = 80;
  std::string clipped = text.substr(0, kMost);
  for (char& c : clipped)
    if (c < ' ' || c > '~') c = '?';
  return text.size() > kMost ? clipped + "..." : clipped;
}

std::string shown(const json& value) {
  return shown(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

}  // namespace chord::examples
