// The C face of the library: C99 and C++, nothing but stddef.h and stdint.h. chord/engine.h is the
// richer C++ face over the same core.
//
//   chord_options_t options = chord_options_init();
//   options.device = 0;                     // -1 on a build machine: plan and prewarm need no GPU
//   chord_handle_t handle = NULL;
//   if (chord_create(&options, &handle) != CHORD_SUCCESS) return fail(chord_last_error()->message);
//
//   chord_model_t model = chord_model_init();
//   chord_layer_descriptor_t layer = chord_layer_descriptor_init();
//   chord_model_builtin("kimi-k2.5", &model);
//   chord_model_shard(&model, CHORD_SHARD_EXPERT, 8, &layer);
//   layer.rows = 160;                       // 20 tokens per GPU, 8 routes each
//   chord_plan_t gate_up = NULL, down = NULL;
//   chord_plan_layer(handle, &layer, &gate_up, &down, NULL);
//
//   chord_kernel_t kernel = NULL;           // compiled once, read from the cache ever after
//   chord_prepare(handle, gate_up, &kernel);
//   chord_launch_indexed(kernel, &arguments, &routing, stream);   // legal in graph capture
//
// Structs. Every struct begins with `struct_size`. chord_x_init() of this header gives a chord_x_t
// with its size and its defaults filled in; a binding from another language, which has no inline
// functions, calls chord_defaults. Zero is not the default of every field: of chord_options_t's
// device, say. Structs that the library fills have to be initialised, too. A size that an
// older release of this header had is accepted, and what it lacks has its default. A larger struct
// (of a newer header) is accepted if every byte behind the known ones is zero. Any other size is
// refused with the numbers. Structs inside structs have reserved words instead of a size; these are
// written as zero. A reserved word of a struct that the library reads has to be zero.
//
// Results. Every function that can fail returns chord_status_t; outputs are written on success
// only, unless said otherwise. No exception leaves the library; it never ends the process and
// prints nothing but its log. Pointers are required unless a comment says "NULL"; a missing one is
// refused by its name. Callbacks must return: no longjmp and no exception may leave them.
//
// Threads. chord_create and chord_destroy of one handle must not run beside anything else that uses
// that handle; different handles are independent. All other functions are safe from several threads
// on the same handle, plan, kernel or report; only the thread that destroys an object must be the
// last to use it. The last error belongs to the calling thread.
//
// Processes. After fork() the child may plan with the handles that it inherited. It may prepare and
// launch only if the parent had not touched CUDA: the driver does not survive a fork.
//
// Tensors are contiguous and row-major; sizes are in elements unless a name says bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CHORD_C_API __attribute__((visibility("default")))
#else
#define CHORD_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// --- Version

#define CHORD_VERSION_MAJOR 0
#define CHORD_VERSION_MINOR 1
#define CHORD_VERSION_PATCH 0
#define CHORD_VERSION \
  (CHORD_VERSION_MAJOR * 10000 + CHORD_VERSION_MINOR * 100 + CHORD_VERSION_PATCH)
// Grows when a function or the meaning of a field goes; what is added does not change it.
#define CHORD_ABI_VERSION 1

// Of the library that is loaded; compare with the macros of the header that was compiled against.
CHORD_C_API int32_t chord_version(void);           // as CHORD_VERSION: 0.1.0 is 100
CHORD_C_API const char* chord_version_text(void);  // "0.1.0"
CHORD_C_API int32_t chord_abi_version(void);       // as CHORD_ABI_VERSION

// --- Status

typedef enum chord_status {
  CHORD_SUCCESS = 0,
  CHORD_ERROR_INVALID_ARGUMENT = 1,  // the caller's value can not be right
  CHORD_ERROR_UNSUPPORTED = 2,       // legal, but this library or device does not do it
  CHORD_ERROR_NOT_FOUND = 3,         // a file, library, symbol or entry that was named is not there
  CHORD_ERROR_UNAVAILABLE = 4,       // no GPU, no driver, no compiler on this machine
  CHORD_ERROR_COMPILE_FAILED = 5,    // NVRTC or ptxas refused the source
  CHORD_ERROR_CACHE_MISS = 6,        // compiling is forbidden and the cache lacks the kernel
  CHORD_ERROR_IO = 7,                // the file system answered with an error
  CHORD_ERROR_CORRUPT = 8,           // bytes that are not what they claim to be
  CHORD_ERROR_DRIVER = 9,            // a CUDA driver call failed
  CHORD_ERROR_NOT_PREPARED = 10,     // launch of something that prepare has not seen
  CHORD_ERROR_INTERNAL = 11,         // a fault of this library
  CHORD_ERROR_OUT_OF_MEMORY = 12     // host memory
} chord_status_t;

// "invalid_argument"; "unknown" for a value that is none of them.
CHORD_C_API const char* chord_status_name(chord_status_t status);
// What it means, in one sentence.
CHORD_C_API const char* chord_status_text(chord_status_t status);

typedef struct chord_error {
  size_t struct_size;  // of the library that is loaded
  chord_status_t status;
  int32_t reserved;
  const char* asked;    // the function, and what it was to do
  const char* found;    // what stood in the way
  const char* help;     // what to do about it; may be ""
  const char* message;  // all of it: "asked: found (help)"
} chord_error_t;

// The last error of this thread. Calls that succeed leave it alone; its texts live until the next
// call of this thread that fails, or until the thread ends. Before any failure: CHORD_SUCCESS and
// empty texts. Never NULL.
CHORD_C_API const chord_error_t* chord_last_error(void);

// --- Handle

typedef struct chord_handle* chord_handle_t;

typedef enum chord_log_level {
  CHORD_LOG_DEFAULT = 0,  // CHORD_LOG, else warn
  CHORD_LOG_DEBUG = 1,
  CHORD_LOG_INFO = 2,
  CHORD_LOG_WARN = 3,
  CHORD_LOG_ERROR = 4,
  CHORD_LOG_OFF = 5
} chord_log_level_t;

// `text` lives for the call only. Called from whichever thread has something to say, from several
// at a time; must not call this library. It and `user` live until chord_destroy has returned.
typedef void (*chord_log_callback_t)(chord_log_level_t level, const char* text, void* user);

