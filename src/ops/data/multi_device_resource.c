// multi_device_resource.c — Dealing elements to shards.
//
// A deal is one walk and the thread that pulls from it: an element for each shard in turn, whether
// one asks for it or not, until the shard whose turn it is has its fill. The thread and those who
// wait hold the deal, so that the resource may go or begin another.
#include "ops/data/background.h"
#include "ops/data/monitor.h"
#include "ops/data/multi_device.h"

typedef struct entry_t {  // what one pull gave
  weir_tensor_t** element;
  weir_status_t* status;
  struct entry_t* next;
} entry_t;

typedef struct shard_t {
  entry_t *head, *tail;
  int64_t count;
} shard_t;

typedef struct deal_t {
  weir_ref_t ref;
  int64_t incarnation;
  int64_t limit;  // entries of a shard; negative: none
  int width;
  int shard_count;
  weir_resource_t* host;  // the iterator that is pulled from; only the thread does
  weir_cancel_t* cancel;  // of the thread
  weir_monitor_t monitor;
  bool is_started;    // guarded by monitor
  bool is_cancelled;  // guarded by monitor
  bool is_ended;      // guarded by monitor: there will be no more entries
  bool is_starved;    // for want of memory, and not because the dataset is at its end
  shard_t shards[];   // guarded by monitor
} deal_t;

struct weir_multi_device_t {
  weir_resource_t base;
  int shard_count;
  weir_resource_t* pattern;  // an iterator that is never set: its components are this one's
  weir_mutex_t mu;
  int64_t incarnation;  // guarded by mu; of the last deal
  deal_t* deal;         // guarded by mu; NULL: none yet
};

// ---- a deal ----

static void entry_free(entry_t* entry, int width) {
  if (!entry) return;
  weir_element_free(entry->element, width);
  weir_status_destroy(entry->status);
  weir_free(entry);
}

static entry_t* entry_take(shard_t* shard) {
  entry_t* entry = shard->head;
  if (!entry) return NULL;
  shard->head = entry->next;
  if (!shard->head) shard->tail = NULL;
  --shard->count;
  return entry;
}

static void deal_release(deal_t* deal) {
  if (!deal || !weir_ref_dec(&deal->ref)) return;
  for (int i = 0; i < deal->shard_count; ++i) {
    while (deal->shards[i].head) entry_free(entry_take(&deal->shards[i]), deal->width);
  }
  weir_resource_release(deal->host);
  weir_cancel_destroy(deal->cancel);
  weir_monitor_destroy(&deal->monitor);
  weir_free(deal);
}

static weir_status_t* deal_create(const weir_multi_device_t* self, deal_t** out_deal) {
  size_t count = (size_t)self->shard_count;
  deal_t* deal = weir_calloc(1, sizeof(*deal) + count * sizeof(deal->shards[0]));
  if (!deal) return weir_out_of_memory();
  weir_ref_init(&deal->ref);
  weir_monitor_init(&deal->monitor);
  deal->shard_count = self->shard_count;
  deal->width = weir_iterator_resource_width((weir_iterator_resource_t*)self->pattern);
  weir_status_t* status = weir_cancel_create(NULL, &deal->cancel);
  if (!status)
    status = weir_iterator_resource_like((weir_iterator_resource_t*)self->pattern, &deal->host);
  if (status) deal_release(deal);
  else *out_deal = deal;
  return status;
}

// Ends the thread and wakes who waits.
static void deal_cancel(deal_t* deal) {
  if (!deal) return;
  weir_cancel_start(deal->cancel);
  weir_mutex_lock(&deal->monitor.mu);
  deal->is_cancelled = true;
  weir_cond_broadcast(&deal->monitor.changed);
  weir_mutex_unlock(&deal->monitor.mu);
}

// ---- the thread ----

