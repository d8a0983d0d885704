// The few entry points of cuBLAS that are needed, with the values of its public headers.
#include "tools/bench/cublas.h"

#include <fmt/format.h>

#include "src/base/dynamic_library.h"

namespace chord::bench {
namespace {

constexpr const char* kLibraries[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                      "/usr/local/cuda/lib64/libcublas.so"};
constexpr int kSuccess = 0;
constexpr int kPlain = 0, kTransposed = 1;  // CUBLAS_OP_N, CUBLAS_OP_T
constexpr int kBf16 = 14;                   // CUDA_R_16BF
constexpr int kComputeFp32 = 68;            // CUBLAS_COMPUTE_32F
constexpr int kDefaultAlgorithm = -1;       // CUBLAS_GEMM_DEFAULT

Result<base::DynamicLibrary> open_first() {
  std::string tried;
  for (const char* name : kLibraries) {
    auto library = base::DynamicLibrary::open(name);
    if (library.ok()) return library;
    tried += (tried.empty() ? "" : "; ") + library.error().found;
  }
  return Error{ErrorCode::unavailable, "open cuBLAS", tried, "install a CUDA toolkit"};
}

Status check(int status, const char* asked) {
  if (status == kSuccess) return {};
  return Error{ErrorCode::driver_error, asked, fmt::format("cuBLAS status {}", status), ""};
}

}  // namespace

Result<Cublas> Cublas::open(cuda::CUstream stream) {
  CHORD_TRY(const base::DynamicLibrary library, open_first());
  Cublas cublas;
  int (*create)(Handle*) = nullptr;
  int (*set_stream)(Handle, cuda::CUstream) = nullptr;
  if (!library.find("cublasCreate_v2", create) ||
      !library.find("cublasDestroy_v2", cublas.destroy_) ||
      !library.find("cublasSetStream_v2", set_stream) ||
      !library.find("cublasGemmStridedBatchedEx", cublas.gemm_))
    return Error{ErrorCode::unavailable, "use " + library.path(), "it lacks an entry point", ""};
  CHORD_TRY(check(create(&cublas.handle_), "create a cuBLAS handle"));
  CHORD_TRY(check(set_stream(cublas.handle_, stream), "give cuBLAS a stream"));
  return cublas;
}

Cublas::Cublas(Cublas&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      destroy_(other.destroy_),
      gemm_(other.gemm_) {}

Cublas::~Cublas() {
  if (handle_ != nullptr) destroy_(handle_);
}

Status Cublas::batched_gemm(int experts, int m, int n, int k, const void* x, const void* w,
                            void* out) const {
  // Column-major: out^T [n, m] = (w^T)^T [n, k] * x^T [k, m].
  const float one = 1, zero = 0;
  const long long n_k = static_cast<long long>(n) * k, m_k = static_cast<long long>(m) * k,
                  m_n = static_cast<long long>(m) * n;
  return check(gemm_(handle_, kTransposed, kPlain, n, m, k, &one, w, kBf16, k, n_k, x, kBf16, k,
                     m_k, &zero, out, kBf16, n, m_n, experts, kComputeFp32, kDefaultAlgorithm),
               "run a batched GEMM");
}

}  // namespace chord::bench
