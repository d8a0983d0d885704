// See farm_client.h.
#include "src/farm/farm_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "cache/printable.h"
#include "src/farm/farm_names.h"
#include "src/farm/message.h"

namespace chord::farm {
namespace {

using Kind = cache::RedisReply::Kind;

// Requests that nobody takes must not fill the store.
constexpr const char* kMostRequests = "10000";

std::string new_request_id(std::string_view asked_by, const Clock& clock) {
  static std::atomic<std::uint64_t> calls{0};
  return cache::content_name(
      fmt::format("{} {} {} {}", asked_by, ++calls, clock.now_ns(), clock.steady_ns()));
}

// What a compiler of another machine said, line by line.
std::string printable_lines(std::string_view text) {
  constexpr std::size_t kMostLines = 40;
  std::string lines;
  for (std::size_t i = 0; i < kMostLines && !text.empty(); ++i) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (i > 0) lines += '\n';
    lines += cache::printable(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

Error FarmClient::failed(const cubin::Recipe& recipe, std::string found, std::string help) const {
  return Error{ErrorCode::unavailable, fmt::format("{} from the compile farm", recipe.label),
               std::move(found), std::move(help)};
}

Result<std::string> FarmClient::request(const cubin::Recipe& recipe) {
  if (!breaker_.lets_through()) return failed(recipe, "left alone after a failure");
  Result<FarmReply> reply = ask(recipe);
  if (!reply) {
    breaker_.failed();
    return std::move(reply).error();
  }
  breaker_.succeeded();
  if (!reply->failure.empty()) return failed(recipe, printable_lines(reply->failure));
  return std::move(reply->compiler);
}

Result<FarmReply> FarmClient::ask(const cubin::Recipe& recipe) {
  const std::int64_t call_ms = store_.place.deadline_ms;
  const std::string alive = alive_name(store_.place.prefix);
  CHORD_TRY(const cache::RedisReply farms,
            store_.client->run({"GET", alive}, call_ms, cache::Repeat::once));
  if (farms.is_error()) return failed(recipe, describe(farms));
  if (farms.kind != Kind::text)
    return failed(recipe, fmt::format("nobody serves at {}", store_.client->address().name),
                  "run chord-cache serve on a machine with NVRTC");

  const std::string id = new_request_id(asked_by_, clock_);
  const std::string stream = stream_name(store_.place.prefix);
  CHORD_TRY(const cache::RedisReply added,
            store_.client->run({"XADD", stream, "MAXLEN", "~", kMostRequests, "*", "recipe",
                                encode(recipe), "reply", id, "asked_by", asked_by_},
                               call_ms));
  if (added.is_error()) return failed(recipe, describe(added));

  const std::string seconds = fmt::format("{:.3f}", static_cast<double>(deadline_ms_) / 1000);
  CHORD_TRY(const cache::RedisReply answer,
            store_.client->run({"BLPOP", reply_name(store_.place.prefix, id), seconds},
                               deadline_ms_ + call_ms));
  if (answer.kind == Kind::nil)
    return failed(
        recipe,
        fmt::format("no answer within {} ms from {}", deadline_ms_, cache::printable(farms.text)),
        "give it longer with CHORD_FARM_DEADLINE_MS, or add a chord-cache serve");
  if (answer.kind != Kind::array || answer.elements.size() != 2)
    return failed(recipe, describe(answer));
  return decode_reply(answer.elements[1].text);
}

Result<std::unique_ptr<cubin::CompileFarm>> make_farm_client(const cache::RemoteSettings& settings,
                                                             std::string asked_by,
                                                             std::int64_t deadline_ms,
                                                             const Clock& clock) {
  CHORD_TRY(cache::RedisStore store, cache::open_redis(settings));
  return std::unique_ptr<cubin::CompileFarm>(
      std::make_unique<FarmClient>(std::move(store), std::move(asked_by), deadline_ms, clock));
}

}  // namespace chord::farm
