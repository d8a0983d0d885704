// See signatures.h.
#include "cache/signatures.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <utility>

namespace chord::cache {
namespace {

constexpr std::string_view kAlgorithm = "ed25519:";
constexpr std::string_view kSigningKeyMark = "chord-signing-key ";
constexpr std::size_t kSeedBytes = crypto_sign_SEEDBYTES;
constexpr std::size_t kMaxKeyFileBytes = std::size_t{1} << 20;
constexpr std::uint32_t kOthersMayRead = 077;

// Before anything else of libsodium, from whichever thread comes first; safe to call again.
bool is_sodium_ready() {
  static const bool ready = sodium_init() >= 0;
  return ready;
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

std::string to_hex(std::string_view bytes) {
  std::string hex(2 * bytes.size() + 1, '\0');
  sodium_bin2hex(hex.data(), hex.size(), bytes_of(bytes), bytes.size());
  hex.pop_back();
  return hex;
}

// Empty for anything but exactly `bytes` bytes in lower-case hex digits.
std::string from_hex(std::string_view hex, std::size_t bytes) {
  if (hex.size() != 2 * bytes || hex.find_first_not_of("0123456789abcdef") != hex.npos) return {};
  std::string raw(bytes, '\0');
  std::size_t length = 0;
  sodium_hex2bin(bytes_of(raw), bytes, hex.data(), hex.size(), nullptr, &length, nullptr);
  if (length != bytes) raw.clear();
  return raw;
}

std::string public_key_of(std::string_view signer) {
  if (!signer.starts_with(kAlgorithm)) return {};
  return from_hex(signer.substr(kAlgorithm.size()), crypto_sign_PUBLICKEYBYTES);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

Error bad_key_file(std::string_view origin, std::string found) {
  return Error{ErrorCode::invalid_argument, fmt::format("key file {}", origin), std::move(found),
               "make a pair with chord-cache keygen"};
}

Result<std::string> read_key_file(const std::string& path, FileSystem& files, FileStat& opened) {
  std::string text;
  if (const FileError error = files.read(path, text, &opened))
    return bad_key_file(path, error.message());
  if (text.size() > kMaxKeyFileBytes) return bad_key_file(path, "it is larger than 1 MiB");
  return text;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  std::string digest(crypto_hash_sha256_BYTES, '\0');
  crypto_hash_sha256(bytes_of(digest), bytes_of(bytes), bytes.size());
  return to_hex(digest);
}

SigningKey::~SigningKey() {
  sodium_memzero(seed_.data(), seed_.size());
  sodium_memzero(secret_.data(), secret_.size());
}

SigningKey SigningKey::generate() {
  SigningKey key;
  (void)is_sodium_ready();
  key.seed_.resize(kSeedBytes);
  randombytes_buf(key.seed_.data(), key.seed_.size());
  key.derive();
  return key;
}

void SigningKey::derive() {
  std::string public_key(crypto_sign_PUBLICKEYBYTES, '\0');
  secret_.resize(crypto_sign_SECRETKEYBYTES);
  crypto_sign_seed_keypair(bytes_of(public_key), bytes_of(secret_), bytes_of(seed_));
  signer_ = std::string(kAlgorithm) + to_hex(public_key);
}

Result<SigningKey> SigningKey::parse(std::string_view text, std::string_view origin) {
  text = trimmed(text);
  if (!is_sodium_ready()) return bad_key_file(origin, "libsodium could not be initialised");
  if (!text.starts_with(kSigningKeyMark))
    return bad_key_file(origin, is_signer(text.substr(0, text.find(' ')))
                                    ? "it holds a public key, and a secret one is needed"
                                    : "it does not begin with 'chord-signing-key '");
  text = trimmed(text.substr(kSigningKeyMark.size()));
  SigningKey key;
  if (text.starts_with(kAlgorithm))
    key.seed_ = from_hex(text.substr(kAlgorithm.size()), kSeedBytes);
  // The text itself is never repeated: it may be most of a secret.
  if (key.seed_.empty()) return bad_key_file(origin, "no 'ed25519:' with 64 hex digits in it");
  key.derive();
  return key;
}

Result<SigningKey> SigningKey::read(const std::string& path, FileSystem& files) {
  FileStat opened;
  CHORD_TRY(std::string text, read_key_file(path, files, opened));
  if ((opened.mode & kOthersMayRead) != 0) {
    sodium_memzero(text.data(), text.size());
    return Error{ErrorCode::invalid_argument, fmt::format("signing key {}", path),
                 fmt::format("others than its owner may use it (mode {:04o})", opened.mode),
                 "chmod 600 it; if others had access, make a new pair with chord-cache keygen"};
  }
  Result<SigningKey> key = parse(text, path);
  sodium_memzero(text.data(), text.size());
  return key;
}

std::string SigningKey::file_text() const {
  return fmt::format("{}{}{}\n", kSigningKeyMark, kAlgorithm, to_hex(seed_));
}

std::string SigningKey::sign(std::string_view text) const {
  std::string signature(crypto_sign_BYTES, '\0');
  crypto_sign_detached(bytes_of(signature), nullptr, bytes_of(text), text.size(),
                       bytes_of(std::string_view(secret_)));
  return to_hex(signature);
}

Result<TrustedKeys> TrustedKeys::parse(std::string_view text, std::string_view origin) {
  TrustedKeys keys;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view signer = line.substr(0, space);
    if (line.starts_with(kSigningKeyMark))
      return bad_key_file(origin, fmt::format("line {} is a secret key; only public keys belong "
                                              "into a file that is handed round",
                                              number));
    if (!is_signer(signer))
      return bad_key_file(origin,
                          fmt::format("line {} is no 'ed25519:' with 64 hex digits", number));
    keys.add(std::string(signer), std::string(trimmed(line.substr(space))));
  }
  return keys;
}

Result<TrustedKeys> TrustedKeys::read(const std::string& path, FileSystem& files) {
  FileStat opened;
  CHORD_TRY(const std::string text, read_key_file(path, files, opened));
  if ((opened.mode & 022) != 0)
    return bad_key_file(path, fmt::format("group or others may write it (mode {:04o}), so they "
                                          "could add a key of their own",
                                          opened.mode));
  return parse(text, path);
}

void TrustedKeys::add(const std::string& signer, std::string comment) {
  comments_[signer] = std::move(comment);
}

bool is_signer(std::string_view text) { return !public_key_of(text).empty(); }

bool is_signature_of(std::string_view signer, std::string_view signature, std::string_view text) {
  const std::string public_key = public_key_of(signer);
  const std::string raw = from_hex(signature, crypto_sign_BYTES);
  if (!is_sodium_ready() || public_key.empty() || raw.empty()) return false;
  return crypto_sign_verify_detached(bytes_of(std::string_view(raw)), bytes_of(text), text.size(),
                                     bytes_of(std::string_view(public_key))) == 0;
}

Signatures::Signatures(SignaturePolicy policy, TrustedKeys trusted,
                       std::optional<SigningKey> signing_key)
    : policy_(policy), trusted_(std::move(trusted)), signing_key_(std::move(signing_key)) {}

void Signatures::sign(Entry& entry) const {
  if (!signing_key_) return;
  entry.cubin_sha256 = sha256_hex(entry.cubin);
  entry.signer = signing_key_->signer();
  entry.signature = signing_key_->sign(signed_text(entry));
}

Verdict Signatures::check(const Entry& entry) const {
  if (entry.signer.empty() || entry.signature.empty())
    return {MissReason::not_signed, "it is not signed"};
  if (!trusted_.knows(entry.signer))
    return {MissReason::unknown_signer,
            fmt::format("it is signed by {}, which is not among the trusted keys",
                        is_signer(entry.signer) ? entry.signer : "something that is no key")};
  if (entry.cubin_sha256 != sha256_hex(entry.cubin))
    return {MissReason::bad_signature, "its cubin is not the one that was signed"};
  if (!is_signature_of(entry.signer, entry.signature, signed_text(entry)))
    return {MissReason::bad_signature,
            fmt::format("the signature is not {}'s for this entry", entry.signer)};
  return {};
}

Verdict Signatures::check_local(const Entry& entry) const {
  return policy_ == SignaturePolicy::required ? check(entry) : Verdict{};
}

}  // namespace chord::cache
