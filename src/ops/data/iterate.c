// iterate.c — What all iterators share: lifetime, walks over inputs, arrays of elements.
#include "base/map.h"
#include "ops/data/dataset.h"

static weir_status_t* create_at(weir_data_t* dataset, const weir_walk_t* walk, uint64_t place,
                                weir_iterator_t** out_iterator) {
  const weir_iterator_vtable_t* vtable = dataset->vtable->iterator;
  weir_iterator_t* self = weir_calloc(1, vtable->size);
  if (!self) return weir_out_of_memory();
  self->vtable = vtable;
  self->dataset = weir_dataset_retain(dataset);
  self->walk = walk;
  self->place = place;
  self->inputs = weir_calloc((size_t)dataset->input_count + 1, sizeof(*self->inputs));
  weir_status_t* status = self->inputs ? NULL : weir_out_of_memory();
  if (!status && vtable->start) status = vtable->start(self);
  if (status) weir_iterator_destroy(self);
  else *out_iterator = self;
  return status;
}

weir_status_t* weir_iterator_create(weir_data_t* dataset, const weir_walk_t* walk,
                                    weir_iterator_t** out_iterator) {
  return create_at(dataset, walk, 0, out_iterator);
}

weir_status_t* weir_iterator_create_root(weir_data_t* dataset, const weir_walk_t* walk,
                                         weir_iterator_t** out_iterator) {
  return create_at(dataset, walk, 1, out_iterator);
}

void weir_iterator_destroy(weir_iterator_t* iterator) {
  if (!iterator) return;
  if (iterator->vtable->stop) iterator->vtable->stop(iterator);
  for (int i = 0; i < iterator->dataset->input_count && iterator->inputs; ++i)
    weir_iterator_destroy(iterator->inputs[i]);
  weir_free(iterator->inputs);
  weir_dataset_release(iterator->dataset);
  weir_free(iterator);
}

weir_status_t* weir_iterator_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                  weir_tensor_t** out, bool* out_is_end) {
  *out_is_end = iterator->is_ended;
  if (iterator->is_ended) return NULL;
  // Also what ends a dataset that looks for an element and finds none for ever.
  if (weir_cancel_is_cancelled(cancel) || weir_cancel_is_cancelled(iterator->walk->cancel))
    return WEIR_STATUS(CANCELLED, "Iterator was cancelled");
  weir_status_t* status = iterator->vtable->next(iterator, cancel, out, out_is_end);
  if (status) weir_element_clear(out, iterator->dataset->count);
  else iterator->is_ended = *out_is_end && !iterator->vtable->may_resume;
  return status;
}

weir_status_t* weir_iterator_open(weir_iterator_t* self, int i) {
  weir_iterator_close(self, i);
  uint64_t place = self->place ? weir_hash_mix(self->place * 31 + (uint64_t)i) | 1 : 0;
  weir_data_t* input = weir_instead_find(self->walk->instead, self->dataset, i);
  return create_at(input, self->walk, place, &self->inputs[i]);
}

weir_data_t* weir_instead_find(const weir_instead_t* list, const weir_data_t* parent, int input) {
  for (; list; list = list->next)
    if (list->parent == parent && list->input == input) return list->dataset;
  return parent->inputs[input];
}

void weir_iterator_close(weir_iterator_t* self, int i) {
  weir_iterator_destroy(self->inputs[i]);
  self->inputs[i] = NULL;
}

weir_status_t* weir_iterator_start_input(weir_iterator_t* self) {
  return weir_iterator_open(self, 0);
}

weir_status_t* weir_iterator_next_input(weir_iterator_t* self, weir_cancel_t* cancel,
                                        weir_tensor_t** out, bool* out_is_end) {
  return weir_iterator_pull(self, 0, cancel, out, out_is_end);
}

// ---- elements ----

weir_tensor_t** weir_element_create(int count) {
  return weir_calloc((size_t)count, sizeof(weir_tensor_t*));
}

void weir_element_clear(weir_tensor_t** element, int count) {
  for (int i = 0; i < count; ++i) {
    weir_tensor_release(element[i]);
    element[i] = NULL;
  }
}

void weir_element_free(weir_tensor_t** element, int count) {
  if (!element) return;
  weir_element_clear(element, count);
  weir_free(element);
}