typedef enum chord_jit {
  CHORD_JIT_DEFAULT = 0,  // CHORD_JIT, else allow
  CHORD_JIT_ALLOW = 1,    // what the cache lacks is compiled
  CHORD_JIT_WARN = 2,     // and a warning logged
  CHORD_JIT_NEVER = 3     // CHORD_ERROR_CACHE_MISS
} chord_jit_t;

typedef enum chord_signatures {
  CHORD_SIGNATURES_DEFAULT = 0,       // CHORD_SIGNATURES, else accept-local
  CHORD_SIGNATURES_ACCEPT_LOCAL = 1,  // folders of this machine are trusted by owner and mode
  CHORD_SIGNATURES_REQUIRED = 2       // they must be signed, too
} chord_signatures_t;

typedef enum chord_compile_at {
  CHORD_COMPILE_DEFAULT = 0,  // CHORD_COMPILE, else local
  CHORD_COMPILE_LOCAL = 1,    // by the NVRTC of this machine
  CHORD_COMPILE_FARM = 2      // by the farm of the remote store, else locally
} chord_compile_at_t;

typedef enum chord_choice {
  CHORD_CHOICE_DEFAULT = 0,
  CHORD_CHOICE_YES = 1,
  CHORD_CHOICE_NO = 2
} chord_choice_t;

typedef enum chord_policy {
  CHORD_POLICY_MEASURED = 0,  // kernel fields as they were measured best
  CHORD_POLICY_PUBLISHED = 1  // as near to the published schedule as the kernels come
} chord_policy_t;

// What is 0 or NULL comes from its CHORD_* variable (chord/options.h lists them, read when the
// handle is created), else it has its default. Texts are copied.
typedef struct chord_options {
  size_t struct_size;
  // The GPU of this handle, as the CUDA driver counts them. With 0 or more, every call that touches
  // a GPU refuses a current CUDA context of another one. -1, the default: such calls work in
  // whichever context is current, and nothing else needs a GPU or a driver. Other values are
  // refused.
  int32_t device;
  chord_policy_t policy;
  chord_jit_t jit;
  chord_log_level_t log_level;
  chord_log_callback_t log;  // NULL: standard error
  void* log_user;            // handed to `log`
  const char* cache_dir;     // writable folder; CHORD_CACHE_DIR
  // Folders that are read after it; CHORD_CACHE_READONLY_DIRS when NULL. None: any other pointer
  // and a count of 0.
  const char* const* readonly_cache_dirs;
  size_t readonly_cache_dir_count;
  uint64_t max_cache_bytes;     // bounds of cache_dir; CHORD_CACHE_MAX_BYTES, 2 GiB
  uint64_t max_cache_files;     // CHORD_CACHE_MAX_FILES, 20000
  int64_t max_cache_age_days;   // CHORD_CACHE_MAX_AGE_DAYS; negative: no bound, whatever that says
  const char* nvrtc_library;    // file or folder, opened to compile only; CHORD_NVRTC_LIBRARY
  const char* remote;           // URL of a shared store; CHORD_REMOTE; "": none, whatever that says
  chord_choice_t remote_write;  // CHORD_REMOTE_WRITE
  chord_compile_at_t compile_at;
  int64_t remote_deadline_ms;   // of one call; CHORD_REMOTE_DEADLINE_MS, 1000
  const char* remote_password;  // CHORD_REMOTE_PASSWORD, CHORD_REMOTE_PASSWORD_FILE
  const char* remote_token;     // CHORD_REMOTE_TOKEN, CHORD_REMOTE_TOKEN_FILE
  const char* trusted_keys;     // file; CHORD_TRUSTED_KEYS
  const char* signing_key;      // file; CHORD_SIGNING_KEY
  const char* manifest;         // file of a deployment that has to be covered; CHORD_MANIFEST
  chord_signatures_t signatures;
  int32_t reserved;
  int64_t farm_deadline_ms;  // CHORD_FARM_DEADLINE_MS, 60000
  // For another process's compile of the same kernel, at most 3600000 (an hour); 0: 120000.
  int64_t compile_wait_ms;
} chord_options_t;

// `options` may be NULL: all defaults, no device. Opens the cache; needs no GPU, no driver and no
// compiler. Errors: options that can not be, a cache folder that was asked for and can not be one,
// a manifest that is not covered where compiling is forbidden (CHORD_ERROR_CACHE_MISS).
CHORD_C_API chord_status_t chord_create(const chord_options_t* options, chord_handle_t* handle);

// NULL is legal. No pack that it enqueued may be in flight: the packer is unloaded with the handle.
// Plans, kernels and reports stay usable: a plan and a report are values, and a
// kernel keeps its loaded code, so that it can be launched until it is destroyed itself.
CHORD_C_API void chord_destroy(chord_handle_t handle);

// The writable cache folder; "" where there is none. Copies at most `capacity` bytes into `text`;
// `needed` gets the bytes with the final zero. `text` NULL with capacity 0 asks for `needed` alone;
// a capacity that is too small is refused, with `needed` written.
CHORD_C_API chord_status_t chord_cache_dir(chord_handle_t handle, char* text, size_t capacity,
                                           size_t* needed);

typedef enum chord_arch {
  CHORD_ARCH_SM_90A = 0,   // H100, H200
  CHORD_ARCH_SM_100A = 1,  // B200
  CHORD_ARCH_SM_103A = 2   // B300
} chord_arch_t;

typedef struct chord_device {
  size_t struct_size;
  int32_t ordinal;
  chord_arch_t arch;
  int32_t num_sms;
  int32_t reserved;
  char name[64];  // cut to fit
} chord_device_t;

// The GPU of the current CUDA context: what descriptors want as `arch` and `num_sms`. Errors:
// CHORD_ERROR_UNAVAILABLE (no driver, no context is current), CHORD_ERROR_UNSUPPORTED (another
// architecture), CHORD_ERROR_INVALID_ARGUMENT (not the handle's GPU).
CHORD_C_API chord_status_t chord_device_query(chord_handle_t handle, chord_device_t* device);

