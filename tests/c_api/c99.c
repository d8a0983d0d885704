// A C99 program that uses the library; compiled with -std=c99 -Wall -Wextra -Wpedantic -Wpadded.
#include "tests/c_api/c99.h"

#include <stdlib.h>
#include <string.h>

#include "chord/chord.h"

#define CHECK(condition)                 \
  do {                                   \
    if (!(condition)) return #condition; \
  } while (0)
#define CALL(expression)                                                   \
  do {                                                                     \
    if ((expression) != CHORD_SUCCESS) return chord_last_error()->message; \
  } while (0)

static const char* plan_a_layer(chord_handle_t handle) {
  chord_model_t model = chord_model_init();
  chord_layer_descriptor_t layer = chord_layer_descriptor_init();
  chord_plan_info_t info = chord_plan_info_init();
  chord_plan_t gate_up = NULL, down = NULL;
  int32_t block_m = 0;
  size_t bytes = 0, flag_bytes = 0;
  CALL(chord_model_builtin("kimi-k2.5", &model));
  CALL(chord_model_shard(&model, CHORD_SHARD_EXPERT, 8, &layer));
  layer.rows = 160;
  CALL(chord_plan_layer(handle, &layer, &gate_up, &down, &block_m));
  CALL(chord_plan_get_info(down, &info));
  CHECK(info.block_m == block_m && block_m % 8 == 0);
  CALL(chord_plan_workspace(gate_up, 132, &bytes, &flag_bytes));
  CHECK(bytes >= flag_bytes && flag_bytes > 0);
  chord_plan_destroy(gate_up);
  chord_plan_destroy(down);
  return NULL;
}

static const char* read_a_table(chord_handle_t handle) {
  chord_gemm_descriptor_t descriptor = chord_gemm_descriptor_init();
  chord_table_row_t* rows = NULL;
  size_t count = 0;
  int64_t last = 0;
  descriptor.profile = "h200_decode_ep8";
  descriptor.n = 4096;
  descriptor.k = 7168;
  descriptor.experts = 48;
  descriptor.rows = 160;
  CALL(chord_schedule_table(handle, &descriptor, NULL, 0, &count));
  rows = (chord_table_row_t*)calloc(count, sizeof *rows);
  CHECK(rows != NULL);
  rows[0] = chord_table_row_init();
  CALL(chord_schedule_table(handle, &descriptor, rows, count, &count));
  last = rows[count - 1].max_rows;
  free(rows);
  CHECK(last == (int64_t)1 << 30);
  return NULL;
}

static const char* pack_zeros(void) {
  static const uint32_t words[64 * 64 / 8];
  static const uint16_t scales[64 * 64 / 32];
  chord_weight_source_t source = chord_weight_source_init();
  chord_packed_weight_t weight = chord_packed_weight_init();
  size_t weight_bytes = 0, scale_bytes = 0;
  source.codes = words;
  source.scales = scales;
  source.code_source = CHORD_CODES_WORDS;
  weight.experts = 1;
  weight.n = weight.k = 64;
  CALL(chord_packed_bytes(&weight, &weight_bytes, &scale_bytes));
  CHECK(weight_bytes == sizeof words && scale_bytes == sizeof scales);
  weight.codes = malloc(weight_bytes);
  weight.scales = malloc(scale_bytes);
  CALL(chord_pack_host(&source, &weight));
  CHECK(memcmp(weight.codes, words, weight_bytes) == 0);
  free(weight.codes);
  free(weight.scales);
  return NULL;
}

static void count_step(const chord_prewarm_progress_t* progress, void* user) {
  if (progress->done > 0) ++*(int*)user;
}

static const char* list_a_deployment(chord_handle_t handle) {
  chord_model_t model = chord_model_init();
  chord_deployment_t deployment = chord_deployment_init();
  chord_prewarm_options_t options = chord_prewarm_options_init();
  chord_report_info_t info = chord_report_info_init();
  chord_report_t report = NULL;
  int steps = 0;
  CALL(chord_model_builtin("kimi-k2.5", &model));
  deployment.model = &model;
  deployment.max_rows = 200;
  options.dry_run = 1;
  options.progress = count_step;
  options.progress_user = &steps;
  CALL(chord_prewarm(handle, &deployment, &options, &report));
  CALL(chord_report_get_info(report, &info));
  CHECK(info.keys > 0 && info.keys == info.missing && steps == info.keys);
  chord_report_destroy(report);
  return NULL;
}

static chord_status_t open_handle(const char* cache_dir, chord_handle_t* handle) {
  chord_options_t options = chord_options_init();
  options.cache_dir = cache_dir;
  return chord_create(&options, handle);
}

const char* c99_walk(const char* cache_dir) {
  chord_handle_t handle = NULL;
  const char* wrong = NULL;
  CHECK(chord_version() == CHORD_VERSION && chord_abi_version() == CHORD_ABI_VERSION);
  CALL(open_handle(cache_dir, &handle));
  wrong = plan_a_layer(handle);
  if (wrong == NULL) wrong = read_a_table(handle);
  if (wrong == NULL) wrong = pack_zeros();
  if (wrong == NULL) wrong = list_a_deployment(handle);
  chord_destroy(handle);
  return wrong;
}

const char* c99_wrong_enums(const char* cache_dir) {
  chord_handle_t handle = NULL;
  chord_model_t model = chord_model_init();
  chord_layer_descriptor_t layer = chord_layer_descriptor_init();
  chord_plan_t gate_up = NULL, down = NULL;
  size_t needed = 0;
  CALL(open_handle(cache_dir, &handle));
  CALL(chord_model_builtin("kimi-k2.5", &model));
  CHECK(chord_model_shard(&model, (chord_shard_axis_t)5, 8, &layer) ==
        CHORD_ERROR_INVALID_ARGUMENT);
  CHECK(strstr(chord_last_error()->message, "`axis` is 5") != NULL);
  CALL(chord_model_shard(&model, CHORD_SHARD_EXPERT, 8, &layer));
  layer.rows = 160;
  CALL(chord_plan_layer(handle, &layer, &gate_up, &down, NULL));
  CHECK(chord_plan_explain(handle, down, (chord_format_t)5, NULL, 0, &needed) ==
        CHORD_ERROR_INVALID_ARGUMENT);
  CHECK(strstr(chord_last_error()->message, "`format` is 5") != NULL);
  CHECK(strcmp(chord_status_name((chord_status_t)500), "unknown") == 0);
  chord_plan_destroy(gate_up);
  chord_plan_destroy(down);
  chord_destroy(handle);
  return NULL;
}
