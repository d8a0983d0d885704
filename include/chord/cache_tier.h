// The seam of the cubin cache: bytes by key. A tier answers value, absent, refused or failed. Disk
// folders are tiers of the library; a remote store is one class on this interface.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chord/status.h"

namespace chord {

// The identity of a cubin: labelled, length-prefixed fields in a fixed order. `text` is the bytes;
// `name` is XXH3-128 of them in hex and names the entry. A hit compares the text, so that a
// collision of names is a miss.
struct CacheKey {
  std::string text;
  std::string name;

  bool operator==(const CacheKey& other) const { return text == other.text; }
};

enum class Lookup {
  value,
  absent,
  refused,  // something is there that the tier does not vouch for: another owner, not signed
  failed,   // the tier could not look
};

struct TierAnswer {
  Lookup lookup = Lookup::absent;
  std::string bytes;   // a whole serialized entry when lookup == value
  std::string reason;  // why it is not a value
};

class CacheTier {
 public:
  virtual ~CacheTier() = default;
  virtual std::string name() const = 0;
  virtual bool is_writable() const = 0;
  virtual TierAnswer get(const CacheKey& key) = 0;
  // value (the bytes may be left out) or absent: for a tier that can tell without a transfer.
  virtual TierAnswer probe(const CacheKey& key) { return get(key); }
  virtual Status put(const CacheKey& key, std::string_view bytes) = 0;
  virtual Status remove(const CacheKey& key) = 0;
  // The reader found the bytes of `get` to be damaged: keep them from the next reader.
  virtual void set_aside(const CacheKey& key, std::string_view /*reason*/) { (void)remove(key); }
};

}  // namespace chord
