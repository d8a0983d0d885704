// See redis_lease.h.
#include "cache/remote/redis_lease.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "cache/remote/per_process.h"

namespace chord::cache {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

constexpr std::string_view kExtend =
    "if redis.call('get', KEYS[1]) == ARGV[1] then "
    "return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";
constexpr std::string_view kGiveBack =
    "if redis.call('get', KEYS[1]) == ARGV[1] then "
    "return redis.call('del', KEYS[1]) end return 0";

constexpr std::size_t kRandomBytes = 16;

// "<32 hex digits> pid 4711 on node7": unlike any other, and with a name for people.
std::string new_token() {
  unsigned char random[kRandomBytes];
  if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) return {};
  std::string token;
  for (const unsigned char byte : random) token += fmt::format("{:02x}", byte);
  char host[256] = "?";
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '?';
  return fmt::format("{} pid {} on {}", token, ::getpid(), host);
}

std::string holder_of(std::string_view token) {
  token.remove_prefix(std::min(token.size(), 2 * kRandomBytes + 1));
  return token.empty() ? "somebody" : printable(token);
}

}  // namespace

// Of one process: the thread that extends, and what it extends, by token.
struct RedisLeases::Renewals {
  struct Held {
    std::string name;
    Time due;
  };

  ~Renewals() {
    {
      std::lock_guard lock(mutex);
      is_over = true;
    }
    changed.notify_all();
    if (thread.joinable()) thread.join();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, Held> held;
  bool is_over = false;
  std::thread thread;
};

// What a lease needs; outlives its service while one is held.
class RedisLeases::Keeper {
 public:
  Keeper(std::shared_ptr<RedisClient> client, RedisLeaseSettings settings)
      : client_(std::move(client)), settings_(std::move(settings)) {}

  const RedisLeaseSettings& settings() const { return settings_; }
  RedisClient& client() { return *client_; }

  void keep(const std::string& name, const std::string& token);
  void give_back(const std::string& name, const std::string& token);

 private:
  void renew(Renewals& renewals);
  bool extend(const std::string& name, const std::string& token);
  Time next_time() const { return Clock::now() + std::chrono::milliseconds(settings_.ttl_ms / 3); }

  const std::shared_ptr<RedisClient> client_;
  const RedisLeaseSettings settings_;
  PerProcess<Renewals> renewals_;  // the last: its thread uses the others
};

void RedisLeases::Keeper::keep(const std::string& name, const std::string& token) {
  Renewals& renewals = renewals_.get();
  {
    std::lock_guard lock(renewals.mutex);
    renewals.held[token] = {name, next_time()};
    if (!renewals.thread.joinable()) {
      try {
        renewals.thread = std::thread([this, &renewals] { renew(renewals); });
      } catch (const std::system_error&) {
        return;  // without a thread the lease ends after its time, and only saved less work
      }
    }
  }
  renewals.changed.notify_all();
}

void RedisLeases::Keeper::renew(Renewals& renewals) {
  sigset_t all;  // the job's handlers are not to run here
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  std::unique_lock lock(renewals.mutex);
  while (!renewals.is_over) {
    const auto next =
        std::min_element(renewals.held.begin(), renewals.held.end(),
                         [](const auto& a, const auto& b) { return a.second.due < b.second.due; });
    if (next == renewals.held.end()) {
      renewals.changed.wait(lock);
    } else if (const Time due = next->second.due; Clock::now() < due) {
      renewals.changed.wait_until(lock, due);
    } else {
      const std::string token = next->first;
      const std::string name = next->second.name;
      lock.unlock();
      const bool is_ours = extend(name, token);
      lock.lock();
      const auto held = renewals.held.find(token);
      if (held != renewals.held.end() && is_ours) held->second.due = next_time();
      if (held != renewals.held.end() && !is_ours) renewals.held.erase(held);
    }
  }
}

// False where it is somebody else's or nobody's by now. A server that can not be asked is asked
// again later: it may come back before the lease has run out.
bool RedisLeases::Keeper::extend(const std::string& name, const std::string& token) {
  const std::string ttl = std::to_string(settings_.ttl_ms);
  const Result<RedisReply> reply =
      client_->run({"EVAL", kExtend, "1", name, token, ttl}, settings_.deadline_ms, Repeat::once);
  return !reply || reply->kind != RedisReply::Kind::integer || reply->integer == 1;
}

void RedisLeases::Keeper::give_back(const std::string& name, const std::string& token) {
  Renewals& renewals = renewals_.get();
  {
    std::lock_guard lock(renewals.mutex);
    // Lost, and known to be.
    if (renewals.held.erase(token) == 0) return;
  }
  (void)client_->run({"EVAL", kGiveBack, "1", name, token}, settings_.deadline_ms, Repeat::once);
}

namespace {

class RedisLease final : public KeyLease {
 public:
  RedisLease(std::shared_ptr<RedisLeases::Keeper> keeper, std::string name, std::string token)
      : keeper_(std::move(keeper)), name_(std::move(name)), token_(std::move(token)) {
    keeper_->keep(name_, token_);
  }
  // The child of a fork has a copy of the object, but the lease is its parent's.
  ~RedisLease() override {
    if (::getpid() == owner_) keeper_->give_back(name_, token_);
  }

 private:
  const std::shared_ptr<RedisLeases::Keeper> keeper_;
  const std::string name_;
  const std::string token_;
  const pid_t owner_ = ::getpid();
};

LeaseAnswer no_answer(std::string failure) { return {nullptr, {}, std::move(failure)}; }

}  // namespace

RedisLeases::RedisLeases(std::shared_ptr<RedisClient> client, RedisLeaseSettings settings)
    : keeper_(std::make_shared<Keeper>(std::move(client), std::move(settings))) {}

LeaseAnswer RedisLeases::try_take(const CacheKey& key) {
  const RedisLeaseSettings& settings = keeper_->settings();
  const std::string name = fmt::format("{}lease:{}", settings.prefix, key.name);
  const std::string token = new_token();
  if (token.empty()) return no_answer("no random bytes for a lease");
  const std::string ttl = std::to_string(settings.ttl_ms);
  const Deadline deadline(settings.deadline_ms);
  const Result<RedisReply> set = keeper_->client().run({"SET", name, token, "NX", "PX", ttl},
                                                       deadline.left_ms(), Repeat::once);
  if (!set) return no_answer(set.error().message());
  if (set->is_text("OK")) return {std::make_unique<RedisLease>(keeper_, name, token), {}, {}};
  if (set->kind != RedisReply::Kind::nil)
    return no_answer(
        fmt::format("SET at {}: {}", keeper_->client().address().name, describe(*set)));
  const Result<RedisReply> held =
      keeper_->client().run({"GET", name}, deadline.left_ms(), Repeat::once);
  // Ours where the answer to a first SET was lost and the second found its work.
  if (held && held->is_text(token))
    return {std::make_unique<RedisLease>(keeper_, name, token), {}, {}};
  return {nullptr, held ? holder_of(held->text) : holder_of({}), {}};
}

}  // namespace chord::cache
