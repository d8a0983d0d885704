// A cubin with all that is known of it, and its bytes in a file. Knows nothing of files or of CUDA.
//
//   entry    = magic checksum fields
//   magic    = "chord cubin 2\n"                 the number is the schema version
//   checksum = 32 lower-case hex digits "\n"     XXH3-128 of all bytes after it
//   fields   = (cache/fields.h), exactly these and in this order:
//              key kernel_name arch compiler compile_ms threads shared_bytes registers local_bytes
//              cluster cubin_sha256 signer signature cubin
//
// key is the whole text of the key: a reader compares it, so that a collision of names is a miss.
// cubin_sha256 (64 hex digits), signer and signature (signatures.h) are all there or all empty: an
// entry that stays on its machine needs none. Numbers are decimal; compile_ms has a fraction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chord/cache_tier.h"
#include "chord/status.h"

namespace chord::cache {

struct Entry {
  CacheKey key;
  std::string kernel_name;
  std::string arch;
  std::string compiler;
  double compile_ms = 0;
  int threads = 0;
  std::int64_t shared_bytes = 0;
  int registers = 0;
  int local_bytes = 0;
  int cluster = 0;
  std::string cubin_sha256;
  std::string signer;     // who vouches for it, "ed25519:..."
  std::string signature;  // of signed_text
  std::string cubin;
};

// What a signature is made over: all fields but the signature and its signer, with the cubin's hash
// in its place.
std::string signed_text(const Entry& entry);

std::string serialize(const Entry& entry);

// An entry, but one that another version of this library wrote.
bool is_other_schema(std::string_view bytes);

// Checks every bound and the checksum; key.name is computed from the text.
Result<Entry> parse_entry(std::string_view bytes);

// Refuses an entry of another key and names the fields in which both differ, and one whose
// architecture is not the one in its key.
Status check_identity(const Entry& entry, const CacheKey& wanted);

}  // namespace chord::cache
