// cuBLAS, opened at run time: a batched BF16 GEMM is the dense twin of a balanced grouped one.
#pragma once

#include "src/cuda/driver_api.h"

namespace chord::bench {

class Cublas {
 public:
  static Result<Cublas> open(cuda::CUstream stream);
  Cublas(Cublas&& other) noexcept;
  Cublas& operator=(Cublas&&) = delete;
  ~Cublas();

  // out[e, m, n] = sum_k x[e, m, k] * w[e, n, k], all BF16, sums in FP32. Enqueues.
  Status batched_gemm(int experts, int m, int n, int k, const void* x, const void* w,
                      void* out) const;

 private:
  using Handle = void*;
  using StridedBatched = int (*)(Handle handle, int trans_a, int trans_b, int m, int n, int k,
                                 const void* alpha, const void* a, int a_type, int lda,
                                 long long stride_a, const void* b, int b_type, int ldb,
                                 long long stride_b, const void* beta, void* c, int c_type, int ldc,
                                 long long stride_c, int batch, int compute_type, int algorithm);

  Cublas() = default;

  Handle handle_ = nullptr;
  int (*destroy_)(Handle handle) = nullptr;
  StridedBatched gemm_ = nullptr;
};

}  // namespace chord::bench