// --- Models

typedef enum chord_family {
  CHORD_FAMILY_INDEXED = 0,             // sorted_ids, expert_ids, num_tokens_padded
  CHORD_FAMILY_GROUPED_CONTIGUOUS = 1,  // rows of one expert lie together
  CHORD_FAMILY_GROUPED_MASKED = 2       // a slab of max_m rows per expert
} chord_family_t;

typedef enum chord_role {
  CHORD_ROLE_NONE = 0,  // of a GEMM: its profile's own; of a layer: decode
  CHORD_ROLE_DECODE = 1,
  CHORD_ROLE_PREFILL = 2,
  CHORD_ROLE_MIX = 3
} chord_role_t;

// What becomes of a GEMM's sums before they are rounded to BF16.
typedef enum chord_epilogue {
  CHORD_EPILOGUE_NONE = 0,
  // silu(gate) * up: n / 2 output columns, of a weight packed in CHORD_ROWS_GATE_UP; for gate/up.
  CHORD_EPILOGUE_SWIGLU = 1,
  CHORD_EPILOGUE_WEIGHTED = 2  // every output row times its row_weights; for down
} chord_epilogue_t;

typedef enum chord_shard_axis {
  CHORD_SHARD_EXPERT = 0,  // experts / ways
  CHORD_SHARD_TENSOR = 1   // every expert, intermediate size / ways
} chord_shard_axis_t;

// What shapes a model's MoE layers, as in its Hugging Face config.json.
typedef struct chord_model {
  size_t struct_size;
  char name[64];  // built-in name or model_type; cut to fit; a label only
  int64_t hidden_size;
  int64_t moe_intermediate_size;
  int64_t n_routed_experts;
  int64_t num_experts_per_tok;
  int64_t n_shared_experts;
  int64_t num_hidden_layers;
  int64_t first_k_dense_replace;
} chord_model_t;

// One MoE layer of a sharded model at one routing size.
typedef struct chord_layer_descriptor {
  size_t struct_size;
  chord_family_t family;
  chord_arch_t arch;
  int32_t num_sms;  // 0: 132 on SM90, 148 on Blackwell
  chord_role_t role;
  chord_shard_axis_t shard_axis;
  int32_t shard_ways;
  int64_t experts;  // held by this GPU
  int64_t top_k;
  int64_t gate_up_n;  // multiples of 64
  int64_t gate_up_k;
  int64_t down_n;
  int64_t down_k;
  int64_t rows;        // routed rows: tokens * top_k (indexed), rows of the tensor (contiguous)
  int64_t max_m;       // grouped_masked: rows of one expert's slab
  int64_t expected_m;  // grouped_masked: rows expected per expert, a hint; > 0
  int32_t block_m;     // an engine's routing alignment, honoured if given; 0: decided
  chord_epilogue_t gate_up_epilogue;  // none or swiglu
  chord_epilogue_t down_epilogue;     // none or weighted
  int32_t reserved;
} chord_layer_descriptor_t;

// The built-in names from index 0 on; NULL behind the last.
CHORD_C_API const char* chord_model_name(size_t index);
// CHORD_ERROR_NOT_FOUND, with the known names, for another one.
CHORD_C_API chord_status_t chord_model_builtin(const char* name, chord_model_t* model);
// `json` is the text of a config.json, `bytes` long, no final zero needed; `origin` names the file
// in errors, NULL: "config.json". Refuses weights that are not INT4, symmetric, group 32,
// pack-quantized, naming what it found.
CHORD_C_API chord_status_t chord_model_read(const char* json, size_t bytes, const char* origin,
                                            chord_model_t* model);
// Fills experts, top_k, N and K of both projections; family, arch, role and rows are set to their
// defaults, for the caller to change. Refuses ways that do not divide the model, and all but powers
// of two in 4..32 (CHORD_SHARD_EXPERT) or 2..16 (CHORD_SHARD_TENSOR).
CHORD_C_API chord_status_t chord_model_shard(const chord_model_t* model, chord_shard_axis_t axis,
                                             int32_t ways, chord_layer_descriptor_t* layer);

// --- Plans: pure functions of descriptor and options; no GPU, no driver, no compiler

// One expert GEMM: out[r, n] = bf16(sum_k x[src(r), k] * w[expert(r), n, k]).
typedef struct chord_gemm_descriptor {
  size_t struct_size;
  chord_family_t family;
  chord_arch_t arch;
  int32_t num_sms;    // 0: 132 on SM90, 148 on Blackwell
  int32_t block_m;    // an engine's routing alignment, honoured if given; 0: decided
  chord_role_t role;  // indexed
  chord_epilogue_t epilogue;
  int64_t n;           // output columns of one expert; a multiple of 64
  int64_t k;           // depth; a multiple of 64
  int64_t experts;     // held by this GPU
  int64_t rows;        // indexed: routed rows; grouped_contiguous: rows of the tensor
  int64_t max_m;       // grouped_masked: rows of one expert's slab
  int64_t expected_m;  // grouped_masked: rows expected per expert, a hint; > 0
  // indexed: required, a published profile of chord_profile_name, "h200_decode_ep8"; else NULL.
  const char* profile;
} chord_gemm_descriptor_t;

// The published profiles from index 0 on; NULL behind the last. chord_plan_layer chooses by itself.
CHORD_C_API const char* chord_profile_name(size_t index);

typedef enum chord_origin {
  CHORD_ORIGIN_OVERRIDE = 0,  // CHORD_W4A16_*
  CHORD_ORIGIN_MEASURED = 1,
  CHORD_ORIGIN_RULE = 2,
  CHORD_ORIGIN_FALLBACK = 3  // a shape that nobody has measured
} chord_origin_t;

// What the published rules answer. 0 for a field that the family does not have.
typedef struct chord_published_schedule {
  int32_t block_m;
  int32_t block_n;
  int32_t block_k;
  int32_t num_stages;
  int32_t ctas_per_sm;  // indexed
  int32_t swap_ab;      // indexed; 0 or 1
  int32_t stream_k;     // indexed; 0 or 1
  int32_t cluster_m;    // grouped
  int32_t cluster_n;    // grouped
  int32_t reserved[3];
  int64_t smem_bytes;  // grouped; of the published kernel, never what a launch asks for
  int64_t reserved_bytes;
} chord_published_schedule_t;