static bool wait_for_room(deal_t* deal, const shard_t* shard) {
  weir_mutex_lock(&deal->monitor.mu);
  while (!deal->is_cancelled && deal->limit >= 0 && shard->count >= deal->limit)
    weir_cond_wait(&deal->monitor.changed, &deal->monitor.mu);
  bool goes_on = !deal->is_cancelled;
  weir_mutex_unlock(&deal->monitor.mu);
  return goes_on;
}

static void put(deal_t* deal, shard_t* shard, entry_t* take_entry, bool is_end, bool is_starved) {
  weir_mutex_lock(&deal->monitor.mu);
  deal->is_ended |= is_end;
  deal->is_starved |= is_starved;
  if (take_entry) {
    if (shard->tail) shard->tail->next = take_entry;
    else shard->head = take_entry;
    shard->tail = take_entry;
    ++shard->count;
  }
  weir_cond_broadcast(&deal->monitor.changed);
  weir_mutex_unlock(&deal->monitor.mu);
}

// Pulls once for |shard|; false when that was the last time. Without memory nobody may take what is
// missing for the end.
static bool pull(deal_t* deal, shard_t* shard) {
  entry_t* entry = weir_calloc(1, sizeof(*entry));
  weir_tensor_t** element = weir_element_create(deal->width);
  bool is_end = false, is_starved = !entry || !element;
  if (is_starved) {
    weir_element_free(element, deal->width);
    weir_free(entry);
    entry = NULL;
  } else {
    entry->element = element;
    entry->status = weir_iterator_resource_next((weir_iterator_resource_t*)deal->host, deal->cancel,
                                                element, &is_end);
    if (entry->status) is_end = false;
  }
  if (is_end) {
    entry_free(entry, deal->width);
    entry = NULL;
  }
  put(deal, shard, entry, is_end || is_starved, is_starved);
  return !is_end && !is_starved;
}

static void run(void* arg) {
  deal_t* deal = arg;
  shard_t* shard = &deal->shards[0];
  while (wait_for_room(deal, shard) && pull(deal, shard)) {
    if (++shard == &deal->shards[deal->shard_count]) shard = &deal->shards[0];
  }
  deal_release(deal);
}

static weir_status_t* start_once_locked(deal_t* deal) WEIR_REQUIRES(deal->monitor.mu) {
  if (deal->is_started) return NULL;
  weir_ref_inc(&deal->ref, 1);
  weir_status_t* status = weir_background_run(run, deal);
  if (status) weir_ref_dec(&deal->ref);  // not the last: the caller has one
  deal->is_started = !status;
  return status;
}

// ---- who asks ----

// NULL: there is none, and there will be none or nobody waits for it.
static weir_status_t* wait_for_entry(deal_t* deal, shard_t* shard, weir_cancel_t* cancel,
                                     entry_t** out_entry) {
  weir_cancel_token_t token = weir_monitor_enter(&deal->monitor, cancel);
  weir_status_t* status = start_once_locked(deal);
  while (!status && !shard->head && !deal->is_ended && !deal->is_cancelled &&
         weir_monitor_wait(&deal->monitor, cancel))
    continue;
  *out_entry = status ? NULL : entry_take(shard);
  if (!status && !*out_entry && deal->is_starved) status = weir_out_of_memory();
  if (!status && !*out_entry && !deal->is_ended)
    status = WEIR_STATUS(CANCELLED, deal->is_cancelled ? "Cancelled Multidevice iterator"
                                                       : "Iterator was cancelled");
  weir_cond_broadcast(&deal->monitor.changed);
  weir_monitor_leave(&deal->monitor, cancel, token);
  return status;
}

static weir_status_t* deal_next(deal_t* deal, int shard, weir_cancel_t* cancel, weir_tensor_t** out,
                                bool* out_is_end) {
  entry_t* entry = NULL;
  WEIR_TRY(wait_for_entry(deal, &deal->shards[shard], cancel, &entry));
  *out_is_end = !entry;
  if (!entry) return NULL;
  weir_status_t* status = entry->status;
  entry->status = NULL;
  if (!status) weir_element_move(entry->element, out, deal->width);
  entry_free(entry, deal->width);
  return status;
}

