// Top-k gating: a warp per token, which keeps all scores of it in registers and takes the largest
// again and again.
#pragma once

#include "chord/abi/layer.h"
#include "kernels/ptx/control.cuh"

namespace chord::device {

using abi::GateParams;
using abi::i32;
using abi::i64;
using abi::u32;

inline constexpr u32 kWholeWarp = 0xffffffffu;

// Ordered as the scores are, above 0, which stands for nobody. NaN comes last.
inline u32 key_of(float score) {
  if (!(score == score)) return 1;
  const u32 bits = __float_as_uint(score + 0.0f);  // one zero
  return bits ^ (static_cast<i32>(bits) < 0 ? 0xffffffffu : 0x80000000u);
}

class Gate {
  static constexpr i32 kScores = abi::kMaxAlignedExperts / 32;  // of a lane: every 32nd expert
  static constexpr u32 kNobody = 0x7fffffff;

 public:
  Gate(const GateParams& p, i64 token, i32 lane) : p_(p), token_(token), lane_(lane) {}

  void run() {
    score();
    rank();
    choose();
    write();
  }

 private:
  static float infinity() { return __int_as_float(0x7f800000); }

  float logit(i32 expert) const {
    const i64 index = token_ * p_.experts + expert;
    if (p_.logit_type == abi::LogitType::f32) return static_cast<const float*>(p_.logits)[index];
    return __uint_as_float(static_cast<u32>(static_cast<const abi::u16*>(p_.logits)[index]) << 16);
  }

  void score() {
    float largest = -infinity();
#pragma unroll
    for (i32 i = 0; i < kScores; ++i) {
      const i32 expert = i * 32 + lane_;
      scores_[i] = i * 32 < p_.experts && expert < p_.experts ? logit(expert) : -infinity();
      largest = fmaxf(largest, scores_[i]);
    }
    if (p_.scoring == abi::Scoring::sigmoid) {
#pragma unroll
      for (i32 i = 0; i < kScores; ++i)
        if (i * 32 < p_.experts) scores_[i] = 1.0f / (1.0f + expf(-scores_[i]));
      return;
    }
    for (i32 mask = 16; mask > 0; mask /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, mask));
    float sum = 0.0f;
#pragma unroll
    for (i32 i = 0; i < kScores; ++i) {
      scores_[i] = expf(scores_[i] - largest);
      sum += scores_[i];
    }
    for (i32 mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, mask);
#pragma unroll
    for (i32 i = 0; i < kScores; ++i) scores_[i] /= sum;
  }

  void rank() {
#pragma unroll
    for (i32 i = 0; i < kScores; ++i) {
      const i32 expert = i * 32 + lane_;
      keys_[i] = 0;
      if (expert >= p_.experts) continue;
      const float bias = p_.correction_bias == nullptr ? 0.0f : p_.correction_bias[expert];
      keys_[i] = key_of(scores_[i] + bias);
    }
  }

  // The best of this lane's experts that are left; the lower index wins a tie.
  void find_best() {
    best_key_ = 0;
#pragma unroll
    for (i32 i = 0; i < kScores; ++i) {
      if ((taken_ >> i & 1u) != 0 || keys_[i] <= best_key_) continue;
      best_key_ = keys_[i];
      best_score_ = scores_[i];
      best_expert_ = i * 32 + lane_;
    }
  }

  void choose() {
    find_best();
    for (i32 slot = 0; slot < p_.top_k; ++slot) {
      const u32 key = __reduce_max_sync(kWholeWarp, best_key_);
      const u32 own = best_key_ == key ? static_cast<u32>(best_expert_) : kNobody;
      const i32 expert = static_cast<i32>(__reduce_min_sync(kWholeWarp, own));
      const float weight = __shfl_sync(kWholeWarp, best_score_, expert % 32);
      if (lane_ == slot) {
        expert_ = expert;
        weight_ = weight;
      }
      if (lane_ == expert % 32) {
        taken_ |= 1u << (expert / 32);
        find_best();
      }
    }
  }

  void write() const {
    float weight = lane_ < p_.top_k ? weight_ : 0.0f;
    if (p_.renormalise != 0) {
      float sum = weight;
      for (i32 mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, mask);
      weight /= sum + 1e-20f;
    }
    const i64 first = token_ * p_.slots;
    if (lane_ < p_.top_k) {
      p_.ids[first + lane_] = expert_;
      p_.weights[first + lane_] = weight * p_.scale;
    }
    if (lane_ == 0 && p_.slots > p_.top_k) {
      p_.ids[first + p_.top_k] = p_.experts;
      p_.weights[first + p_.top_k] = 1.0f;
    }
  }

  const GateParams& p_;
  i64 token_;
  i32 lane_;
  float scores_[kScores];
  u32 keys_[kScores];
  u32 taken_ = 0;
  u32 best_key_ = 0;
  float best_score_ = 0.0f;
  i32 best_expert_ = 0;
  i32 expert_ = 0;       // of the slot that is this lane's index
  float weight_ = 0.0f;  // likewise
};

inline void gate(const GateParams& p) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const i64 token = static_cast<i64>(blockIdx.x) * abi::kGateWarps + threadIdx.x / 32;
  if (token < p.tokens) Gate(p, token, static_cast<i32>(threadIdx.x % 32)).run();
}

}  // namespace chord::device
