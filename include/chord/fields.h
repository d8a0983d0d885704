// The field lists of the structs that shape code. Source text, cache key, JSON and overrides all
// walk these lists, so a new field is one line here and can not be forgotten in one of them.
//
//   for_each_field(schedule, [](const char* field, auto value) { ... });
#pragma once

#include "chord/abi/problem.h"
#include "chord/abi/schedule.h"
#include "chord/schedule.h"

namespace chord {

template <class Visitor>
void for_each_field(const abi::Schedule& s, Visitor&& visit) {
  visit("mainloop", s.mainloop);
  visit("block_m", s.block_m);
  visit("tile_m", s.tile_m);
  visit("tile_n", s.tile_n);
  visit("widths", s.widths);
  visit("width_step", s.width_step);
  visit("slices_per_stage", s.slices_per_stage);
  visit("stages", s.stages);
  visit("dequantisation", s.dequantisation);
  visit("split", s.split);
  visit("release", s.release);
  visit("epilogue", s.epilogue);
}

template <class Visitor>
void for_each_field(const abi::Problem& p, Visitor&& visit) {
  visit("n", p.n);
  visit("k", p.k);
  visit("routing", p.routing);
}

// The published fields that CHORD_W4A16_* can pin; 0 for one that the family does not have.
template <class Visitor>
void for_each_pinnable_field(const PublishedSchedule& s, Visitor&& visit) {
  visit("block_m", s.block_m);
  visit("block_n", s.block_n);
  visit("block_k", s.block_k);
  visit("cluster_m", s.cluster_m.value_or(0));
  visit("cluster_n", s.cluster_n.value_or(0));
  visit("num_stages", s.num_stages);
}

}  // namespace chord