typedef enum chord_mainloop {
  CHORD_MAINLOOP_MMA = 0,
  CHORD_MAINLOOP_WGMMA = 1,
  CHORD_MAINLOOP_RESIDENT = 2
} chord_mainloop_t;

typedef enum chord_dequantisation {
  CHORD_DEQUANTISATION_FUSED = 0,
  CHORD_DEQUANTISATION_ORDINARY = 1,
  CHORD_DEQUANTISATION_ACCUMULATOR = 2
} chord_dequantisation_t;

typedef enum chord_split {
  CHORD_SPLIT_WHOLE_TILES = 0,
  CHORD_SPLIT_EVEN = 1,
  CHORD_SPLIT_AUTOMATIC = 2
} chord_split_t;

typedef enum chord_release {
  CHORD_RELEASE_ELECTED_LANE = 0,
  CHORD_RELEASE_EVERY_LANE = 1
} chord_release_t;

// The kernel that runs; chord/abi/schedule.h says what the fields do.
typedef struct chord_kernel_schedule {
  chord_mainloop_t mainloop;
  int32_t block_m;  // rows of one routing block (indexed): the caller aligns its routing to it
  int32_t tile_m;
  int32_t tile_n;
  int32_t widths;
  int32_t width_step;
  int32_t slices_per_stage;
  int32_t stages;
  chord_dequantisation_t dequantisation;
  chord_split_t split;
  chord_release_t release;
  chord_epilogue_t epilogue;
  int32_t reserved[4];
} chord_kernel_schedule_t;

typedef struct chord_plan* chord_plan_t;

typedef struct chord_plan_info {
  size_t struct_size;
  chord_origin_t origin;
  int32_t block_m;  // of the kernel that runs
  int32_t threads;  // of one CTA
  int32_t reserved;
  int64_t shared_bytes;  // dynamic, of one CTA
  chord_published_schedule_t published;
  chord_kernel_schedule_t kernel;
} chord_plan_info_t;

typedef enum chord_format {
  CHORD_FORMAT_TEXT = 0,  // for people: ASCII, 100 columns
  CHORD_FORMAT_JSON = 1
} chord_format_t;

// Errors: CHORD_ERROR_INVALID_ARGUMENT with the numbers, for N or K that is not a multiple of 64
// and whatever else can not be.
CHORD_C_API chord_status_t chord_plan_gemm(chord_handle_t handle,
                                           const chord_gemm_descriptor_t* descriptor,
                                           chord_plan_t* plan);
// Both projections of a layer: they share one routing, hence one block_m. `block_m` may be NULL.
CHORD_C_API chord_status_t chord_plan_layer(chord_handle_t handle,
                                            const chord_layer_descriptor_t* layer,
                                            chord_plan_t* gate_up, chord_plan_t* down,
                                            int32_t* block_m);
CHORD_C_API void chord_plan_destroy(chord_plan_t plan);  // NULL is legal

CHORD_C_API chord_status_t chord_plan_get_info(chord_plan_t plan, chord_plan_info_t* info);
// The descriptor with every default filled in; `profile` lives as long as the plan, never NULL.
CHORD_C_API chord_status_t chord_plan_get_descriptor(chord_plan_t plan,
                                                     chord_gemm_descriptor_t* descriptor);
// What one launch needs as scratch on a GPU of `num_sms` SMs, 0: of the descriptor; `flag_bytes` at
// its start have to be zeroed once, when it is allocated. The same as chord_kernel_get_info says,
// and no GPU is needed.
CHORD_C_API chord_status_t chord_plan_workspace(chord_plan_t plan, int32_t num_sms, size_t* bytes,
                                                size_t* flag_bytes);
// Why it was decided so, what the kernel does not honour, its key and whether the cache has it,
// predicted time and floors. Looks into the cache, compiles nothing. Buffer as of chord_cache_dir.
CHORD_C_API chord_status_t chord_plan_explain(chord_handle_t handle, chord_plan_t plan,
                                              chord_format_t format, char* text, size_t capacity,
                                              size_t* needed);

// One row of a schedule table: what is decided for rows in (min_rows, max_rows]; grouped_masked:
// for that expected_m.
typedef struct chord_table_row {
  size_t struct_size;
  int64_t min_rows;
  int64_t max_rows;
  chord_origin_t origin;
  int32_t reserved;
  chord_published_schedule_t published;
  chord_kernel_schedule_t kernel;
} chord_table_row_t;

// All rows of a descriptor, whose own rows and expected_m do not matter: they cover (0, 2^30]
// without a hole. `rows` NULL with capacity 0 asks for `count` alone; a capacity that is too small
// is refused, with `count` written. Only rows[0] has to be initialised: its struct_size is that of
// every row.
CHORD_C_API chord_status_t chord_schedule_table(chord_handle_t handle,
                                                const chord_gemm_descriptor_t* descriptor,
                                                chord_table_row_t* rows, size_t capacity,
                                                size_t* count);

// --- Weights

typedef enum chord_code_source {
  CHORD_CODES_I32 = 0,           // [experts, n, k] int32, 0..15, value = code - 8
  CHORD_CODES_U8 = 1,            // [experts, n, k] uint8
  CHORD_CODES_WORDS = 2,         // [experts, n, k / 8] int32, element i at bits 4i..4i+3
  CHORD_CODES_WORDS_K_MAJOR = 3  // [experts, k / 8, n] int32
} chord_code_source_t;

typedef enum chord_scale_source {
  CHORD_SCALES_ROW_MAJOR = 0,  // [experts, n, k / 32]
  CHORD_SCALES_K_MAJOR = 1     // [experts, k / 32, n]
} chord_scale_source_t;

