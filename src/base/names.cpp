// Names of the public enums, and the way back. One table per enum serves both directions, so that a
// new value is one line.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "chord/descriptor.h"
#include "chord/options.h"
#include "chord/schedule.h"

namespace chord {
namespace {

template <class Value, std::size_t Count>
struct NameTable {
  const char* what;
  std::array<std::pair<Value, const char*>, Count> rows;

  const char* name_of(Value value) const {
    for (const auto& [v, text] : rows)
      if (v == value) return text;
    return "unknown";
  }

  std::string choices() const {
    std::string all;
    for (const auto& row : rows) all += (all.empty() ? "" : ", ") + std::string(row.second);
    return all;
  }

  Result<Value> parse(std::string_view text) const {
    for (const auto& [v, known] : rows)
      if (text == known) return v;
    return Error{ErrorCode::invalid_argument, fmt::format("{} '{}'", what, text.substr(0, 64)),
                 "no such name", fmt::format("one of: {}", choices())};
  }
};

constexpr NameTable<ErrorCode, 11> kErrorCodes{"error code",
                                               {{{ErrorCode::invalid_argument, "invalid_argument"},
                                                 {ErrorCode::unsupported, "unsupported"},
                                                 {ErrorCode::not_found, "not_found"},
                                                 {ErrorCode::unavailable, "unavailable"},
                                                 {ErrorCode::compile_failed, "compile_failed"},
                                                 {ErrorCode::cache_miss, "cache_miss"},
                                                 {ErrorCode::io_error, "io_error"},
                                                 {ErrorCode::corrupt, "corrupt"},
                                                 {ErrorCode::driver_error, "driver_error"},
                                                 {ErrorCode::not_prepared, "not_prepared"},
                                                 {ErrorCode::internal, "internal"}}}};
constexpr NameTable<Architecture, 3> kArchitectures{"architecture",
                                                    {{{Architecture::sm_90a, "sm_90a"},
                                                      {Architecture::sm_100a, "sm_100a"},
                                                      {Architecture::sm_103a, "sm_103a"}}}};
constexpr NameTable<Family, 3> kFamilies{"family",
                                         {{{Family::indexed, "indexed"},
                                           {Family::grouped_contiguous, "grouped_contiguous"},
                                           {Family::grouped_masked, "grouped_masked"}}}};
constexpr NameTable<Role, 3> kRoles{
    "role", {{{Role::decode, "decode"}, {Role::prefill, "prefill"}, {Role::mix, "mix"}}}};
constexpr NameTable<ShardAxis, 2> kShardAxes{
    "shard axis", {{{ShardAxis::expert, "ep"}, {ShardAxis::tensor, "tp"}}}};
constexpr NameTable<abi::Mainloop, 3> kMainloops{"mainloop",
                                                 {{{abi::Mainloop::mma, "mma"},
                                                   {abi::Mainloop::wgmma, "wgmma"},
                                                   {abi::Mainloop::resident, "resident"}}}};
constexpr NameTable<abi::Dequantisation, 3> kDequantisations{
    "dequantisation",
    {{{abi::Dequantisation::fused, "fused"},
      {abi::Dequantisation::ordinary, "ordinary"},
      {abi::Dequantisation::accumulator, "accumulator"}}}};
constexpr NameTable<abi::Split, 3> kSplits{"split",
                                           {{{abi::Split::whole_tiles, "whole_tiles"},
                                             {abi::Split::even, "even"},
                                             {abi::Split::automatic, "automatic"}}}};
constexpr NameTable<abi::Release, 2> kReleases{
    "release",
    {{{abi::Release::elected_lane, "elected_lane"}, {abi::Release::every_lane, "every_lane"}}}};
constexpr NameTable<abi::Epilogue, 3> kEpilogues{"epilogue",
                                                 {{{abi::Epilogue::none, "none"},
                                                   {abi::Epilogue::swiglu, "swiglu"},
                                                   {abi::Epilogue::weighted, "weighted"}}}};
constexpr NameTable<Origin, 4> kOrigins{"origin",
                                        {{{Origin::override_value, "override"},
                                          {Origin::measured, "measured"},
                                          {Origin::rule, "rule"},
                                          {Origin::fallback, "fallback"}}}};
constexpr NameTable<Policy, 2> kPolicies{
    "policy", {{{Policy::measured, "measured"}, {Policy::published, "published"}}}};
constexpr NameTable<LogLevel, 5> kLogLevels{"log level",
                                            {{{LogLevel::debug, "debug"},
                                              {LogLevel::info, "info"},
                                              {LogLevel::warn, "warn"},
                                              {LogLevel::error, "error"},
                                              {LogLevel::off, "off"}}}};
constexpr NameTable<JitPolicy, 3> kJitPolicies{
    "JIT policy",
    {{{JitPolicy::allow, "allow"}, {JitPolicy::warn, "warn"}, {JitPolicy::never, "never"}}}};
constexpr NameTable<SignaturePolicy, 2> kSignaturePolicies{
    "signature policy",
    {{{SignaturePolicy::accept_local, "accept-local"}, {SignaturePolicy::required, "required"}}}};
constexpr NameTable<CompileAt, 2> kCompilePlaces{
    "place to compile at", {{{CompileAt::local, "local"}, {CompileAt::farm, "farm"}}}};
constexpr NameTable<MissReason, kMissReasons> kMissReasonNames{
    "miss reason",
    {{{MissReason::none, "none"},
      {MissReason::absent, "absent"},
      {MissReason::untrusted, "untrusted"},
      {MissReason::damaged, "damaged"},
      {MissReason::older_schema, "older_schema"},
      {MissReason::other_key, "other_key"},
      {MissReason::not_signed, "not_signed"},
      {MissReason::unknown_signer, "unknown_signer"},
      {MissReason::bad_signature, "bad_signature"},
      {MissReason::failed, "failed"}}}};
constexpr NameTable<BreakerState, 3> kBreakerStates{"breaker state",
                                                    {{{BreakerState::closed, "closed"},
                                                      {BreakerState::open, "open"},
                                                      {BreakerState::half_open, "half_open"}}}};
constexpr NameTable<CacheEvent::Kind, 8> kEventKinds{
    "cache event",
    {{{CacheEvent::Kind::hit, "hit"},
      {CacheEvent::Kind::miss, "miss"},
      {CacheEvent::Kind::compile, "compile"},
      {CacheEvent::Kind::wait, "wait"},
      {CacheEvent::Kind::bad_entry, "bad_entry"},
      {CacheEvent::Kind::write, "write"},
      {CacheEvent::Kind::write_failure, "write_failure"},
      {CacheEvent::Kind::breaker, "breaker"}}}};

Error unsupported_architecture(std::string_view text) {
  return Error{ErrorCode::unsupported, fmt::format("architecture {}", text.substr(0, 64)),
               "no kernels of this library run on it",
               fmt::format("supported: {} (H200; B200; B300)", kArchitectures.choices())};
}

}  // namespace

const char* name(ErrorCode code) { return kErrorCodes.name_of(code); }
const char* name(Architecture arch) { return kArchitectures.name_of(arch); }
const char* name(Family family) { return kFamilies.name_of(family); }
const char* name(Role role) { return kRoles.name_of(role); }
const char* name(ShardAxis axis) { return kShardAxes.name_of(axis); }
const char* name(abi::Mainloop mainloop) { return kMainloops.name_of(mainloop); }
const char* name(abi::Dequantisation form) { return kDequantisations.name_of(form); }
const char* name(abi::Split split) { return kSplits.name_of(split); }
const char* name(abi::Release release) { return kReleases.name_of(release); }
const char* name(abi::Epilogue epilogue) { return kEpilogues.name_of(epilogue); }
const char* name(Origin origin) { return kOrigins.name_of(origin); }
const char* name(Policy policy) { return kPolicies.name_of(policy); }
const char* name(LogLevel level) { return kLogLevels.name_of(level); }
const char* name(JitPolicy policy) { return kJitPolicies.name_of(policy); }
const char* name(SignaturePolicy policy) { return kSignaturePolicies.name_of(policy); }
const char* name(CompileAt place) { return kCompilePlaces.name_of(place); }
const char* name(MissReason reason) { return kMissReasonNames.name_of(reason); }
const char* name(BreakerState state) { return kBreakerStates.name_of(state); }
const char* name(CacheEvent::Kind kind) { return kEventKinds.name_of(kind); }

Result<Family> parse_family(std::string_view text) { return kFamilies.parse(text); }
Result<Role> parse_role(std::string_view text) { return kRoles.parse(text); }
Result<Policy> parse_policy(std::string_view text) { return kPolicies.parse(text); }
Result<LogLevel> parse_log_level(std::string_view text) { return kLogLevels.parse(text); }
Result<JitPolicy> parse_jit_policy(std::string_view text) { return kJitPolicies.parse(text); }
Result<SignaturePolicy> parse_signature_policy(std::string_view text) {
  return kSignaturePolicies.parse(text);
}
Result<CompileAt> parse_compile_at(std::string_view text) { return kCompilePlaces.parse(text); }
Result<abi::Mainloop> parse_mainloop(std::string_view text) { return kMainloops.parse(text); }
Result<abi::Dequantisation> parse_dequantisation(std::string_view text) {
  return kDequantisations.parse(text);
}
Result<abi::Split> parse_split(std::string_view text) { return kSplits.parse(text); }

Result<abi::Release> parse_release(std::string_view text) { return kReleases.parse(text); }
Result<abi::Epilogue> parse_epilogue(std::string_view text) { return kEpilogues.parse(text); }

Result<Architecture> parse_architecture(std::string_view text) {
  for (const auto& [arch, known] : kArchitectures.rows)
    if (text == known) return arch;
  return unsupported_architecture(text);
}

Result<Architecture> architecture_of(int major, int minor) {
  if (major == 9 && minor == 0) return Architecture::sm_90a;
  if (major == 10 && minor == 0) return Architecture::sm_100a;
  if (major == 10 && minor == 3) return Architecture::sm_103a;
  return unsupported_architecture(fmt::format("{}.{}", major, minor));
}

int default_num_sms(Architecture arch) { return is_blackwell(arch) ? 148 : 132; }
bool is_blackwell(Architecture arch) { return arch != Architecture::sm_90a; }

std::string Error::message() const {
  std::string text = asked + ": " + found;
  if (!help.empty()) text += " (" + help + ")";
  return text;
}

std::string FileError::message() const {
  return fmt::format("{} {}: {}", call, path, std::strerror(error_number));
}

const TableRow& ScheduleTable::at(std::int64_t rows_or_expected_m) const {
  for (const TableRow& row : rows)
    if (rows_or_expected_m <= row.max_rows) return row;
  return rows.back();
}

}  // namespace chord
