// See bundle_manifest.h.
#include "cache/bundle/bundle_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "cache/key.h"

namespace chord::cache {
namespace {

using nlohmann::json;

constexpr std::string_view kContext = "chord bundle manifest 1\n";
constexpr std::size_t kSha256Digits = 64;

Error refuse(std::string found) {
  return Error{ErrorCode::corrupt, kManifestMember, std::move(found), "export the bundle again"};
}

bool is_sha256(std::string_view text) {
  return text.size() == kSha256Digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string signed_text(std::string_view json) {
  std::string text;
  text.reserve(kContext.size() + json.size());
  return text.append(kContext).append(json);
}

const json* member_of(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// Empty where there is no such number or text; no member of a bundle has 0 bytes or no name.
std::uint64_t number_of(const json& object, const char* name) {
  const json* value = member_of(object, name);
  const auto* number = value ? value->get_ptr<const json::number_unsigned_t*>() : nullptr;
  return number ? *number : 0;
}

std::string text_of(const json& object, const char* name) {
  const json* value = member_of(object, name);
  const auto* text = value ? value->get_ptr<const json::string_t*>() : nullptr;
  return text ? *text : std::string();
}

Result<BundleMember> parse_member(const json& object, std::size_t index) {
  BundleMember member{text_of(object, "name"), number_of(object, "size"),
                      text_of(object, "sha256")};
  if (!is_content_name(member.name))
    return refuse(fmt::format("'name' of members[{}] is not 32 hex digits", index));
  if (member.size == 0 || member.size > BundleLimits::entry_bytes)
    return refuse(
        fmt::format("'size' of {} is not 1 to {} bytes", member.path(), BundleLimits::entry_bytes));
  if (!is_sha256(member.sha256))
    return refuse(fmt::format("'sha256' of {} is not 64 hex digits", member.path()));
  return member;
}

Status check_members(const BundleManifest& manifest) {
  std::set<std::string_view> names;
  for (const ManifestKey& key : manifest.deployment.keys)
    if (!names.insert(key.name).second)
      return refuse(fmt::format("key {} is listed twice", key.name));
  std::uint64_t bytes = 0;
  std::string_view last;
  for (const BundleMember& member : manifest.members) {
    if (member.name == last) return refuse(fmt::format("{} is listed twice", member.path()));
    if (member.name < last)
      return refuse(fmt::format("{} is not in the order of names", member.path()));
    if (!names.contains(member.name))
      return refuse(fmt::format("{} is no key of the deployment", member.path()));
    last = member.name;
    bytes += member.size;
  }
  if (bytes > BundleLimits::all_entries_bytes)
    return refuse(fmt::format("its entries have {} bytes, at most {} are read", bytes,
                              BundleLimits::all_entries_bytes));
  return {};
}

// The text of a line and what follows it; nothing when there is no whole line.
std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

std::string to_json(const BundleManifest& manifest) {
  json members = json::array();
  for (const BundleMember& member : manifest.members)
    members.push_back({{"name", member.name}, {"size", member.size}, {"sha256", member.sha256}});
  // The deployment's own text is JSON by construction.
  const json object{{"format", kBundleFormat},
                    {"manifest", json::parse(to_json(manifest.deployment), nullptr, false)},
                    {"members", std::move(members)}};
  return object.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<BundleManifest> parse_bundle_manifest(std::string_view text) {
  if (text.size() > BundleLimits::manifest_bytes)
    return refuse(fmt::format("it is larger than {} bytes", BundleLimits::manifest_bytes));
  const json object = json::parse(text, nullptr, false);
  if (object.is_discarded() || !object.is_object()) return refuse("it is not JSON");
  if (const std::uint64_t format = number_of(object, "format"); format != kBundleFormat)
    return refuse(
        fmt::format("it is of bundle format {}, this library reads {}", format, kBundleFormat));
  const json* deployment = member_of(object, "manifest");
  const json* members = member_of(object, "members");
  if (deployment == nullptr) return refuse("'manifest' is missing");
  if (members == nullptr || !members->is_array() || members->size() > BundleLimits::members)
    return refuse(fmt::format("'members' is no list of at most {}", BundleLimits::members));
  BundleManifest manifest;
  CHORD_TRY(manifest.deployment,
            parse_manifest(deployment->dump(-1, ' ', false, json::error_handler_t::replace),
                           "of the bundle"));
  for (const json& member : *members) {
    CHORD_TRY(BundleMember parsed, parse_member(member, manifest.members.size()));
    manifest.members.push_back(std::move(parsed));
  }
  CHORD_TRY(check_members(manifest));
  return manifest;
}

std::string sign_manifest(std::string_view json, const SigningKey& key) {
  return fmt::format("{}\n{}\n", key.signer(), key.sign(signed_text(json)));
}

Result<std::string> check_manifest(std::string_view json, std::string_view signature,
                                   const TrustedKeys& trusted) {
  const auto refuse_signature = [](std::string found, std::string help) {
    return Error{ErrorCode::corrupt, kSignatureMember, std::move(found), std::move(help)};
  };
  const auto signer = take_line(signature);
  const auto digits = take_line(signature);
  if (!signer || !digits || !signature.empty() || !is_signer(*signer))
    return refuse_signature("it is not a signer and a signature", "export the bundle again");
  if (!trusted.knows(std::string(*signer)))
    return refuse_signature(
        fmt::format("the bundle is signed by {}, which is not among the {} trusted keys", *signer,
                    trusted.all().size()),
        "add that key to the file of trusted keys if you trust who made the bundle");
  if (!is_signature_of(*signer, *digits, signed_text(json)))
    return refuse_signature(
        fmt::format("it is not the signature of {} by {}", kManifestMember, *signer),
        "the bundle was changed after it was signed: fetch or export it again");
  return std::string(*signer);
}

}  // namespace chord::cache
