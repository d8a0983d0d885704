// One look into one tier, and everything that must hold before what lies there is believed: it is
// whole, it is of the very key that was asked for, and somebody who is trusted vouches for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "cache/entry.h"
#include "cache/reporter.h"
#include "cache/signatures.h"
#include "chord/cache_tier.h"

namespace chord::cache {

using SharedEntry = std::shared_ptr<const Entry>;

// A look-up for its own sake leaves damaged entries where they are; one that is about to make the
// entry sets them aside.
enum class Damage { leave, set_aside };

// Where a tier's bytes come from decides who must vouch for them.
enum class TierOrigin { this_machine, another_machine };

struct TierLook {
  SharedEntry entry;  // empty: none that may be loaded
  MissReason reason = MissReason::none;
  std::string text;  // why not
};

class TierReader {
 public:
  TierReader(Reporter& reporter, const Signatures& signatures)
      : reporter_(reporter), signatures_(signatures) {}

  // Counts a hit in `hits`. Says nothing of a tier that could not look: its owner knows how.
  TierLook read(CacheTier& tier, TierOrigin origin, const CacheKey& key, Damage damage,
                std::atomic<std::uint64_t>& hits) const;
  // The same checks for bytes in hand; reports nothing. A key without text is that of any entry of
  // its name.
  TierLook judge(std::string_view bytes, TierOrigin origin, const CacheKey& key) const;

  static MissReason reason_of(Lookup lookup, TierOrigin origin);

 private:
  TierLook no_value(CacheTier& tier, TierOrigin origin, const CacheKey& key,
                    TierAnswer answer) const;
  void report(CacheTier& tier, const CacheKey& key, const TierLook& look) const;

  Reporter& reporter_;
  const Signatures& signatures_;
};

// "tier: reason", joined; for the line that tells of a miss.
void append_reason(std::string& why_not, const std::string& tier, const std::string& reason);

}  // namespace chord::cache
