// See remotes.h.
#include "cache/remotes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/units.h"

namespace chord::cache {
namespace {

// Polling a lease costs the store two small calls; a compile takes a second or more.
constexpr std::int64_t kFirstWaitMs = 10;
constexpr std::int64_t kLongestWaitMs = 200;

}  // namespace

Remotes::Remotes(const std::vector<std::shared_ptr<CacheTier>>& tiers,
                 std::shared_ptr<LeaseService> leases, Reporter& reporter, const TierReader& reader,
                 const Clock& clock)
    : leases_(std::move(leases)), reporter_(reporter), reader_(reader), clock_(clock) {
  for (const auto& tier : tiers) {
    slots_.push_back(std::make_unique<Slot>(tier, clock));
    if (leasing_ == nullptr && tier->is_writable()) leasing_ = slots_.back().get();
  }
}

bool Remotes::may_write() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& slot) { return slot->tier->is_writable(); });
}

SharedEntry Remotes::find(const CacheKey& key, Damage damage, std::string& why_not) {
  for (const auto& slot : slots_) {
    if (!slot->breaker.lets_through()) {
      append_reason(why_not, slot->tier->name(), "left alone after a failure");
      continue;
    }
    TierLook look = reader_.read(*slot->tier, TierOrigin::another_machine, key, damage, slot->hits);
    if (look.reason == MissReason::failed)
      note_failure(*slot, slot->breaker, look.text);
    else
      note_success(*slot, slot->breaker);
    if (look.entry) {
      ++reporter_.counts.remote_hits;
      return std::move(look.entry);
    }
    append_reason(why_not, slot->tier->name(), look.text);
  }
  return nullptr;
}

bool Remotes::may_be_written(Slot& slot) {
  return slot.tier->is_writable() && slot.breaker.state() == BreakerState::closed &&
         slot.write_breaker.lets_through();
}

bool Remotes::put(Slot& slot, const CacheKey& key, std::string_view bytes) {
  const Status status = slot.tier->put(key, bytes);
  if (status) {
    note_success(slot, slot.write_breaker);
    reporter_.event({.kind = CacheEvent::Kind::write,
                     .key = key.name,
                     .tier = slot.tier->name(),
                     .bytes = bytes.size()});
    return true;
  }
  ++reporter_.counts.write_failures;
  // What is wrong with the entry says nothing about the store, which was not asked.
  if (status.error().code == ErrorCode::invalid_argument)
    reporter_.say(Trouble::not_shared, status.error().message());
  else
    note_failure(slot, slot.write_breaker, status.error().message());
  return false;
}

void Remotes::publish(const CacheKey& key, std::string_view bytes) {
  for (const auto& slot : slots_)
    if (may_be_written(*slot)) put(*slot, key, bytes);
}

int Remotes::share(const CacheKey& key, std::string_view bytes) {
  int taken = 0;
  for (const auto& slot : slots_)
    if (slot->tier->is_writable() && !holds(*slot, key) && may_be_written(*slot))
      taken += put(*slot, key, bytes) ? 1 : 0;
  return taken;
}

bool Remotes::holds(Slot& slot, const CacheKey& key) {
  if (!slot.breaker.lets_through()) return false;
  const TierAnswer answer = slot.tier->get(key);
  if (answer.lookup == Lookup::failed)
    note_failure(slot, slot.breaker, answer.reason);
  else
    note_success(slot, slot.breaker);
  return answer.lookup == Lookup::value &&
         reader_.judge(answer.bytes, TierOrigin::another_machine, key).entry != nullptr;
}

bool Remotes::holds(const CacheKey& key) {
  return std::any_of(slots_.begin(), slots_.end(),
                     [&](const auto& slot) { return holds(*slot, key); });
}

bool Remotes::can_be_asked() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const auto& slot) {
    return slot->breaker.state() == BreakerState::closed;
  });
}

Remotes::Turn Remotes::wait_for_turn(const CacheKey& key, std::int64_t wait_ms) {
  Turn turn;
  if (!leases_ || leasing_ == nullptr) return turn;
  const std::int64_t deadline_ns = clock_.steady_ns() + wait_ms * kMillisecond;
  for (std::int64_t pause_ms = kFirstWaitMs;; pause_ms = std::min(2 * pause_ms, kLongestWaitMs)) {
    if (!may_be_written(*leasing_)) return turn;
    LeaseAnswer answer = leases_->try_take(key);
    if (!answer.failure.empty()) {
      note_failure(*leasing_, leasing_->write_breaker, answer.failure);
      return turn;
    }
    note_success(*leasing_, leasing_->write_breaker);
    turn.lease = std::move(answer.held);
    // Also with the lease in hand: its last holder may have published and left in between.
    std::string why_not;
    turn.entry = find(key, Damage::set_aside, why_not);
    if (turn.entry || turn.lease) return turn;
    const std::int64_t left_ms = (deadline_ns - clock_.steady_ns()) / kMillisecond;
    if (left_ms <= 0) {
      reporter_.log(LogLevel::warn,
                    fmt::format("waited {} ms for key {} from {}; going on without it", wait_ms,
                                key.name, answer.holder));
      return turn;
    }
    if (!turn.waited)
      reporter_.log(LogLevel::info,
                    fmt::format("waiting for key {} (at most {} ms): it is being made by {}",
                                key.name, wait_ms, answer.holder));
    turn.waited = true;
    clock_.sleep_ms(std::min(pause_ms, left_ms));
  }
}

void Remotes::note_success(Slot& slot, Breaker& breaker) {
  const bool was_open = breaker.state() != BreakerState::closed;
  breaker.succeeded();
  if (!was_open) return;
  slot.was_named = false;
  const std::string name = slot.tier->name();
  reporter_.log(LogLevel::info, fmt::format("cache {} answers again", name));
  reporter_.event({.kind = CacheEvent::Kind::breaker, .tier = name, .text = "closed"});
}

void Remotes::note_failure(Slot& slot, Breaker& breaker, const std::string& reason) {
  ++slot.failures;
  const std::uint64_t opened = breaker.opened();
  const std::int64_t pause_ms = breaker.failed();
  const std::string name = slot.tier->name();
  const char* what = &breaker == &slot.write_breaker ? "can not be written" : "failed";
  reporter_.log(
      slot.was_named.exchange(true) ? LogLevel::debug : LogLevel::warn,
      fmt::format("cache {} {}: {}; left alone for {} s", name, what, reason, pause_ms / 1000));
  if (breaker.opened() != opened)
    reporter_.event({.kind = CacheEvent::Kind::breaker,
                     .tier = name,
                     .reason = MissReason::failed,
                     .text = reason});
}

std::vector<CacheTier*> Remotes::tiers() const {
  std::vector<CacheTier*> all;
  for (const auto& slot : slots_) all.push_back(slot->tier.get());
  return all;
}

std::vector<RemoteCounters> Remotes::counters() const {
  std::vector<RemoteCounters> all;
  for (const auto& slot : slots_)
    all.push_back({slot->tier->name(), slot->breaker.state(), slot->write_breaker.state(),
                   slot->hits, slot->failures,
                   slot->breaker.opened() + slot->write_breaker.opened()});
  return all;
}

}  // namespace chord::cache
