// state.c — Pieces of a state, written and read.
#include "ops/data/state.h"

#include "base/alloc.h"

enum {
  STATE_PIECE = 1,  // of the whole
  PIECE_KEY = 1,    // of a piece
  PIECE_INT = 2,
  PIECE_BYTES = 3,
};

weir_state_t weir_state_save(weir_variant_data_t* data, weir_state_policy_t policy,
                             weir_cancel_t* cancel) {
  return (weir_state_t){.policy = policy, .cancel = cancel, .data = data};
}

weir_state_t weir_state_restore(weir_variant_data_t* data, weir_cancel_t* cancel) {
  return (weir_state_t){.is_restoring = true,
                        .policy = WEIR_STATE_IGNORE,
                        .cancel = cancel,
                        .data = data,
                        .reader = weir_wire_reader(weir_strbuf_view(&data->bytes))};
}

void weir_state_fail(weir_state_t* state, weir_status_t* take_status) {
  if (!state->status) state->status = take_status;
  else weir_status_destroy(take_status);
}

typedef struct weir_deferred_t {
  void (*fn)(void* arg);
  void* arg;
  struct weir_deferred_t* next;
} weir_deferred_t;

void weir_state_defer(weir_state_t* state, void (*fn)(void* arg), void* arg) {
  weir_deferred_t* deferred = weir_malloc(sizeof(*deferred));
  if (!deferred) {
    fn(arg);
    weir_state_fail(state, weir_out_of_memory());
    return;
  }
  *deferred = (weir_deferred_t){.fn = fn, .arg = arg, .next = state->deferred};
  state->deferred = deferred;
}

weir_status_t* weir_state_finish(weir_state_t* state) {
  while (state->deferred) {
    weir_deferred_t* deferred = state->deferred;
    state->deferred = deferred->next;
    deferred->fn(deferred->arg);
    weir_free(deferred);
  }
  if (!state->is_restoring) weir_state_fail(state, weir_strbuf_finish(&state->data->bytes));
  weir_status_t* status = state->status;
  state->status = NULL;
  return status;
}

// ---- one piece ----

typedef struct piece_t {
  weir_view_t key, bytes;
  int64_t number;
} piece_t;

static void put(weir_state_t* state, const char* key, const piece_t* piece) {
  weir_strbuf_t* out = &state->data->bytes;
  if (!weir_state_is_good(state)) return;
  size_t at = weir_wire_begin(out, STATE_PIECE);
  weir_wire_put_string(out, PIECE_KEY, key);
  if (piece->number != 0) weir_wire_put_int(out, PIECE_INT, piece->number);
  if (piece->bytes.size > 0)
    weir_wire_put_bytes(out, PIECE_BYTES, piece->bytes.data, piece->bytes.size);
  weir_wire_end(out, at);
}

static weir_status_t* parse_piece(weir_view_t proto, piece_t* out_piece) {
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field == PIECE_KEY && reader.type == WEIR_WIRE_BYTES) out_piece->key = reader.bytes;
    if (reader.field == PIECE_INT && reader.type == WEIR_WIRE_VARINT)
      out_piece->number = weir_wire_int(&reader);
    if (reader.field == PIECE_BYTES && reader.type == WEIR_WIRE_BYTES)
      out_piece->bytes = reader.bytes;
  }
  return weir_wire_check(&reader, "state of an iterator");
}

// False, and an error, where the next piece has another name.
static bool get(weir_state_t* state, const char* key, piece_t* out_piece) {
  *out_piece = (piece_t){.bytes = weir_view("", 0)};
  if (!weir_state_is_good(state)) return false;
  if (weir_wire_next(&state->reader) && state->reader.field == STATE_PIECE &&
      state->reader.type == WEIR_WIRE_BYTES)
    weir_state_fail(state, parse_piece(state->reader.bytes, out_piece));
  weir_state_fail(state, weir_wire_check(&state->reader, "state of an iterator"));
  if (weir_state_is_good(state) && !weir_view_is(out_piece->key, key))
    weir_state_fail(state,
                    WEIR_STATUS(NOT_FOUND,
                                "the state of the iterator has '%.*s' where '%s' is looked for: it "
                                "is that of another dataset",
                                WEIR_VIEW_ARG(out_piece->key), key));
  return weir_state_is_good(state);
}

