// Look-ups in a set of profiles, and the embedded set. Parsing is profile_json.cpp.
#include "heuristics/profile.h"

#include <algorithm>

namespace chord::heuristics {

bool Profile::serves(Architecture arch) const {
  return std::find(archs.begin(), archs.end(), arch) != archs.end();
}

bool Profile::serves(Role role) const {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

const ProfileShape* Profile::shape(std::int64_t n, std::int64_t k, std::int64_t experts) const {
  for (const ProfileShape& shape : shapes)
    if (shape.n == n && shape.k == k && shape.experts.value_or(experts) == experts) return &shape;
  return nullptr;
}

const Profile* ProfileSet::indexed(std::string_view name) const {
  for (const Profile& profile : profiles)
    if (profile.family == Family::indexed && profile.name == name) return &profile;
  return nullptr;
}

const Profile* ProfileSet::grouped(Family family) const {
  for (const Profile& profile : profiles)
    if (profile.family == family) return &profile;
  return nullptr;
}

std::string ProfileSet::indexed_names() const {
  std::string all;
  for (const Profile& profile : profiles)
    if (profile.family == Family::indexed) all += (all.empty() ? "" : ", ") + profile.name;
  return all;
}

Result<ProfileSet> parse_profiles(const EmbeddedFile* files, std::size_t count) {
  ProfileSet set;
  for (std::size_t i = 0; i < count; ++i) {
    CHORD_TRY(Profile profile,
              parse_profile(std::string_view(files[i].text, files[i].size), files[i].name));
    set.profiles.push_back(std::move(profile));
  }
  return set;
}

const Result<ProfileSet>& published_profiles() {
  // Never destroyed: threads may plan while the process exits.
  static const Result<ProfileSet>& set =
      *new Result<ProfileSet>(parse_profiles(embedded_files, embedded_file_count));
  return set;
}

}  // namespace chord::heuristics