// Checkpoint tensors: in device memory for chord_pack, in host memory for chord_pack_host.
typedef struct chord_weight_source {
  size_t struct_size;
  const void* codes;       // 4-byte aligned; any address for CHORD_CODES_U8
  const uint16_t* scales;  // BF16, 2-byte aligned
  chord_code_source_t code_source;
  chord_scale_source_t scale_source;
} chord_weight_source_t;

// Which row of the checkpoint a packed row holds.
typedef enum chord_row_order {
  CHORD_ROWS_PLAIN = 0,  // the same
  // n / 2 gate rows, then n / 2 up rows, interleaved: a kernel of CHORD_EPILOGUE_SWIGLU wants them
  // so, and no other kernel takes them.
  CHORD_ROWS_GATE_UP = 1
} chord_row_order_t;

// A packed weight and its tag; a kernel refuses another version or shape before it is launched.
typedef struct chord_packed_weight {
  size_t struct_size;
  void* codes;   // chord_packed_bytes' weight_bytes, 16-byte aligned
  void* scales;  // its scale_bytes, 16-byte aligned
  int64_t experts;
  int64_t n;
  int64_t k;
  int32_t layout_version;  // chord_packed_weight_init gives the one of this header: 1
  chord_row_order_t row_order;
} chord_packed_weight_t;

#define CHORD_PACKED_LAYOUT_VERSION 1

// A status word that no refused scale has been written to.
#define CHORD_PACK_CLEAN UINT64_MAX

// Bytes of both parts; `codes` and `scales` are not looked at. Refuses N or K that is not a
// multiple of 64 and experts < 1, with the numbers.
CHORD_C_API chord_status_t chord_packed_bytes(const chord_packed_weight_t* weight,
                                              size_t* weight_bytes, size_t* scale_bytes);
// Enqueues on the stream of the current context and returns: sources, outputs and handle have to
// live until the stream has come past it. May compile the packer at its first use. `status`
// is one device word, 8-byte aligned: it gets CHORD_PACK_CLEAN or the first scale that can not be
// packed. Read it back and give it to chord_pack_check.
CHORD_C_API chord_status_t chord_pack(chord_handle_t handle, const chord_weight_source_t* source,
                                      const chord_packed_weight_t* weight, uint64_t* status,
                                      void* stream);
// CHORD_ERROR_INVALID_ARGUMENT with expert, row, group and value, unless the word is
// CHORD_PACK_CLEAN.
CHORD_C_API chord_status_t chord_pack_check(uint64_t status, const chord_packed_weight_t* weight);
// The same bytes, on the CPU; all pointers are host memory. Refuses codes above 15 and scales that
// are not finite, are 2^9 or more, or non-zero below 2^-112 in magnitude, naming the first;
// `weight` is unspecified then.
CHORD_C_API chord_status_t chord_pack_host(const chord_weight_source_t* source,
                                           const chord_packed_weight_t* weight);

// --- Kernels

typedef struct chord_kernel* chord_kernel_t;

// The texts live as long as the kernel.
typedef struct chord_kernel_info {
  size_t struct_size;
  const char* key;       // name of its entry in the cache
  const char* compiler;  // "NVRTC 13.0.88"
  double compile_ms;     // when it was compiled, wherever that was
  size_t workspace_bytes;
  size_t workspace_flag_bytes;  // at its start; zeroed once by the caller, zero after every launch
  int64_t shared_bytes;         // dynamic, of one CTA
  int32_t block_m;
  int32_t ctas;
  int32_t threads;
  int32_t registers;    // of one thread
  int32_t local_bytes;  // spills and stack of one thread
  int32_t reserved;
} chord_kernel_info_t;

// Reads the cache or compiles (seconds), loads into the current CUDA context. Errors:
// CHORD_ERROR_UNAVAILABLE (no driver, no current context, nothing to compile with),
// CHORD_ERROR_CACHE_MISS, CHORD_ERROR_COMPILE_FAILED, CHORD_ERROR_DRIVER,
// CHORD_ERROR_INVALID_ARGUMENT (a plan for another architecture, not the handle's GPU).
CHORD_C_API chord_status_t chord_prepare(chord_handle_t handle, chord_plan_t plan,
                                         chord_kernel_t* kernel);
// Plans and prepares; a descriptor that was seen before costs one look-up.
CHORD_C_API chord_status_t chord_prepare_gemm(chord_handle_t handle,
                                              const chord_gemm_descriptor_t* descriptor,
                                              chord_kernel_t* kernel);
// One more owner: as many chord_kernel_destroy calls as owners. NULL is legal for both.
CHORD_C_API void chord_kernel_retain(chord_kernel_t kernel);
// With the last owner the code is unloaded, unless the handle still lives: it keeps what it loaded
// until it is destroyed. No launch may be in flight, and no CUDA graph that captured one may be
// launched again: a graph, instantiated or not, does not keep the code.
CHORD_C_API void chord_kernel_destroy(chord_kernel_t kernel);
CHORD_C_API chord_status_t chord_kernel_get_info(chord_kernel_t kernel, chord_kernel_info_t* info);
// What it was planned as, as a plan of its own.
CHORD_C_API chord_status_t chord_kernel_get_plan(chord_kernel_t kernel, chord_plan_t* plan);

// --- Launching: allocates nothing, takes no lock, reads no file, does not synchronise (unless
// `checked`); legal in graph capture. All pointers inside the structs but `weight` are device
// memory.

typedef struct chord_gemm_arguments {
  size_t struct_size;
  const void* activations;  // BF16 [rows, k], 16-byte aligned
  // BF16 [rows, n], with CHORD_EPILOGUE_SWIGLU [rows, n / 2], 16-byte aligned; rows that nobody
  // owns stay as they are.
  void* output;
  const chord_packed_weight_t* weight;  // host struct, read during the call
  // CHORD_EPILOGUE_WEIGHTED: one per output row, so num_ids (indexed), rows (contiguous) or
  // experts * max_m (masked) of them; NULL for every other kernel.
  const float* row_weights;
  void* workspace;  // 256-byte aligned; one per stream that launches at the same time
  size_t workspace_bytes;
  // 1: synchronise, read the routing back and refuse what is wrong; not in capture.
  int32_t checked;
  int32_t programmatic_dependent_launch;  // 1: may begin before the kernel in front of it has ended
} chord_gemm_arguments_t;

