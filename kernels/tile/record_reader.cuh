// How all but the loader of a wgmma kernel follow the work: record after record.
#pragma once

#include "kernels/tile/pipeline.cuh"

namespace chord::device {

// Reads records one after the other, up to the one that ends a window.
template <Schedule S>
class RecordReader {
 public:
  explicit RecordReader(const Ring<S>& ring) : ring_(ring) {}

  // Visit(address of the record, its stages).
  template <class Visit>
  void for_each_record(const Visit& visit) {
    for (;;) {
      ring_.wait_recorded(index_, phase_);
      const u32 record = ring_.record_address(index_);
      if (++index_ > S.stages) {
        index_ = 0;
        phase_ ^= 1;
      }
      const i32 stages = read_field(record, RecordField::stages);
      if (stages == 0) return;
      visit(record, stages);
    }
  }

 private:
  const Ring<S>& ring_;
  u32 index_ = 0, phase_ = 0;
};

}  // namespace chord::device