// ---- numbers ----

void weir_state_int(weir_state_t* state, const char* key, int64_t* value, int64_t min,
                    int64_t max) {
  piece_t piece = {.number = *value};
  if (!state->is_restoring) {
    put(state, key, &piece);
    return;
  }
  if (!get(state, key, &piece)) return;
  if (piece.number < min || piece.number > max)
    weir_state_fail(state,
                    WEIR_STATUS(INVALID_ARGUMENT,
                                "the state of the iterator has %lld for '%s', which must be "
                                "in [%lld, %lld]",
                                (long long)piece.number, key, (long long)min, (long long)max));
  else *value = piece.number;
}

void weir_state_size(weir_state_t* state, const char* key, size_t* value, size_t max) {
  int64_t number = (int64_t)*value;
  weir_state_int(state, key, &number, 0, (int64_t)WEIR_MIN(max, (size_t)INT64_MAX));
  *value = (size_t)number;
}

void weir_state_bool(weir_state_t* state, const char* key, bool* value) {
  int64_t number = *value;
  weir_state_int(state, key, &number, 0, 1);
  *value = number != 0;
}

void weir_state_words(weir_state_t* state, const char* key, uint32_t* words, int count) {
  for (int i = 0; i < count; ++i) {
    int64_t number = words[i];
    weir_state_int(state, key, &number, 0, UINT32_MAX);
    words[i] = (uint32_t)number;
  }
}

// A piece takes more than one byte: so a false number is refused before memory is taken for it.
void weir_state_count(weir_state_t* state, const char* key, size_t* count) {
  size_t left = state->is_restoring ? (size_t)(state->reader.end - state->reader.next) : SIZE_MAX;
  weir_state_size(state, key, count, left);
  if (!weir_state_is_good(state) && state->is_restoring) *count = 0;
}

void weir_state_bytes(weir_state_t* state, const char* key, weir_view_t* bytes) {
  piece_t piece = {.bytes = *bytes};
  if (!state->is_restoring) put(state, key, &piece);
  else if (get(state, key, &piece)) *bytes = piece.bytes;
}

void weir_state_status(weir_state_t* state, const char* key, weir_status_t** status) {
  piece_t piece = {.number = (int64_t)weir_status_code(*status),
                   .bytes = weir_view_of(weir_status_message(*status))};
  if (!state->is_restoring) {
    put(state, key, &piece);
    return;
  }
  if (!get(state, key, &piece) || piece.number == 0) return;
  weir_code_t code = piece.number > 0 && piece.number <= WEIR_UNAUTHENTICATED
                         ? (weir_code_t)piece.number
                         : WEIR_UNKNOWN;
  *status = weir_status_create(code, __FILE__, __LINE__, "%.*s", WEIR_VIEW_ARG(piece.bytes));
}

// ---- tensors ----

static void put_tensor(weir_state_t* state, weir_tensor_t* tensor) {
  if (weir_state_is_good(state))
    weir_state_fail(state, weir_variant_data_add(state->data, weir_tensor_retain(tensor)));
}

static void get_tensor(weir_state_t* state, const char* key, const weir_dtype_t* type,
                       weir_tensor_t** tensor) {
  if (!weir_state_is_good(state)) return;
  if (state->tensor >= state->data->count) {
    weir_state_fail(state, WEIR_STATUS(INVALID_ARGUMENT,
                                       "the state of the iterator lacks a tensor of '%s'", key));
    return;
  }
  weir_tensor_t* saved = state->data->tensors[state->tensor++];
  if (type && weir_tensor_type(saved) != *type) {
    weir_state_fail(
        state, WEIR_STATUS(INVALID_ARGUMENT,
                           "the state of the iterator has a tensor of type %s for "
                           "'%s', not %s",
                           weir_dtype_name(weir_tensor_type(saved)), key, weir_dtype_name(*type)));
    return;
  }
  weir_tensor_release(*tensor);
  *tensor = weir_tensor_retain(saved);
}