// vLLM's moe_align_block_size. Per block of block_m: valid ids (0 <= id < num_ids) first, then
// sentinels >= num_ids. A block whose expert is outside [0, experts) is skipped. Output row = id.
typedef struct chord_indexed_routing {
  size_t struct_size;
  const int32_t* sorted_ids;         // [capacity], 16-byte aligned
  const int32_t* expert_ids;         // [ceil(capacity / block_m)]
  const int32_t* num_tokens_padded;  // [1]
  int64_t capacity;                  // ids that sorted_ids can hold
  int64_t num_ids;                   // tokens * top_k; activations have tokens rows
  int32_t top_k;                     // source row = id / top_k; 1 for the down projection
  int32_t reserved;
} chord_indexed_routing_t;

typedef enum chord_groups {
  CHORD_GROUPS_M_INDICES = 0,  // int32 [rows]: expert of each row, each expert padded to 128 rows,
                               // -1 on padding rows; 16-byte aligned
  CHORD_GROUPS_OFFSETS32 = 1,  // int32 [experts + 1]: where each expert's rows begin, no padding
  CHORD_GROUPS_OFFSETS64 = 2   // int64 [experts + 1]
} chord_groups_t;

typedef struct chord_contiguous_routing {
  size_t struct_size;
  const void* groups;  // as `spelling` says
  int64_t rows;        // of activations and output
  chord_groups_t spelling;
  int32_t reserved;
} chord_contiguous_routing_t;

// activations [experts, max_m, k], output [experts, max_m, n].
typedef struct chord_masked_routing {
  size_t struct_size;
  const int32_t* masked_m;  // [experts]: valid rows of each slab, clamped to [0, max_m]
  int64_t max_m;
} chord_masked_routing_t;

// `stream` is a CUstream or cudaStream_t of the current context; NULL: the legacy default stream.
// Errors, before anything is enqueued: a kernel of another family, a weight of another shape, a
// pointer that is NULL or not aligned, a workspace that is too small, another GPU's context (if the
// kernel comes from a handle with a device; else that is the caller's to see to).
CHORD_C_API chord_status_t chord_launch_indexed(chord_kernel_t kernel,
                                                const chord_gemm_arguments_t* arguments,
                                                const chord_indexed_routing_t* routing,
                                                void* stream);
CHORD_C_API chord_status_t chord_launch_contiguous(chord_kernel_t kernel,
                                                   const chord_gemm_arguments_t* arguments,
                                                   const chord_contiguous_routing_t* routing,
                                                   void* stream);
CHORD_C_API chord_status_t chord_launch_masked(chord_kernel_t kernel,
                                               const chord_gemm_arguments_t* arguments,
                                               const chord_masked_routing_t* routing, void* stream);

// --- Layer kernels: what stands around the two GEMMs of a MoE layer, for engines that have none of
// their own. All pointers inside the structs are device memory. Launches allocate nothing, do not
// synchronise and are legal in graph capture; same input, same bits. `stream` and
// programmatic_dependent_launch are as for the GEMMs.

typedef struct chord_layer_kernels* chord_layer_kernels_t;

// For the device of the current CUDA context; reads the cache or compiles. Errors as of
// chord_prepare. They outlive the handle, as kernels do.
CHORD_C_API chord_status_t chord_layer_kernels_prepare(chord_handle_t handle,
                                                       chord_layer_kernels_t* kernels);
// NULL is legal. No launch may be in flight; graphs are as of chord_kernel_destroy.
CHORD_C_API void chord_layer_kernels_destroy(chord_layer_kernels_t kernels);

typedef enum chord_logit_type { CHORD_LOGITS_F32 = 0, CHORD_LOGITS_BF16 = 1 } chord_logit_type_t;

typedef enum chord_scoring { CHORD_SCORING_SIGMOID = 0, CHORD_SCORING_SOFTMAX = 1 } chord_scoring_t;

// Chooses top_k experts of every token by score + correction bias; the lower index wins a tie. The
// weight of a route is its score without the bias, divided by the sum of the chosen scores if
// `renormalise`, times `scale`, which is finite and not 0. (Kimi K2: sigmoid, bias,
// renormalised, 2.827.)
typedef struct chord_gate_arguments {
  size_t struct_size;
  const void* logits;            // [tokens, experts], as logit_type says
  const float* correction_bias;  // [experts], or NULL
  int32_t* ids;                  // [tokens, top_k], or top_k + 1 with a shared slot
  float* weights;                // the same shape
  int64_t tokens;
  chord_logit_type_t logit_type;
  int32_t experts;  // of the model, 1 to 1024
  int32_t top_k;    // 1 to 32
  chord_scoring_t scoring;
  int32_t renormalise;  // 0 or 1; chord_gate_arguments_init sets 1
  float scale;          // chord_gate_arguments_init sets 1
  int32_t shared_slot;  // 1: a route more per token, the last: id `experts`, weight 1
  int32_t programmatic_dependent_launch;
} chord_gate_arguments_t;

CHORD_C_API chord_status_t chord_gate(chord_layer_kernels_t kernels,
                                      const chord_gate_arguments_t* arguments, void* stream);

// What becomes of routes to experts that expert_map calls -1.
typedef enum chord_foreign_experts {
  CHORD_FOREIGN_SKIP = 0,  // they take no block
  CHORD_FOREIGN_MARK = 1   // their blocks are there, with expert id -1
} chord_foreign_experts_t;

