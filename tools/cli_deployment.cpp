// See cli_deployment.h.
#include "tools/cli_deployment.h"

#include <fmt/format.h>

#include <charconv>

#include "chord/model.h"
#include "chord/schedule.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

Error bad_rows(const std::string& text, std::string found) {
  return Error{ErrorCode::invalid_argument, fmt::format("--rows {}", text), std::move(found),
               fmt::format("give MIN:MAX with 1 <= MIN <= MAX <= {}", kMaxTableRows)};
}

Result<std::int64_t> parse_count(const std::string& all, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return bad_rows(all, fmt::format("'{}' is not a number", text));
  return value;
}

Status set_rows(const std::string& text, Deployment& deployment) {
  if (text.empty()) return {};
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return bad_rows(text, "no colon");
  CHORD_TRY(deployment.min_rows, parse_count(text, std::string_view(text).substr(0, colon)));
  CHORD_TRY(deployment.max_rows, parse_count(text, std::string_view(text).substr(colon + 1)));
  if (deployment.min_rows < 1) return bad_rows(text, "MIN is below 1");
  if (deployment.max_rows > kMaxTableRows) return bad_rows(text, "MAX is too large");
  if (deployment.min_rows > deployment.max_rows) return bad_rows(text, "MIN is above MAX");
  return {};
}

Result<std::vector<Role>> parse_roles(const std::string& text) {
  if (text == "both") return std::vector<Role>{Role::decode, Role::prefill};
  auto role = parse_role(text);
  if (!role) {
    role.error().help += ", both";
    return std::move(role).error();
  }
  return std::vector<Role>{*role};
}

}  // namespace

void add_deployment_flags(CLI::App& app, DeploymentFlags& flags) {
  add_model_flags(app, flags.model);
  const auto text = [&](const char* flag, auto& value, const char* help, const char* type) {
    return app.add_option(flag, value, help)->type_name(type)->check(flag_text());
  };
  text("--role", flags.role, "decode (default), prefill, mix, or both (decode and prefill)",
       "NAME");
  text("--arch", flags.archs, "sm_90a (default), sm_100a or sm_103a; may be repeated", "NAME")
      ->expected(1)
      ->take_all();
  text("--family", flags.families,
       "indexed (default), grouped_contiguous or grouped_masked; may be repeated", "NAME")
      ->expected(1)
      ->take_all();
  text("--rows", flags.rows, "routed rows to cover, both ends included; default: all", "MIN:MAX");
  app.add_option("--num-sms", flags.num_sms, "SMs of the GPU; default 132, on Blackwell 148")
      ->type_name("COUNT")
      ->transform(whole_number(1, 4096));
}

Result<Deployment> deployment_of(const DeploymentFlags& flags) {
  Deployment deployment;
  CHORD_TRY(deployment.model, load_model(flags.model));
  CHORD_TRY(deployment.shard, shard_of(flags.model));
  CHORD_TRY(deployment.roles, parse_roles(flags.role));
  CHORD_TRY(set_rows(flags.rows, deployment));
  deployment.num_sms = flags.num_sms;
  flags.model.set_epilogues(deployment);
  if (!flags.archs.empty()) deployment.archs.clear();
  for (const std::string& text : flags.archs) {
    CHORD_TRY(const Architecture arch, parse_architecture(text));
    deployment.archs.push_back(arch);
  }
  if (!flags.families.empty()) deployment.families.clear();
  for (const std::string& text : flags.families) {
    CHORD_TRY(const Family family, parse_family(text));
    deployment.families.push_back(family);
  }
  return deployment;
}

}  // namespace chord::tools
