// Plans a layer of Kimi K2.5 through the C interface.
#include <chord/chord.h>
#include <stdio.h>

static chord_status_t plan_kimi(chord_handle_t handle, int32_t* block_m) {
  chord_model_t model = chord_model_init();
  chord_layer_descriptor_t layer = chord_layer_descriptor_init();
  chord_plan_t gate_up = NULL, down = NULL;
  chord_status_t status = chord_model_builtin("kimi-k2.5", &model);
  if (status == CHORD_SUCCESS) status = chord_model_shard(&model, CHORD_SHARD_EXPERT, 8, &layer);
  layer.rows = 160;
  if (status == CHORD_SUCCESS) status = chord_plan_layer(handle, &layer, &gate_up, &down, block_m);
  chord_plan_destroy(gate_up);
  chord_plan_destroy(down);
  return status;
}

int main(void) {
  chord_options_t options = chord_options_init();
  chord_handle_t handle = NULL;
  int32_t block_m = 0;
  chord_status_t status;
  options.device = -1;
  status = chord_create(&options, &handle);
  if (status == CHORD_SUCCESS) status = plan_kimi(handle, &block_m);
  chord_destroy(handle);
  if (status != CHORD_SUCCESS) {
    fprintf(stderr, "%s\n", chord_last_error()->message);
    return 1;
  }
  printf("block_m %d\n", (int)block_m);
  return 0;
}
