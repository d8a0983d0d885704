// The fields that an override can pin: their variables, members and the values that can be meant at
// all. What a pinned value means for one plan is judged where the plan is made.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "chord/overrides.h"
#include "chord/schedule.h"

namespace chord::heuristics {

// Whether (and how) a value is one of first, first + step, ... last.
struct PinRange {
  int first;
  int last;
  int step;

  constexpr bool holds(int value) const {
    return value >= first && value <= last && (value - first) % step == 0;
  }
};

struct PinField {
  const char* variable;  // CHORD_W4A16_BM; for a kernel field its name
  const char* field;     // block_m
  std::optional<int> Overrides::*member;
  PinRange range;
};

inline constexpr std::array<PinField, 6> kPublishedPins{{
    {"CHORD_W4A16_BM", "block_m", &Overrides::block_m, {8, 256, 8}},
    {"CHORD_W4A16_BN", "block_n", &Overrides::block_n, {64, 512, 64}},
    {"CHORD_W4A16_BK", "block_k", &Overrides::block_k, {64, 512, 64}},
    {"CHORD_W4A16_CM", "cluster_m", &Overrides::cluster_m, {1, 2, 1}},
    {"CHORD_W4A16_CN", "cluster_n", &Overrides::cluster_n, {1, 2, 1}},
    {"CHORD_W4A16_STAGES", "num_stages", &Overrides::num_stages, {2, 16, 1}},
}};

inline constexpr std::array<PinField, 6> kKernelPins{{
    {"tile_m", "tile_m", &Overrides::tile_m, {8, 256, 8}},
    {"tile_n", "tile_n", &Overrides::tile_n, {64, 512, 64}},
    {"widths", "widths", &Overrides::widths, {1, 4, 1}},
    {"width_step", "width_step", &Overrides::width_step, {8, 128, 8}},
    {"slices_per_stage", "slices_per_stage", &Overrides::slices_per_stage, {1, 4, 1}},
    {"stages", "stages", &Overrides::stages, {2, 16, 1}},
}};

// A kernel field whose values have names.
struct NamedPin {
  const char* field;
  bool is_measured;  // a row of a profile may pin it
  Status (*parse)(Overrides&, std::string_view);
  std::string (*text)(const Overrides&);  // empty where nothing is pinned
  void (*fill)(Overrides&, const Overrides&);
};

template <auto Member, auto Parse>
constexpr NamedPin named_pin(const char* field, bool is_measured) {
  return {field, is_measured,
          [](Overrides& into, std::string_view text) -> Status {
            CHORD_TRY(into.*Member, Parse(text));
            return {};
          },
          [](const Overrides& from) {
            return from.*Member ? std::string(name(*(from.*Member))) : std::string();
          },
          [](Overrides& into, const Overrides& from) {
            if (!(into.*Member)) into.*Member = from.*Member;
          }};
}

inline constexpr std::array<NamedPin, 4> kNamedPins{{
    named_pin<&Overrides::mainloop, parse_mainloop>("mainloop", true),
    named_pin<&Overrides::dequantisation, parse_dequantisation>("dequantisation", true),
    named_pin<&Overrides::split, parse_split>("split", true),
    named_pin<&Overrides::release, parse_release>("release", false),
}};

std::string describe(const PinRange& range);  // "a multiple of 8 in 8..256"

// Every set field holds a value that can be meant.
Status check_overrides(const Overrides& overrides);

bool pins_published(const Overrides& overrides);

// "CHORD_W4A16_BM=64, CHORD_W4A16_STAGES=8"; empty when nothing is pinned.
std::string pinned_text(const Overrides& overrides);

// Fields of `first` where set, of `second` otherwise.
Overrides merged(const Overrides& first, const Overrides& second);

}  // namespace chord::heuristics