// Sorts routes by expert and pads every expert to blocks of block_m: what chord_indexed_routing_t
// wants. Ids of one expert are ascending, padding is num_ids. Ids outside [0, experts) take no row
// (-1: a token that is not there). Of sorted_ids and expert_ids nothing behind num_tokens_padded is
// written.
typedef struct chord_align_arguments {
  size_t struct_size;
  const int32_t* ids;          // [num_ids], num_ids = tokens * top_k
  const int32_t* expert_map;   // [experts]: index on this GPU, -1: elsewhere; NULL: all are here
  int32_t* sorted_ids;         // [capacity]
  int32_t* expert_ids;         // [ceil(capacity / block_m)]
  int32_t* num_tokens_padded;  // [1]
  void* workspace;             // chord_align_sizes' workspace_bytes, 16-byte aligned; scratch
  size_t workspace_bytes;
  int64_t num_ids;   // 0 or more; chord_align_sizes' capacity at most 2^31 - 1
  int64_t capacity;  // at least chord_align_sizes' capacity
  int32_t experts;   // of the model, 1 to 1024, a shared slot included
  int32_t block_m;   // of the plan: a multiple of 8 in 8..256
  chord_foreign_experts_t foreign;
  int32_t programmatic_dependent_launch;
} chord_align_arguments_t;

// `capacity`: the most ids that sorted_ids can have to hold, whatever the routing;
// `workspace_bytes`: 0 for few ids. Needs no GPU.
CHORD_C_API chord_status_t chord_align_sizes(int64_t num_ids, int32_t experts, int32_t block_m,
                                             int64_t* capacity, size_t* workspace_bytes);
CHORD_C_API chord_status_t chord_align(chord_layer_kernels_t kernels,
                                       const chord_align_arguments_t* arguments, void* stream);

// output[r, j] = silu(gate_up[r, j]) * gate_up[r, columns + j], in FP32, rounded once. Rows of
// routes that this GPU does not compute are neither read nor written: those whose id is outside
// [0, experts) or mapped to -1. rows * columns is below 2^34.
typedef struct chord_swiglu_arguments {
  size_t struct_size;
  const void* gate_up;        // BF16 [rows, 2 * columns], 16-byte aligned
  void* output;               // BF16 [rows, columns], 16-byte aligned
  const int32_t* ids;         // one per row; NULL: all rows count
  const int32_t* expert_map;  // [experts], or NULL
  int64_t rows;
  int32_t columns;  // a multiple of 8
  int32_t experts;  // of ids
  int32_t programmatic_dependent_launch;
  int32_t reserved;
} chord_swiglu_arguments_t;

CHORD_C_API chord_status_t chord_swiglu(chord_layer_kernels_t kernels,
                                        const chord_swiglu_arguments_t* arguments, void* stream);

// output[t] = sum over slots s of weights[t, s] * rows[t * slots + s], in FP32 and the order of the
// slots, rounded once; rows are left out as chord_swiglu does. A token none of whose routes count
// becomes zero. tokens * columns is below 2^34.
typedef struct chord_combine_arguments {
  size_t struct_size;
  const void* rows;           // BF16 [tokens * slots, columns], 16-byte aligned
  const float* weights;       // [tokens, slots]; NULL: rows that are weighted already
  void* output;               // BF16 [tokens, columns], 16-byte aligned
  const int32_t* ids;         // one per row; NULL: all rows count
  const int32_t* expert_map;  // [experts], or NULL
  int64_t tokens;
  int32_t slots;    // routes of a token: top_k, and one more with a shared slot; 1 to 64
  int32_t columns;  // a multiple of 8
  int32_t experts;  // of ids
  int32_t programmatic_dependent_launch;
} chord_combine_arguments_t;

CHORD_C_API chord_status_t chord_combine(chord_layer_kernels_t kernels,
                                         const chord_combine_arguments_t* arguments, void* stream);

// --- Prewarm: the kernels of a deployment into the cache; no GPU, no driver

// The lists are read during the call only; one that is NULL is {decode}, {sm_90a} or {indexed}.
typedef struct chord_deployment {
  size_t struct_size;
  const chord_model_t* model;
  chord_shard_axis_t shard_axis;
  int32_t shard_ways;  // as of chord_model_shard: powers of two, expert 4..32, tensor 2..16; 8
  const chord_role_t* roles;
  size_t role_count;
  const chord_arch_t* archs;
  size_t arch_count;
  const chord_family_t* families;
  size_t family_count;
  int64_t min_rows;  // 1: routed rows, rows of the tensor or expected_m, as of schedule tables
  int64_t max_rows;  // 2^30
  int32_t num_sms;   // 0: 132 on SM90, 148 on Blackwell
  chord_epilogue_t gate_up_epilogue;
  chord_epilogue_t down_epilogue;
  int32_t reserved;
} chord_deployment_t;

typedef struct chord_prewarm_progress {
  size_t struct_size;  // of the library that is loaded
  int64_t done;
  int64_t total;
  const char* key;    // the one that has just ended; "" if not known
  const char* label;  // "sm_90a indexed 4096x7168 block_m 8"
  double compile_ms;
  int32_t hit;     // 1: it was in the cache
  int32_t failed;  // 1: it could not be made
} chord_prewarm_progress_t;

// One call at a time, from the threads that compile, under a lock: must not call chord_prewarm.
// `progress` and its texts live for the call.
typedef void (*chord_prewarm_callback_t)(const chord_prewarm_progress_t* progress, void* user);

typedef struct chord_prewarm_options {
  size_t struct_size;
  int32_t dry_run;  // 1: only list the kernels
  int32_t check;    // 1: read and verify, compile nothing
  int32_t jobs;     // compiles at a time; 0: cores, bounded by memory
  int32_t reserved;
  const char* manifest;               // file to write; NULL: only the pin in the cache folder
  chord_prewarm_callback_t progress;  // NULL: nobody is told
  void* progress_user;                // handed to `progress`
} chord_prewarm_options_t;

typedef struct chord_report* chord_report_t;

typedef struct chord_report_info {
  size_t struct_size;
  int64_t keys;     // kernels of the deployment
  int64_t present;  // of these, in the cache: hits and compiles
  int64_t hits;
  int64_t compiles;
  int64_t failed;
  int64_t missing;     // not there at the end; chord_report_get_missing says which and why
  int64_t shared;      // written to the remote store, which lacked them
  int64_t not_shared;  // the remote store did not take them
  double seconds;
  const char* manifest;  // path of what was written, "" if nothing; lives as long as the report
} chord_report_info_t;

typedef struct chord_missing {
  size_t struct_size;
  const char* key;  // "" if not known
  const char* label;
  const char* reason;
} chord_missing_t;