void weir_state_element(weir_state_t* state, const char* key, weir_element_types_t components,
                        weir_tensor_t** element) {
  int64_t count = components.count;
  weir_state_int(state, key, &count, components.count, components.count);
  for (int i = 0; i < components.count; ++i) {
    const weir_dtype_t* type = components.types ? &components.types[i] : NULL;
    if (state->is_restoring) get_tensor(state, key, type, &element[i]);
    else put_tensor(state, element[i]);
  }
}

void weir_state_maybe_element(weir_state_t* state, const char* key, weir_element_types_t components,
                              weir_tensor_t** element) {
  bool is_there = element && element[0];
  weir_state_bool(state, key, &is_there);
  if (is_there) weir_state_element(state, key, components, element);
}

void weir_state_elements(weir_state_t* state, const char* key, weir_element_types_t components,
                         weir_tensor_t**** elements, size_t* count, size_t* capacity) {
  size_t total = *count;
  weir_state_count(state, key, &total);
  for (size_t i = 0; i < total && weir_state_is_good(state); ++i) {
    if (state->is_restoring) {
      weir_tensor_t** element = weir_element_create(components.count);
      if (!element || !WEIR_GROW(*elements, *capacity, i + 1)) {
        weir_free(element);
        weir_state_fail(state, weir_out_of_memory());
        return;
      }
      (*elements)[i] = element;
      *count = i + 1;
    }
    weir_state_element(state, key, components, (*elements)[i]);
  }
}

// ---- iterators ----

void weir_state_iterator(weir_iterator_t* iterator, weir_state_t* state) {
  const char* name = iterator->dataset->vtable->name;
  piece_t piece = {.bytes = weir_view_of(name)};
  if (!weir_state_is_good(state)) return;
  if (!iterator->vtable->state) {
    weir_state_fail(state,
                    WEIR_STATUS(UNIMPLEMENTED, "%sDataset does not support checkpointing.", name));
    return;
  }
  weir_state_bytes(state, "dataset", &piece.bytes);
  if (weir_state_is_good(state) && !weir_view_is(piece.bytes, name))
    weir_state_fail(state, WEIR_STATUS(NOT_FOUND,
                                       "the state of the iterator is that of a %.*sDataset, not of "
                                       "a %sDataset",
                                       WEIR_VIEW_ARG(piece.bytes), name));
  weir_state_bool(state, "is_ended", &iterator->is_ended);
  if (weir_state_is_good(state)) iterator->vtable->state(iterator, state);
}

void weir_state_inputs(weir_iterator_t* self, weir_state_t* state) {
  for (int i = 0; i < self->dataset->input_count; ++i) weir_state_iterator(self->inputs[i], state);
}

void weir_state_input(weir_iterator_t* self, weir_state_t* state, int i) {
  bool is_open = self->inputs[i] != NULL;
  weir_state_bool(state, "is_open", &is_open);
  if (!weir_state_is_good(state)) return;
  if (!is_open) weir_iterator_close(self, i);
  else if (!self->inputs[i]) weir_state_fail(state, weir_iterator_open(self, i));
  if (is_open && weir_state_is_good(state)) weir_state_iterator(self->inputs[i], state);
}

void weir_state_require(weir_state_t* state, bool is_right) {
  if (weir_state_is_good(state) && !is_right)
    weir_state_fail(state,
                    WEIR_STATUS(INVALID_ARGUMENT, "the state of the iterator contradicts itself"));
}
