// cuda_pick.c — Launches of pick.cu.
#include "kernel/move/cuda_pick.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(pick);

enum { BLOCK = 256, CHUNK = 2048 };           // as pick.cu has them
enum { SCRATCH_TOTALS = 0, SCRATCH_STARTS };  // of an answer

weir_status_t* weir_cuda_pick_find(weir_device_t* device, const char* definitions,
                                   const char* choice, weir_cuda_pick_t* out) {
  const char* const names[] = {"pick_count", "pick_put"};
  weir_cuda_function_t* const found[] = {&out->count, &out->put};
  for (int i = 0; i < 2; ++i) {
    weir_strbuf_t text = {0};
    weir_strbuf_printf(&text, "%s%s", definitions, choice);
    WEIR_TRY(weir_cuda_build(device, &text, weir_cuda_source_pick, names[i], found[i]));
  }
  return weir_cuda_scan_find(device, WEIR_BINARY_ADD, WEIR_DTYPE_INT64, &out->scan);
}

static int64_t chunks_of(const weir_cuda_picks_t* s) { return (s->count + CHUNK - 1) / CHUNK; }

static weir_status_t* launch(weir_answer_t* answer, const weir_cuda_picks_t* s,
                             weir_cuda_function_t function, int scratch) {
  weir_device_t* device = answer->ctx->device;
  int64_t chunks = chunks_of(s), count = s->count;
  weir_cuda_size_t size = weir_cuda_size_for(device, chunks * BLOCK);
  return weir_cuda_launch(
      device, function, &size,
      WEIR_CUDA_ARGS((void*)s->choice, &count, &chunks, &answer->scratch[scratch]->data));
}

weir_status_t* weir_cuda_pick_count(weir_answer_t* answer, const weir_cuda_picks_t* s) {
  weir_kernel_ctx_t* ctx = answer->ctx;
  int64_t chunks = chunks_of(s), *number = NULL;
  void *totals = NULL, *starts = NULL;
  // After the last chunk comes one of nothing, which begins where all end.
  weir_scan_shape_t shape = {.outer = 1, .length = chunks + 1, .inner = 1, .is_exclusive = true};
  WEIR_TRY(weir_answer_numbers(answer, 1, &number));
  WEIR_TRY(weir_answer_scratch(answer, SCRATCH_TOTALS, WEIR_DTYPE_INT64, chunks + 1, 0, &totals));
  WEIR_TRY(weir_answer_scratch(answer, SCRATCH_STARTS, WEIR_DTYPE_INT64, chunks + 1, 0, &starts));
  WEIR_TRY(launch(answer, s, s->functions->count, SCRATCH_TOTALS));
  WEIR_TRY(weir_cuda_scan(ctx, &s->functions->scan, &shape, totals, starts));
  return weir_cuda_copy(ctx->device, number, (int64_t*)starts + chunks, sizeof(*number));
}

weir_status_t* weir_cuda_pick_put(weir_answer_t* answer, const weir_cuda_picks_t* s) {
  return launch(answer, s, s->functions->put, SCRATCH_STARTS);
}
