// cuda_variant.c — Texts of a program that were compiled, by the launches they are for.
#include <string.h>

#include "kernel/cuda/source.h"
#include "kernel/fused/cuda_launch.h"

// Elements that 32 bits count, with room for a stride of the grid.
static bool is_wide(const weir_fused_launch_t* launch) { return launch->n > INT32_MAX; }

static bool fits(const weir_fused_variant_t* v, const weir_fused_launch_t* launch) {
  if (v->operand_count != launch->operand_count || v->result_count != launch->result_count ||
      v->is_wide != is_wide(launch) || v->reduced != launch->reduced ||
      v->is_row != launch->is_row ||
      memcmp(v->results, launch->results, sizeof(*v->results) * (size_t)v->result_count) != 0)
    return false;
  for (int i = 0; i < v->operand_count; ++i) {
    if (v->values[i] != launch->operands[i].value || v->kinds[i] != launch->operands[i].kind)
      return false;
  }
  return true;
}

static weir_fused_variant_t* find(weir_cuda_fused_t* code, const weir_fused_launch_t* launch) {
  // Acquire: pairs with the release in add.
  weir_fused_variant_t* v = atomic_load_explicit(&code->variants, memory_order_acquire);
  while (v && !fits(v, launch)) v = v->next;
  return v;
}

static weir_fused_variant_t* make(const weir_fused_launch_t* launch) {
  size_t operands = (size_t)launch->operand_count, results = (size_t)launch->result_count;
  weir_fused_variant_t* v =
      weir_calloc(1, sizeof(*v) + (operands + results) * sizeof(uint16_t) + operands);
  if (!v) return NULL;
  v->is_wide = is_wide(launch);
  v->is_row = launch->is_row;
  v->reduced = launch->reduced;
  v->operand_count = launch->operand_count;
  v->result_count = launch->result_count;
  v->results = (uint16_t*)(v + 1);
  v->values = v->results + results;
  v->kinds = (uint8_t*)(v->values + operands);
  memcpy(v->results, launch->results, results * sizeof(*v->results));
  for (size_t i = 0; i < operands; ++i) {
    v->values[i] = launch->operands[i].value;
    v->kinds[i] = launch->operands[i].kind;
  }
  return v;
}

static weir_status_t* add_locked(weir_cuda_fused_t* code, weir_device_t* device,
                                 const weir_fused_launch_t* launch,
                                 weir_fused_variant_t** out_variant) WEIR_REQUIRES(code->mu) {
  weir_strbuf_t text = {0};
  weir_fused_variant_t* v = make(launch);
  if (!v) return weir_out_of_memory();
  weir_status_t* status = weir_fused_write(code, v, &text);
  if (!status) status = weir_strbuf_finish(&text);
  if (!status && v->reduced != WEIR_FUSED_NO_VALUE)
    status = weir_cuda_reduce_build(device, &text, v->is_row, !v->is_row, &v->reduce);
  else if (!status) status = weir_cuda_build(device, &text, "", "fused", &v->function);
  weir_strbuf_free(&text);
  if (status) {
    weir_free(v);
    return status;
  }
  // Relaxed: writers hold the lock. Release: pairs with the acquire in find.
  v->next = atomic_load_explicit(&code->variants, memory_order_relaxed);
  atomic_store_explicit(&code->variants, v, memory_order_release);
  *out_variant = v;
  return NULL;
}

weir_status_t* weir_fused_variant(weir_cuda_fused_t* code, weir_device_t* device,
                                  const weir_fused_launch_t* launch,
                                  const weir_fused_variant_t** out_variant) {
  weir_fused_variant_t* v = find(code, launch);
  weir_status_t* status = NULL;
  if (!v) {
    weir_mutex_lock(&code->mu);
    v = find(code, launch);
    if (!v) status = add_locked(code, device, launch, &v);
    weir_mutex_unlock(&code->mu);
  }
  *out_variant = v;
  return status;
}
