// transfer_log.c — The tensors that a task fetched from others, for masters that trace.
#include "cluster/task/transfer_log.h"

#include "base/alloc.h"
#include "cluster/task/fields.h"
#include "wire/wire.h"

enum { MAX_SIZE = 4 << 20 };  // bytes kept; a master that never asks for them loses them all

void weir_transfer_log_init(weir_transfer_log_t* log) {
  *log = (weir_transfer_log_t){.steps = {.owns_keys = true}};
  weir_mutex_init(&log->mu);
}

void weir_transfer_log_free(weir_transfer_log_t* log) {
  weir_transfer_log_clear(log);
  weir_mutex_destroy(&log->mu);
}

void weir_transfer_log_switch(weir_transfer_log_t* log, bool is_on) {
  weir_mutex_lock(&log->mu);
  int wanted = atomic_load(&log->wanted);
  if (is_on) atomic_store(&log->wanted, wanted + 1);
  else if (wanted > 0) atomic_store(&log->wanted, wanted - 1);
  weir_mutex_unlock(&log->mu);
}

bool weir_transfer_log_is_on(weir_transfer_log_t* log) {
  return atomic_load_explicit(&log->wanted, memory_order_relaxed) > 0;  // late is as good
}

static void clear_locked(weir_transfer_log_t* log) WEIR_REQUIRES(log->mu) {
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&log->steps, &i));) {
    weir_strbuf_free(entry->value);
    weir_free(entry->value);
  }
  weir_map_free(&log->steps);
  log->steps = (weir_map_t){.owns_keys = true};
  log->size = 0;
}

void weir_transfer_log_clear(weir_transfer_log_t* log) {
  weir_mutex_lock(&log->mu);
  clear_locked(log);
  weir_mutex_unlock(&log->mu);
}

static weir_view_t key_of(const int64_t* step_id) {
  return weir_view((const char*)step_id, sizeof(*step_id));
}

// The stats of a step, made when there are none; NULL when memory is exhausted.
static weir_strbuf_t* find_step(weir_transfer_log_t* log, int64_t step_id) WEIR_REQUIRES(log->mu) {
  weir_strbuf_t* stats = weir_map_find(&log->steps, key_of(&step_id));
  if (stats) return stats;
  stats = weir_calloc(1, sizeof(*stats));
  weir_status_t* status = stats ? weir_map_put(&log->steps, key_of(&step_id), stats) : NULL;
  if (!status) return stats;
  weir_status_destroy(status);
  weir_free(stats);
  return NULL;
}

// A NodeExecStats "RecvTensor", labelled as TensorFlow's workers do.
static void put_node(const weir_transfer_t* transfer, weir_view_t source, weir_view_t destination,
                     weir_view_t name, weir_strbuf_t* out) {
  int64_t micros = WEIR_MAX(transfer->end_us - transfer->start_us, 1);
  weir_wire_put_string(out, NODE_EXEC_STATS_NODE_NAME, "RecvTensor");
  weir_wire_put_int(out, NODE_EXEC_STATS_ALL_START_MICROS, transfer->start_us);
  weir_wire_put_int(out, NODE_EXEC_STATS_OP_END_REL_MICROS, micros);
  weir_wire_put_int(out, NODE_EXEC_STATS_ALL_END_REL_MICROS, micros);
  size_t output = weir_wire_begin(out, NODE_EXEC_STATS_OUTPUT);
  size_t description = weir_wire_begin(out, NODE_OUTPUT_TENSOR_DESCRIPTION);
  size_t allocation = weir_wire_begin(out, TENSOR_DESCRIPTION_ALLOCATION_DESCRIPTION);
  weir_wire_put_int(out, ALLOCATION_DESCRIPTION_REQUESTED_BYTES, (int64_t)transfer->byte_size);
  weir_wire_end(out, allocation);
  weir_wire_end(out, description);
  weir_wire_end(out, output);
  size_t label = weir_wire_begin(out, NODE_EXEC_STATS_TIMELINE_LABEL);
  weir_strbuf_printf(out, "[%zuB] [%fMb/s] %.*s from %.*s to %.*s", transfer->byte_size,
                     8.0 * (double)transfer->byte_size / (double)micros, WEIR_VIEW_ARG(name),
                     WEIR_VIEW_ARG(source), WEIR_VIEW_ARG(destination));
  weir_wire_end(out, label);
}

void weir_transfer_log_add(weir_transfer_log_t* log, const weir_transfer_t* transfer) {
  weir_view_t rest = transfer->key, parts[4];
  for (size_t i = 0; i < WEIR_COUNT_OF(parts); ++i) {
    if (!weir_view_next(&rest, ';', &parts[i])) return;  // of no other task
  }
  weir_strbuf_t message = {0};
  size_t device = weir_wire_begin(&message, STEP_STATS_DEV_STATS);
  weir_wire_put_bytes(&message, DEVICE_STEP_STATS_DEVICE, parts[2].data, parts[2].size);
  size_t node = weir_wire_begin(&message, DEVICE_STEP_STATS_NODE_STATS);
  put_node(transfer, parts[0], parts[2], parts[3], &message);
  weir_wire_end(&message, node);
  weir_wire_end(&message, device);
  weir_mutex_lock(&log->mu);
  if (log->size + message.size > MAX_SIZE) clear_locked(log);
  weir_strbuf_t* stats = message.failed ? NULL : find_step(log, transfer->step_id);
  size_t before = stats ? stats->size : 0;
  if (stats) weir_strbuf_append(stats, message.data, message.size);
  if (stats) log->size += stats->size - before;
  weir_mutex_unlock(&log->mu);
  weir_strbuf_free(&message);
}

void weir_transfer_log_take(weir_transfer_log_t* log, int64_t step_id, uint32_t field,
                            weir_strbuf_t* out) {
  weir_mutex_lock(&log->mu);
  weir_strbuf_t* stats = weir_map_remove(&log->steps, key_of(&step_id));
  if (stats) log->size -= stats->size;
  weir_mutex_unlock(&log->mu);
  if (!stats) return;
  if (!stats->failed) {
    size_t labeled = weir_wire_begin(out, field);
    weir_wire_put_int(out, LABELED_STEP_STATS_STEP_ID, step_id);
    weir_wire_put_bytes(out, LABELED_STEP_STATS_STEP_STATS, stats->data, stats->size);
    weir_wire_end(out, labeled);
  }
  weir_strbuf_free(stats);
  weir_free(stats);
}
