// Who vouches for an entry that has crossed a machine: an Ed25519 signature over its key and the
// SHA-256 of its cubin (libsodium). A signature of another entry, of a key that nobody trusts, or
// none at all is a miss with its reason.
//
//   signed text  = "chord cubin signature 1\n" and the entry's fields up to cubin_sha256 (entry.h);
//                  so a signature binds key, facts and content, and fits no other entry
//   signing key  = "chord-signing-key ed25519:" 64 hex digits of the seed "\n"; a file of mode 0600
//   trusted keys = lines "ed25519:" 64 hex digits of the public key, a space, a comment; '#' begins
//                  a remark. Removing a line takes the trust back.
//
// The public key's text "ed25519:..." is also the name of the signer in an entry.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cache/entry.h"
#include "chord/cache_events.h"
#include "chord/options.h"
#include "chord/platform.h"
#include "chord/status.h"

namespace chord::cache {

std::string sha256_hex(std::string_view bytes);

// The seed is wiped when the object ends, and printed by nothing but `file_text`.
class SigningKey {
 public:
  static SigningKey generate();
  static Result<SigningKey> parse(std::string_view text, std::string_view origin);
  // Refuses a file that others than its owner may read.
  static Result<SigningKey> read(const std::string& path, FileSystem& files);

  SigningKey(const SigningKey&) = default;
  SigningKey& operator=(const SigningKey&) = default;
  ~SigningKey();

  const std::string& signer() const { return signer_; }  // the public key's text
  std::string file_text() const;
  std::string sign(std::string_view text) const;  // 128 hex digits

 private:
  SigningKey() = default;
  void derive();  // the rest from the seed

  std::string seed_;
  std::string secret_;
  std::string signer_;
};

class TrustedKeys {
 public:
  static Result<TrustedKeys> parse(std::string_view text, std::string_view origin);
  static Result<TrustedKeys> read(const std::string& path, FileSystem& files);

  void add(const std::string& signer, std::string comment);
  bool knows(const std::string& signer) const { return comments_.contains(signer); }
  const std::map<std::string, std::string>& all() const { return comments_; }

 private:
  std::map<std::string, std::string> comments_;  // by signer
};

bool is_signer(std::string_view text);
// False for anything that is not the signer's signature of exactly this text.
bool is_signature_of(std::string_view signer, std::string_view signature, std::string_view text);

struct Verdict {
  MissReason reason = MissReason::none;
  std::string text;  // why the entry is not believed; empty when it is

  bool is_good() const { return reason == MissReason::none; }
};

class Signatures {
 public:
  Signatures() = default;  // signs nothing, trusts nobody, accepts local entries
  Signatures(SignaturePolicy policy, TrustedKeys trusted, std::optional<SigningKey> signing_key);

  SignaturePolicy policy() const { return policy_; }
  const TrustedKeys& trusted() const { return trusted_; }
  const SigningKey* signing_key() const { return signing_key_ ? &*signing_key_ : nullptr; }

  // Fills cubin_sha256, signer and signature if there is a signing key.
  void sign(Entry& entry) const;
  // Of an entry that came from another machine, whatever the policy.
  Verdict check(const Entry& entry) const;
  // Of an entry of a folder of this machine.
  Verdict check_local(const Entry& entry) const;

 private:
  SignaturePolicy policy_ = SignaturePolicy::accept_local;
  TrustedKeys trusted_;
  std::optional<SigningKey> signing_key_;
};

}  // namespace chord::cache
