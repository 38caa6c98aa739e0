// resize_pad_test.c — Images of a batch, resized and with a border: each its own.
#include "kernel/conv/resize_pad.h"

#include "testing/cmocka.h"

enum { MAX = 64 };

static void check(const weir_resize_pad_t* p, const float* in, const float* wanted, int count) {
  float out[MAX];
  double wide_in[MAX], wide_out[MAX];
  assert_null(weir_resize_pad(NULL, WEIR_DTYPE_FLOAT, p, in, out));
  for (int64_t i = 0; i < p->batch * p->in[0] * p->in[1] * p->channels; ++i) wide_in[i] = in[i];
  assert_null(weir_resize_pad(NULL, WEIR_DTYPE_DOUBLE, p, wide_in, wide_out));
  for (int i = 0; i < count; ++i) assert_true(out[i] == wanted[i] && wide_out[i] == wanted[i]);
}

static void test_borders(void** state) {
  (void)state;
  const float in[] = {1, 2, 3, 4, 5, 6};  // two images of 1 x 3
  weir_resize_pad_t p = {.batch = 2,
                         .channels = 1,
                         .in = {1, 3},
                         .resized = {1, 3},
                         .before = {0, 2},
                         .out = {1, 6},
                         .offset = 1};
  check(&p, in, (const float[]){3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5}, 12);
  p.offset = 0;
  check(&p, in, (const float[]){2, 1, 1, 2, 3, 3, 5, 4, 4, 5, 6, 6}, 12);
}

static void test_sizes(void** state) {
  (void)state;
  const float in[] = {0, 2, 4, 6, 1, 3, 5, 7};  // two images of 2 x 2
  weir_resize_pad_t p = {
      .batch = 2, .channels = 1, .in = {2, 2}, .resized = {2, 4}, .before = {0, 1}, .out = {2, 5}};
  check(&p, in, (const float[]){0, 0, 1, 2, 2, 4, 4, 5, 6, 6, 1, 1, 2, 3, 3, 5, 5, 6, 7, 7}, 20);
  p.resized[1] = 3;
  p.out[1] = 4;
  p.is_align_corners = true;
  check(&p, in, (const float[]){0, 0, 1, 2, 4, 4, 5, 6, 1, 1, 2, 3, 5, 5, 6, 7}, 16);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_borders), cmocka_unit_test(test_sizes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
