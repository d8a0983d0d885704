// See farm_server.h.
#include "src/farm/farm_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cache/printable.h"
#include "src/farm/farm_names.h"
#include "src/farm/message.h"

namespace chord::farm {
namespace {

using cache::RedisReply;
using Kind = RedisReply::Kind;

// A request that killed so many farms is answered with a failure instead of killing another one.
constexpr std::int64_t kMostDeliveries = 3;
constexpr std::int64_t kAliveMs = 10'000;
constexpr std::int64_t kPauseAfterTroubleMs = 1'000;

Error unexpected(std::string_view command, const RedisReply& reply) {
  return Error{ErrorCode::unavailable, fmt::format("{} of the farm's stream", command),
               describe(reply), ""};
}

// [id, [name, value, name, value, ...]]
template <class Job>
std::optional<Job> job_of(const RedisReply& entry) {
  if (entry.elements.size() != 2 || entry.elements[1].elements.size() % 2 != 0) return std::nullopt;
  Job job;
  job.id = entry.elements[0].text;
  const std::vector<RedisReply>& fields = entry.elements[1].elements;
  for (std::size_t i = 0; i < fields.size(); i += 2) {
    if (fields[i].text == "recipe") job.recipe = fields[i + 1].text;
    if (fields[i].text == "reply") job.reply_to = fields[i + 1].text;
    if (fields[i].text == "asked_by") job.asked_by = cache::printable(fields[i + 1].text);
  }
  return job;
}

// A farm signs what it compiles, so it compiles this library's own text alone: a source that brings
// device files of its own, or includes anything else, could carry another kernel under the key of
// an honest one, or read a file of this machine into an error message.
Status check_own_text(const cubin::Recipe& recipe) {
  const auto refuse = [&](std::string found) {
    return Error{ErrorCode::invalid_argument, recipe.label, std::move(found),
                 "let nodes and farms of a store run the same version of this library"};
  };
  CHORD_TRY(const std::vector<source::DeviceFile> own,
            source::included_files(recipe.source, source::embedded_device_files()));
  const bool is_own =
      std::equal(own.begin(), own.end(), recipe.files.begin(), recipe.files.end(),
                 [](const auto& a, const auto& b) { return a.name == b.name && a.text == b.text; });
  if (!is_own) return refuse("its device text is of another version");
  for (const char* trick : {"\\\n", "\\\r", "%:", "??", "incbin", "embed"})
    if (recipe.source.find(trick) != std::string::npos)
      return refuse("its source has what no source of this library has");
  std::string_view rest = recipe.source;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    if (line.find("include") != line.npos && !line.starts_with("#include \""))
      return refuse("its source includes what is not this library's");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

}  // namespace

FarmServer::FarmServer(cache::RedisStore redis, cubin::CubinStore& store, cache::TieredCache& cache,
                       FarmOptions options, Clock& clock, LogSink log)
    : redis_(std::move(redis)),
      store_(store),
      cache_(cache),
      options_(std::move(options)),
      clock_(clock),
      log_(std::move(log)),
      stream_(stream_name(redis_.place.prefix)) {}

Result<RedisReply> FarmServer::run_command(const cache::RedisWords& words, std::int64_t extra_ms) {
  return redis_.client->run(words, redis_.place.deadline_ms + extra_ms);
}

void FarmServer::run(const std::function<bool()>& is_over) {
  std::vector<std::jthread> threads;
  threads.emplace_back([&] { announce(is_over); });
  for (int i = 1; i < options_.jobs; ++i)
    threads.emplace_back([&, i] { serve(fmt::format("{} #{}", options_.label, i), is_over); });
  serve(options_.label + " #0", is_over);
}

void FarmServer::announce(const std::function<bool()>& is_over) {
  const std::string alive = alive_name(redis_.place.prefix);
  const std::string life = std::to_string(kAliveMs);
  std::int64_t next_ns = 0;
  while (!is_over()) {
    if (clock_.steady_ns() >= next_ns) {
      (void)run_command({"SET", alive, options_.label, "PX", life});
      next_ns = clock_.steady_ns() + kAliveMs / 3 * 1'000'000;
    }
    clock_.sleep_ms(100);
  }
}

Status FarmServer::make_group() {
  CHORD_TRY(const RedisReply reply,
            run_command({"XGROUP", "CREATE", stream_, kGroup, "0", "MKSTREAM"}));
  if (!reply.is_error() || reply.error_word() == "BUSYGROUP") return {};
  return unexpected("XGROUP", reply);
}

void FarmServer::serve(const std::string& consumer, const std::function<bool()>& is_over) {
  bool has_group = false;
  bool was_named = false;
  while (!is_over()) {
    Result<std::optional<Job>> job = std::optional<Job>();
    if (const Status made = has_group ? Status() : make_group(); !made)
      job = made.error();
    else
      job = claim_abandoned(consumer);
    if (job && !*job) job = take_next(consumer);
    has_group = job.ok();
    if (!job) {
      log_(was_named ? LogLevel::debug : LogLevel::warn, job.error().message());
      was_named = true;
      clock_.sleep_ms(kPauseAfterTroubleMs);
      continue;
    }
    was_named = false;
    if (*job) finish(**job, work(consumer, **job));
  }
  (void)run_command({"XGROUP", "DELCONSUMER", stream_, kGroup, consumer});
}

Result<std::optional<FarmServer::Job>> FarmServer::claim_abandoned(const std::string& consumer) {
  CHORD_TRY(const RedisReply reply,
            run_command({"XAUTOCLAIM", stream_, kGroup, consumer, std::to_string(options_.claim_ms),
                         "0-0", "COUNT", "1"}));
  if (reply.kind != Kind::array || reply.elements.size() < 2)
    return unexpected("XAUTOCLAIM", reply);
  const std::vector<RedisReply>& claimed = reply.elements[1].elements;
  if (claimed.empty()) return std::optional<Job>();
  std::optional<Job> job = job_of<Job>(claimed.front());
  if (!job) {
    drop(claimed.front());
    return std::optional<Job>();
  }
  ++counters_.claimed;
  CHORD_TRY(job->deliveries, deliveries_of(job->id));
  return job;
}

Result<std::int64_t> FarmServer::deliveries_of(const std::string& id) {
  CHORD_TRY(const RedisReply reply, run_command({"XPENDING", stream_, kGroup, id, id, "1"}));
  // [[id, consumer, idle, deliveries]]
  if (reply.kind != Kind::array) return unexpected("XPENDING", reply);
  const bool is_there = !reply.elements.empty() && reply.elements[0].elements.size() == 4;
  return is_there ? reply.elements[0].elements[3].integer : std::int64_t{1};
}

Result<std::optional<FarmServer::Job>> FarmServer::take_next(const std::string& consumer) {
  CHORD_TRY(const RedisReply reply,
            run_command({"XREADGROUP", "GROUP", kGroup, consumer, "COUNT", "1", "BLOCK",
                         std::to_string(options_.poll_ms), "STREAMS", stream_, ">"},
                        options_.poll_ms));
  if (reply.kind == Kind::nil) return std::optional<Job>();
  // [[stream, [entry]]]
  if (reply.kind != Kind::array || reply.elements.size() != 1 ||
      reply.elements[0].elements.size() != 2 || reply.elements[0].elements[1].elements.empty())
    return unexpected("XREADGROUP", reply);
  const RedisReply& entry = reply.elements[0].elements[1].elements[0];
  std::optional<Job> job = job_of<Job>(entry);
  if (!job) drop(entry);
  return job;
}

// No request of ours: out of the way, or it would be claimed again and again.
void FarmServer::drop(const RedisReply& entry) {
  if (entry.elements.empty()) return;
  const std::string& id = entry.elements[0].text;
  (void)run_command({"XACK", stream_, kGroup, id});
  (void)run_command({"XDEL", stream_, id});
}

// The claim is renewed while the compiler works, so that only a farm that died loses its job.
std::string FarmServer::work(const std::string& consumer, const Job& job) {
  std::mutex mutex;
  std::condition_variable_any changed;
  const auto renew_until = [&](std::stop_token stop) {
    std::unique_lock lock(mutex);
    const auto pause = std::chrono::milliseconds(std::max<std::int64_t>(options_.claim_ms / 3, 1));
    while (!changed.wait_for(lock, stop, pause, [] { return false; }) && !stop.stop_requested())
      renew(consumer, job.id);
  };
  std::jthread renewing;
  try {
    renewing = std::jthread(renew_until);
  } catch (const std::system_error&) {
    log_(LogLevel::warn, "no thread to renew a claim with; a long compile may be done twice");
  }
  return make(job);
}

void FarmServer::renew(const std::string& consumer, const std::string& id) {
  (void)run_command({"XCLAIM", stream_, kGroup, consumer, "0", id, "JUSTID"});
}

std::string FarmServer::make(const Job& job) {
  ++counters_.served;
  const auto failure = [&](std::string why) {
    ++counters_.failed;
    log_(LogLevel::warn, fmt::format("request of {}: {}", job.asked_by, why));
    return encode(FarmReply{{}, std::move(why)});
  };
  if (job.deliveries > kMostDeliveries) {
    ++counters_.given_up;
    return failure(
        fmt::format("given up after {} farms took it and none finished it", job.deliveries - 1));
  }
  const Result<ReceivedRecipe> received = decode_recipe(job.recipe);
  if (!received) return failure(received.error().message());
  if (const Status own = check_own_text(received->recipe); !own)
    return failure(own.error().message());
  bool compiled = false;
  const Result<cubin::EntryPointer> entry = store_.obtain(received->recipe, &compiled);
  if (!entry) return failure(entry.error().message());
  if (compiled) ++counters_.compiled;
  // It may have been in this farm's folder only; and another one may be quicker to share it.
  const CacheKey& key = (*entry)->key;
  if (!cache_.is_shared(key) && cache_.share(*cache_.vouch(*entry)) == 0 && !cache_.is_shared(key))
    return failure("it is made, but the remote store did not take it");
  log_(LogLevel::info, fmt::format("{} for {}: {}", received->recipe.label, job.asked_by,
                                   compiled ? "compiled" : "was there"));
  return encode(FarmReply{(*entry)->compiler, {}});
}

void FarmServer::finish(const Job& job, const std::string& reply) {
  const std::string list = reply_name(redis_.place.prefix, job.reply_to);
  // Without its reply the request stays: it is claimed later, and answered from the cache.
  const Result<RedisReply> pushed = run_command({"RPUSH", list, reply});
  if (!pushed || pushed->is_error()) return;
  (void)run_command({"PEXPIRE", list, std::to_string(kReplyLifeMs)});
  (void)run_command({"XACK", stream_, kGroup, job.id});
  (void)run_command({"XDEL", stream_, job.id});
}

}  // namespace chord::farm
