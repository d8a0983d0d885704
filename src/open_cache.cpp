// See open_cache.h.
#include "src/open_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/environment.h"
#if CHORD_HAS_REMOTE
#include "cache/remote/remote_tier.h"
#include "src/farm/farm_client.h"
#endif

namespace chord {
namespace {

constexpr std::int64_t kDayNs = std::int64_t{86'400} * 1'000'000'000;

#if CHORD_HAS_REMOTE

void warn_of_what_can_not_work(const Options& options, const cache::Signatures& signatures,
                               const std::string& remote, const LogSink& log) {
  if (signatures.trusted().all().empty())
    log(LogLevel::warn,
        fmt::format("nothing of {} will be loaded: no key is trusted; name a file of public keys "
                    "with CHORD_TRUSTED_KEYS",
                    remote));
  if (*options.remote_write && signatures.signing_key() == nullptr)
    log(LogLevel::warn, fmt::format("nothing will be written to {}: name a signing key with "
                                    "CHORD_SIGNING_KEY",
                                    remote));
}

Status add_remote(const Options& options, cache::CacheSettings& settings, OpenedCache& opened,
                  FileSystem& files, const Clock& clock, const LogSink& log) {
  CHORD_TRY(const cache::RemoteSettings remote, remote_settings(options));
  CHORD_TRY(const std::shared_ptr<cache::RemoteBackend> backend, cache::make_backend(remote));
  warn_of_what_can_not_work(options, settings.signatures, backend->name(), log);
  const bool may_write = *options.remote_write && settings.signatures.signing_key() != nullptr;
  settings.remote_tiers.push_back(std::make_shared<cache::RemoteTier>(backend, may_write));
  if (may_write) settings.leases = backend->leases();
  if (*options.compile_at == CompileAt::farm) {
    CHORD_TRY(opened.farm, farm::make_farm_client(remote, files.process_label(),
                                                  *options.farm_deadline_ms, clock));
  }
  return {};
}

#else

Status add_remote(const Options&, cache::CacheSettings&, OpenedCache&, FileSystem&, const Clock&,
                  const LogSink&) {
  return Error{ErrorCode::unsupported, "CHORD_REMOTE or Options::remote",
               "this build has no remote back-ends", "build with -DCHORD_REMOTE=ON"};
}

#endif

}  // namespace

#if CHORD_HAS_REMOTE

Result<cache::RemoteSettings> remote_settings(const Options& options) {
  cache::RemoteSettings remote;
  CHORD_TRY(remote.url, cache::parse_remote_url(*options.remote));
  remote.password = options.remote_password.value_or("");
  remote.token = options.remote_token.value_or("");
  remote.deadline_ms = *options.remote_deadline_ms;
  return remote;
}

#endif

Result<cache::Signatures> signatures_of(const Options& options, FileSystem& files) {
  cache::TrustedKeys trusted;
  std::optional<cache::SigningKey> signing_key;
  if (options.trusted_keys) {
    CHORD_TRY(trusted, cache::TrustedKeys::read(base::real_path(*options.trusted_keys), files));
  }
  if (options.signing_key) {
    CHORD_TRY(signing_key, cache::SigningKey::read(base::real_path(*options.signing_key), files));
    // Who signs believes himself; his comment is for lists only.
    if (!trusted.knows(signing_key->signer())) trusted.add(signing_key->signer(), "signing key");
  }
  return cache::Signatures(*options.signatures, std::move(trusted), std::move(signing_key));
}

Result<OpenedCache> open_cache(Options& options, const EnvironmentLookup& lookup, FileSystem& files,
                               Clock& clock, const LogSink& log) {
  if (!options.remote->empty()) {
    CHORD_TRY(base::resolve_secrets(options, lookup, files));
  }
  CHORD_TRY(const base::CacheFolder folder, base::choose_cache_folder(options, lookup, files));
  OpenedCache opened;
  cache::CacheSettings settings;
  settings.writable_dir = folder.path;
  settings.writable_dir_was_asked_for = folder.asked_for;
  settings.why_no_writable_dir = folder.why_none;
  settings.readonly_dirs = options.readonly_cache_dirs.value_or(std::vector<std::string>{});
  settings.max_bytes = *options.max_cache_bytes;
  settings.max_files = *options.max_cache_files;
  settings.max_age_ns = *options.max_cache_age_days * kDayNs;
  constexpr std::int64_t kLongestWaitMs = 86'400'000;  // a day; more would not fit nanoseconds
  settings.wait_ms = std::clamp<std::int64_t>(options.compile_wait_ms, 0, kLongestWaitMs);
  settings.on_event = options.on_cache_event;
  CHORD_TRY(settings.signatures, signatures_of(options, files));
  if (*options.signatures == SignaturePolicy::required && !options.signing_key)
    log(LogLevel::info,
        "signatures are required and there is no signing key: what is compiled here is not kept");
  if (!options.remote->empty()) {
    CHORD_TRY(add_remote(options, settings, opened, files, clock, log));
  } else if (*options.compile_at == CompileAt::farm) {
    return Error{ErrorCode::invalid_argument, "CHORD_COMPILE=farm", "no remote store is named",
                 "name the farm's Redis with CHORD_REMOTE"};
  }
  CHORD_TRY(opened.cache, cache::TieredCache::open(std::move(settings), files, clock, log));
  options.cache_dir = folder.path;
  return opened;
}

}  // namespace chord
