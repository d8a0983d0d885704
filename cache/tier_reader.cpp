// See tier_reader.h.
#include "cache/tier_reader.h"

#include <fmt/format.h>

#include <utility>

namespace chord::cache {
namespace {

bool is_about_its_bytes(MissReason reason) {
  return reason == MissReason::damaged || reason == MissReason::older_schema;
}

Trouble trouble_of(MissReason reason) {
  switch (reason) {
    case MissReason::untrusted:
      return Trouble::refused;
    case MissReason::not_signed:
    case MissReason::unknown_signer:
    case MissReason::bad_signature:
      return Trouble::not_vouched_for;
    default:
      return Trouble::damaged;
  }
}

}  // namespace

TierLook TierReader::judge(std::string_view bytes, TierOrigin origin, const CacheKey& key) const {
  Result<Entry> entry = parse_entry(bytes);
  if (!entry) {
    const bool is_older = is_other_schema(bytes);
    return {nullptr, is_older ? MissReason::older_schema : MissReason::damaged,
            entry.error().found};
  }
  if (key.text.empty() && entry->key.name != key.name)
    return {nullptr, MissReason::other_key, "it is of another key"};
  const CacheKey& wanted = key.text.empty() ? entry->key : key;
  if (const Status identity = check_identity(*entry, wanted); !identity)
    return {nullptr, MissReason::other_key, identity.error().found};
  Verdict verdict = origin == TierOrigin::this_machine ? signatures_.check_local(*entry)
                                                       : signatures_.check(*entry);
  if (!verdict.is_good()) return {nullptr, verdict.reason, std::move(verdict.text)};
  return {std::make_shared<const Entry>(std::move(entry).value()), MissReason::none, {}};
}

TierLook TierReader::read(CacheTier& tier, TierOrigin origin, const CacheKey& key, Damage damage,
                          std::atomic<std::uint64_t>& hits) const {
  TierAnswer answer = tier.get(key);
  if (answer.lookup != Lookup::value) return no_value(tier, origin, key, std::move(answer));
  TierLook look = judge(answer.bytes, origin, key);
  if (is_about_its_bytes(look.reason)) {
    // Before a file is called damaged: another process may just have replaced it.
    TierAnswer again = tier.get(key);
    if (again.lookup != Lookup::value) return no_value(tier, origin, key, std::move(again));
    if (again.bytes != answer.bytes) look = judge(again.bytes, origin, key);
    answer = std::move(again);
  }
  reporter_.counts.bytes_read += answer.bytes.size();
  if (!look.entry) {
    if (is_about_its_bytes(look.reason) && damage == Damage::set_aside)
      tier.set_aside(key, look.text);
    report(tier, key, look);
    return look;
  }
  ++hits;
  reporter_.log(LogLevel::debug, fmt::format("hit {} in {}", key.name, tier.name()));
  reporter_.event({.kind = CacheEvent::Kind::hit,
                   .key = key.name,
                   .tier = tier.name(),
                   .bytes = answer.bytes.size()});
  return look;
}

MissReason TierReader::reason_of(Lookup lookup, TierOrigin origin) {
  if (lookup == Lookup::absent) return MissReason::absent;
  if (lookup == Lookup::failed) return MissReason::failed;
  return origin == TierOrigin::this_machine ? MissReason::untrusted : MissReason::damaged;
}

TierLook TierReader::no_value(CacheTier& tier, TierOrigin origin, const CacheKey& key,
                              TierAnswer answer) const {
  TierLook look;
  look.text = std::move(answer.reason);
  look.reason = reason_of(answer.lookup, origin);
  report(tier, key, look);
  return look;
}

void TierReader::report(CacheTier& tier, const CacheKey& key, const TierLook& look) const {
  ++reporter_.counts.no_value[static_cast<std::size_t>(look.reason)];
  if (look.reason == MissReason::absent || look.reason == MissReason::failed) return;
  ++reporter_.counts.bad_entries;
  const std::string tier_name = tier.name();
  reporter_.say(trouble_of(look.reason),
                look.reason == MissReason::untrusted
                    ? fmt::format("cache {}: {}", tier_name, look.text)
                    : fmt::format("bad cache entry {} in {}: {}", key.name, tier_name, look.text));
  reporter_.event({.kind = CacheEvent::Kind::bad_entry,
                   .key = key.name,
                   .tier = tier_name,
                   .reason = look.reason,
                   .text = look.text});
}

void append_reason(std::string& why_not, const std::string& tier, const std::string& reason) {
  why_not += fmt::format("{}{}: {}", why_not.empty() ? "" : "; ", tier, reason);
}

}  // namespace chord::cache