// `options` may be NULL. A kernel that can not be made is no error of the call: the report counts
// and names it. Errors: a deployment that can not be, a cache folder that can not be written.
CHORD_C_API chord_status_t chord_prewarm(chord_handle_t handle,
                                         const chord_deployment_t* deployment,
                                         const chord_prewarm_options_t* options,
                                         chord_report_t* report);
CHORD_C_API chord_status_t chord_report_get_info(chord_report_t report, chord_report_info_t* info);
// 0 <= index < missing; the texts live as long as the report.
CHORD_C_API chord_status_t chord_report_get_missing(chord_report_t report, int64_t index,
                                                    chord_missing_t* missing);
CHORD_C_API void chord_report_destroy(chord_report_t report);  // NULL is legal

// --- Counters of the handle's cache, since it was created

typedef struct chord_cache_counters {
  size_t struct_size;
  uint64_t memory_hits;
  uint64_t disk_hits;
  uint64_t readonly_hits;
  uint64_t remote_hits;
  uint64_t misses;  // look-ups that no tier could answer
  uint64_t compiles;
  uint64_t waits;        // times another compile of the same kernel was waited for
  uint64_t bad_entries;  // set aside: damaged, wrong key, not trusted
  uint64_t write_failures;
  uint64_t evictions;
  uint64_t bytes_read;  // from folders and remote tiers
  uint64_t bytes_written;
} chord_cache_counters_t;

CHORD_C_API chord_status_t chord_cache_get_counters(chord_handle_t handle,
                                                    chord_cache_counters_t* counters);
// All counters, those of remote stores too, in the text format of Prometheus. Buffer as of
// chord_cache_dir.
CHORD_C_API chord_status_t chord_cache_metrics(chord_handle_t handle, char* text, size_t capacity,
                                               size_t* needed);

// --- Enums are four bytes: a compiler that chooses a smaller type (-fshort-enums) is refused

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L)
#ifdef __cplusplus
#define CHORD_FOUR_BYTES_(name) \
  static_assert(sizeof(chord_##name##_t) == 4, "chord.h wants enums of four bytes")
#else
#define CHORD_FOUR_BYTES_(name) \
  _Static_assert(sizeof(chord_##name##_t) == 4, "chord.h wants enums of four bytes")
#endif
CHORD_FOUR_BYTES_(status);
CHORD_FOUR_BYTES_(log_level);
CHORD_FOUR_BYTES_(jit);
CHORD_FOUR_BYTES_(signatures);
CHORD_FOUR_BYTES_(compile_at);
CHORD_FOUR_BYTES_(choice);
CHORD_FOUR_BYTES_(policy);
CHORD_FOUR_BYTES_(arch);
CHORD_FOUR_BYTES_(family);
CHORD_FOUR_BYTES_(role);
CHORD_FOUR_BYTES_(epilogue);
CHORD_FOUR_BYTES_(shard_axis);
CHORD_FOUR_BYTES_(origin);
CHORD_FOUR_BYTES_(mainloop);
CHORD_FOUR_BYTES_(dequantisation);
CHORD_FOUR_BYTES_(split);
CHORD_FOUR_BYTES_(release);
CHORD_FOUR_BYTES_(format);
CHORD_FOUR_BYTES_(code_source);
CHORD_FOUR_BYTES_(scale_source);
CHORD_FOUR_BYTES_(row_order);
CHORD_FOUR_BYTES_(groups);
CHORD_FOUR_BYTES_(logit_type);
CHORD_FOUR_BYTES_(scoring);
CHORD_FOUR_BYTES_(foreign_experts);
#undef CHORD_FOUR_BYTES_
#endif

// --- Initialisers: chord_x_init() gives a chord_x_t with its size and its defaults

// The same for bindings: writes the size and the defaults of the struct named "chord_options_t" and
// so on into `out`, all of its `struct_size` bytes, which are those of the caller's own
// declaration. Sizes are accepted as everywhere. Knows every struct that has a chord_x_init().
CHORD_C_API chord_status_t chord_defaults(const char* struct_name, void* out, size_t struct_size);

#ifdef __cplusplus
#define CHORD_ZEROED_(type) type()
#else
#define CHORD_ZEROED_(type) ((type){.struct_size = 0})
#endif
#define CHORD_INIT_(name, defaults)                           \
  static inline chord_##name##_t chord_##name##_init(void) {  \
    chord_##name##_t value = CHORD_ZEROED_(chord_##name##_t); \
    value.struct_size = sizeof value;                         \
    defaults;                                                 \
    return value;                                             \
  }

CHORD_INIT_(options, value.device = -1)
CHORD_INIT_(packed_weight, value.layout_version = CHORD_PACKED_LAYOUT_VERSION)
CHORD_INIT_(indexed_routing, value.top_k = 1)
CHORD_INIT_(deployment, value.shard_ways = 8; value.min_rows = 1; value.max_rows = 1 << 30)
CHORD_INIT_(gate_arguments, value.renormalise = 1; value.scale = 1.0f)
CHORD_INIT_(align_arguments, (void)0)
CHORD_INIT_(swiglu_arguments, (void)0)
CHORD_INIT_(combine_arguments, (void)0)
CHORD_INIT_(device, (void)0)
CHORD_INIT_(model, (void)0)
CHORD_INIT_(layer_descriptor, (void)0)
CHORD_INIT_(gemm_descriptor, (void)0)
CHORD_INIT_(plan_info, (void)0)
CHORD_INIT_(table_row, (void)0)
CHORD_INIT_(weight_source, (void)0)
CHORD_INIT_(kernel_info, (void)0)
CHORD_INIT_(gemm_arguments, (void)0)
CHORD_INIT_(contiguous_routing, (void)0)
CHORD_INIT_(masked_routing, (void)0)
CHORD_INIT_(prewarm_options, (void)0)
CHORD_INIT_(report_info, (void)0)
CHORD_INIT_(missing, (void)0)
CHORD_INIT_(cache_counters, (void)0)

#undef CHORD_INIT_
#undef CHORD_ZEROED_

#ifdef __cplusplus
}  // extern "C"
#endif