// ---- the resource ----

static deal_t* retain_deal(weir_multi_device_t* self) {
  weir_mutex_lock(&self->mu);
  deal_t* deal = self->deal;
  if (deal) weir_ref_inc(&deal->ref, 1);
  weir_mutex_unlock(&self->mu);
  return deal;
}

static void resource_close(weir_resource_t* resource) {
  deal_t* deal = retain_deal((weir_multi_device_t*)resource);
  deal_cancel(deal);
  deal_release(deal);
}

static void resource_destroy(weir_resource_t* resource) {
  weir_multi_device_t* self = (weir_multi_device_t*)resource;
  deal_cancel(self->deal);
  deal_release(self->deal);
  weir_resource_release(self->pattern);
  weir_mutex_destroy(&self->mu);
  weir_free(self);
}

const weir_resource_type_t weir_multi_device_type = {
    .name = "N10tensorflow4data12_GLOBAL__N_119MultiDeviceIteratorE",
    .destroy = resource_destroy,
    .close = resource_close};

weir_status_t* weir_multi_device_create(const weir_multi_device_params_t* params,
                                        weir_resource_t** out_resource) {
  weir_multi_device_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  weir_resource_init(&self->base, &weir_multi_device_type);
  weir_mutex_init(&self->mu);
  self->shard_count = params->shard_count;
  weir_status_t* status = weir_iterator_resource_create(&params->spec, &self->pattern);
  if (status) weir_resource_release(&self->base);
  else *out_resource = &self->base;
  return status;
}

weir_status_t* weir_multi_device_matches(weir_multi_device_t* self,
                                         const weir_element_spec_t* spec) {
  return weir_iterator_resource_matches((weir_iterator_resource_t*)self->pattern, spec);
}

weir_status_t* weir_multi_device_set(weir_multi_device_t* self, const weir_kernel_ctx_t* ctx,
                                     weir_data_t* dataset, int64_t limit,
                                     int64_t* out_incarnation) {
  deal_t* deal = NULL;
  WEIR_TRY(deal_create(self, &deal));
  deal->limit = limit;
  weir_status_t* status =
      weir_iterator_resource_set((weir_iterator_resource_t*)deal->host, ctx, dataset);
  if (status) {
    deal_release(deal);
    return status;
  }
  weir_mutex_lock(&self->mu);
  deal_t* old = self->deal;
  self->deal = deal;
  *out_incarnation = deal->incarnation = ++self->incarnation;
  weir_mutex_unlock(&self->mu);
  deal_cancel(old);
  deal_release(old);
  return NULL;
}

weir_status_t* weir_multi_device_next(weir_multi_device_t* self, int shard, int64_t incarnation,
                                      weir_cancel_t* cancel, weir_tensor_t** out,
                                      bool* out_is_end) {
  if (shard < 0 || shard >= self->shard_count)
    return WEIR_STATUS(INVALID_ARGUMENT, "shard_num must be in [0, %d), got %d", self->shard_count,
                       shard);
  deal_t* deal = retain_deal(self);
  if (!deal)
    return WEIR_STATUS(FAILED_PRECONDITION, "the multi-device iterator has not been initialized");
  weir_status_t* status = NULL;
  if (deal->incarnation != incarnation)
    status = WEIR_STATUS(INVALID_ARGUMENT, "Invalid incarnation id. Provided: %lld; Expected: %lld",
                         (long long)incarnation, (long long)deal->incarnation);
  else status = deal_next(deal, shard, cancel, out, out_is_end);
  deal_release(deal);
  return status;
}

int weir_multi_device_width(const weir_multi_device_t* self) {
  return weir_iterator_resource_width((const weir_iterator_resource_t*)self->pattern);
}
