// events_test.c — What programs write for TensorBoard themselves: what is refused, and where.
// tests/tensorboard_test.py looks at what is shown.
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "testing/tensors.h"
#include "weir/weir.h"

typedef struct world_t {
  char directory[64];
  weir_events_t* events;
} world_t;

static int open_world(void** state) {
  world_t* w = calloc(1, sizeof(*w));
  strcpy(w->directory, "/tmp/weir_events_XXXXXX");
  assert_non_null(mkdtemp(w->directory));
  check_ok(weir_events_create(w->directory, &w->events));
  *state = w;
  return 0;
}

static int close_world(void** state) {
  world_t* w = *state;
  char command[128];
  check_ok(weir_events_close(w->events));
  snprintf(command, sizeof(command), "rm -rf '%s'", w->directory);
  assert_int_equal(system(command), 0);
  free(w);
  return 0;
}

static void test_tensors_that_cannot_be_shown(void** state) {
  world_t* w = *state;
  weir_tensor_t* row = FLOATS(1, 2, NAN, 4);
  check_error(weir_events_histogram(w->events, "h", row, 0), WEIR_INVALID_ARGUMENT, "Nan");
  check_error(weir_events_images(w->events, "i", row, 0, 0), WEIR_INVALID_ARGUMENT, "4-D");
  check_error(weir_events_sounds(w->events, "s", row, 8000, 0, 0), WEIR_INVALID_ARGUMENT, "2-D");
  check_error(weir_events_images(w->events, "i", row, -1, 0), WEIR_INVALID_ARGUMENT, "count is -1");
  check_error(weir_events_run_metadata(w->events, "step", "\x0a\xff", 2, 0), WEIR_INVALID_ARGUMENT,
              "RunMetadata");
  weir_tensor_release(row);
}

static void test_hyperparameters(void** state) {
  world_t* w = *state;
  const weir_hparam_t nameless = {.number = 1};
  const weir_hparam_t wordless = {"optimizer", WEIR_HPARAM_TEXT, .number = 1};
  check_error(weir_events_hparams(w->events, &nameless, 1), WEIR_INVALID_ARGUMENT, "has no name");
  check_error(weir_events_hparams(w->events, &wordless, 1), WEIR_INVALID_ARGUMENT, "'optimizer'");
  check_ok(weir_events_hparams(w->events, NULL, 0));
  check_ok(weir_events_hparams_end(w->events, false));
}

static bool has_file(const world_t* w, const char* name) {
  char path[128];
  snprintf(path, sizeof(path), "%s/%s", w->directory, name);
  return access(path, F_OK) == 0;
}

static void test_embeddings(void** state) {
  world_t* w = *state;
  static const char* const labels[] = {"a", "b\tc"};
  weir_projected_t p = {.variable = "table", .labels = labels, .label_count = 2};
  check_error(weir_projector_write(w->directory, &p, 1), WEIR_INVALID_ARGUMENT,
              "label 1 of 'table'");
  p.label_count = 0;
  check_error(weir_projector_write(w->directory, &p, 1), WEIR_INVALID_ARGUMENT, "0 of them");
  p = (weir_projected_t){.variable = "table", .sprite_path = "words.png", .sprite_width = 8};
  check_error(weir_projector_write(w->directory, &p, 1), WEIR_INVALID_ARGUMENT, "8 x 0");
  p = (weir_projected_t){.sprite_path = "words.png"};
  check_error(weir_projector_write(w->directory, &p, 1), WEIR_INVALID_ARGUMENT, "no variable");
  assert_false(has_file(w, "projector_config.pbtxt"));
  p = (weir_projected_t){.variable = "table", .labels = labels, .label_count = 1};
  check_ok(weir_projector_write(w->directory, &p, 1));
  assert_true(has_file(w, "projector_config.pbtxt") && has_file(w, "projector_labels_0.tsv"));
  check_error(weir_projector_write("/proc/nowhere", &p, 1), WEIR_NOT_FOUND, "/proc/nowhere");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_tensors_that_cannot_be_shown, open_world, close_world),
      cmocka_unit_test_setup_teardown(test_hyperparameters, open_world, close_world),
      cmocka_unit_test_setup_teardown(test_embeddings, open_world, close_world),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
