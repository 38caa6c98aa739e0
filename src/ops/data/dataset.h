// dataset.h — Datasets and iterators: what every file of this folder is written against.
//
// A dataset is a value: a variant that says how elements are made, from which datasets, with which
// numbers and functions. It is immutable once its kernel is through and reference counted. An
// iterator is one walk over a dataset and owns iterators over the datasets below. An element is an
// array of tensors, as many as the dataset has components.
//
// A dataset op is two tables and four to seven short functions, see take.c:
//   init     reads the kernel's inputs and attributes into the dataset;
//   start    makes what a walk needs, mostly iterators over the inputs;
//   next     makes the next element, or says that there is none;
//   stop     frees what start and next made, beyond iterators over inputs;
//   state    saves what they made, or restores it: see state.h.
//
// Threads: an iterator is thread-confined; who shares one locks around it (iterator_resource.h).
// next may wait: for a function, a file, a thread of its own. So it is called on threads that no
// step waits for to compute (background.h), never on those of a pool.
#ifndef WEIR_OPS_DATA_DATASET_H_
#define WEIR_OPS_DATA_DATASET_H_

#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/data/origin.h"
#include "tensor/handle.h"

typedef struct weir_data_t weir_data_t;
typedef struct weir_iterator_t weir_iterator_t;
typedef struct weir_state_t weir_state_t;          // state.h
typedef struct weir_graph_out_t weir_graph_out_t;  // graph_out.h

// How many elements there are, where it is not a number.
enum { WEIR_CARDINALITY_INFINITE = -1, WEIR_CARDINALITY_UNKNOWN = -2 };

// What all iterators of one walk share. Outlives them.
struct weir_instead_t;
typedef struct weir_walk_t {
  weir_functions_t* functions;       // may be NULL
  weir_cancel_t* cancel;             // of what goes on between two calls of next
  weir_pool_t* pool;                 // threads for work side by side; may be NULL
  struct weir_seed_places_t* seeds;  // of each place in the tree, see seeds.h; NULL: datasets' own
  const struct weir_instead_t* instead;  // what AutoShardDataset put in place of inputs, or NULL
} weir_walk_t;

// ---- iterators ----

typedef struct weir_iterator_vtable_t {
  size_t size;  // required: of the iterator's own struct, zeroed
  // Optional: begins a walk.
  weir_status_t* (*start)(weir_iterator_t* self);
  // Required: puts owned references into |out|, or sets *|out_is_end|, false before. Called no more
  // after the end, unless |may_resume|. |cancel| ends functions that it calls.
  weir_status_t* (*next)(weir_iterator_t* self, weir_cancel_t* cancel, weir_tensor_t** out,
                         bool* out_is_end);
  void (*stop)(weir_iterator_t* self);  // optional; also after a failed start
  // Optional, default: it cannot be saved. Hands over what it holds, or takes that over just after
  // |start|, see state.h. Called between two calls of next.
  void (*state)(weir_iterator_t* self, weir_state_t* state);
  bool may_resume;  // next is called after an end as well: there may be more (a function's
                    // OUT_OF_RANGE)
} weir_iterator_vtable_t;

struct weir_iterator_t {  // every iterator starts with this
  const weir_iterator_vtable_t* vtable;
  weir_data_t* dataset;      // retained
  const weir_walk_t* walk;   // borrowed
  weir_iterator_t** inputs;  // one a dataset below, NULL until opened; owned
  uint64_t place;            // in the tree of the walk; 0: a function made the dataset
  bool is_ended;
};

WEIR_MUST_USE weir_status_t* weir_iterator_create(weir_data_t* dataset, const weir_walk_t* walk,
                                                  weir_iterator_t** out_iterator);
// The same for the dataset that a walk is over: it and those below have places in the walk's tree.
WEIR_MUST_USE weir_status_t* weir_iterator_create_root(weir_data_t* dataset,
                                                       const weir_walk_t* walk,
                                                       weir_iterator_t** out_iterator);
void weir_iterator_destroy(weir_iterator_t* iterator);  // NULL-safe
// The next element. CANCELLED when |cancel| or the walk was. On an error |out| holds nothing, and
// the next call goes on behind it; *|out_is_end| may be set as well, as in TensorFlow, where some
// datasets take that for the end and others for an error.
WEIR_MUST_USE weir_status_t* weir_iterator_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                                weir_tensor_t** out, bool* out_is_end);
// Begins to walk over input |i|, anew where that was begun before.
WEIR_MUST_USE weir_status_t* weir_iterator_open(weir_iterator_t* self, int i);
void weir_iterator_close(weir_iterator_t* self, int i);
// The next element of input |i|.
WEIR_INLINE weir_status_t* weir_iterator_pull(weir_iterator_t* self, int i, weir_cancel_t* cancel,
                                              weir_tensor_t** out, bool* out_is_end) {
  return weir_iterator_next(self->inputs[i], cancel, out, out_is_end);
}
// A start that opens input 0, and a next that hands its elements on: for datasets that change
// nothing.
weir_status_t* weir_iterator_start_input(weir_iterator_t* self);
weir_status_t* weir_iterator_next_input(weir_iterator_t* self, weir_cancel_t* cancel,
                                        weir_tensor_t** out, bool* out_is_end);

// A dataset that is walked over instead of an input of |parent|. A list.
typedef struct weir_instead_t {
  struct weir_instead_t* next;
  const weir_data_t* parent;  // borrowed
  int input;
  weir_data_t* dataset;  // retained
} weir_instead_t;
// What stands there by |list|, which may be NULL: the input itself where that says nothing.
weir_data_t* weir_instead_find(const weir_instead_t* list, const weir_data_t* parent, int input);

// ---- datasets ----

typedef struct weir_dataset_vtable_t {
  const char* name;  // required: "Take", for messages
  size_t size;       // required: of the dataset's own struct, zeroed
  // Required: reads the kernel's inputs; what it leaves unset is NULL or 0.
  weir_status_t* (*init)(weir_kernel_ctx_t* ctx, weir_data_t* self);
  void (*deinit)(weir_data_t* self);                // optional; also after a failed init
  int64_t (*cardinality)(const weir_data_t* self);  // optional, default: that of input 0
  // Optional, default UNIMPLEMENTED: element |index| without those before it, which may not be
  // there: weir_dataset_check_index. See weir_dataset_get.
  weir_status_t* (*get)(weir_data_t* self, const weir_walk_t* walk, int64_t index,
                        weir_tensor_t** out);
  // Optional, default: the node that made it, UNIMPLEMENTED where there was none. Writes it as
  // nodes that make it again: for datasets that iterators make. See graph_out.h.
  weir_status_t* (*write)(weir_data_t* self, weir_graph_out_t* out, const char** out_name);
  const weir_iterator_vtable_t* iterator;  // required
} weir_dataset_vtable_t;

struct weir_data_t {           // a dataset; every one starts with this
  weir_variant_object_t base;  // of weir_dataset_type
  const weir_dataset_vtable_t* vtable;
  int count;              // components of an element, at least one
  weir_dtype_t* types;    // one a component; owned
  weir_shape_t** shapes;  // likewise, as far as known
  weir_data_t** inputs;   // retained
  int input_count;
  int64_t batch_size;     // elements in one of its elements, where it makes batches; 0: it does not
  weir_strbuf_t options;  // Options, those of its inputs included; mostly empty
  weir_origin_t* origin;  // retained; NULL: no node made it
  weir_tensor_t** args;   // the inputs of that node; retained
  int arg_count;
  int depth;  // of datasets that it holds, one within another
};
extern const weir_variant_type_t weir_dataset_type;

weir_data_t* weir_dataset_retain(weir_data_t* dataset);
void weir_dataset_release(weir_data_t* dataset);  // NULL-safe
int64_t weir_dataset_cardinality(const weir_data_t* dataset);
// For vtables: not known; not known unless input 0 is without end.
int64_t weir_dataset_unknown_size(const weir_data_t* dataset);
int64_t weir_dataset_endless_size(const weir_data_t* dataset);

// Element |index|: as many owned references as it has components, or none. UNIMPLEMENTED where the
// dataset can be walked over only, FAILED_PRECONDITION where it has no known size, OUT_OF_RANGE.
WEIR_MUST_USE weir_status_t* weir_dataset_get(weir_data_t* dataset, const weir_walk_t* walk,
                                              int64_t index, weir_tensor_t** out);
WEIR_MUST_USE weir_status_t* weir_dataset_check_index(const weir_data_t* dataset, int64_t index);
// A get that hands on that of input 0.
weir_status_t* weir_dataset_get_input(weir_data_t* self, const weir_walk_t* walk, int64_t index,
                                      weir_tensor_t** out);

// A dataset op's kernel: makes a dataset of |vtable| from the node's inputs output 0.
WEIR_MUST_USE weir_status_t* weir_dataset_output(weir_kernel_ctx_t* ctx,
                                                 const weir_dataset_vtable_t* vtable);
// Without a kernel: a zeroed dataset of |vtable| for datasets that iterators make (windows).
WEIR_MUST_USE weir_status_t* weir_dataset_create(const weir_dataset_vtable_t* vtable,
                                                 weir_data_t** out_dataset);
// The same over |input|, whose components and options it has.
WEIR_MUST_USE weir_status_t* weir_dataset_create_over(const weir_dataset_vtable_t* vtable,
                                                      weir_data_t* input,
                                                      weir_data_t** out_dataset);
// The dataset that a tensor holds; borrowed. INVALID_ARGUMENT when it holds none.
WEIR_MUST_USE weir_status_t* weir_dataset_of(const weir_tensor_t* tensor,
                                             weir_data_t** out_dataset);

// ---- for init ----

// Makes kernel inputs [first, first + count) the dataset's own inputs.
WEIR_MUST_USE weir_status_t* weir_dataset_set_inputs(weir_kernel_ctx_t* ctx, int first, int count,
                                                     weir_data_t* self);
// Components as those of |like|; as attributes |types| and |shapes| of the node say; as given.
WEIR_MUST_USE weir_status_t* weir_dataset_set_like(const weir_data_t* like, weir_data_t* self);
WEIR_MUST_USE weir_status_t* weir_dataset_set_attrs(weir_kernel_ctx_t* ctx, const char* types,
                                                    const char* shapes, weir_data_t* self);
WEIR_MUST_USE weir_status_t* weir_dataset_set_components(int count, const weir_dtype_t* types,
                                                         weir_data_t* self);
// Kernel input 0 is the one input, elements have its components.
WEIR_MUST_USE weir_status_t* weir_dataset_init_like_input(weir_kernel_ctx_t* ctx,
                                                          weir_data_t* self);
// Kernel input 0 is the one input, components are as output_types and output_shapes say.
WEIR_MUST_USE weir_status_t* weir_dataset_init_declared(weir_kernel_ctx_t* ctx, weir_data_t* self);
// Replaces the shape of component |i|.
WEIR_MUST_USE weir_status_t* weir_dataset_set_shape(weir_data_t* self, int i, int rank,
                                                    const int64_t* dims);

// Scalars among the kernel's inputs. INVALID_ARGUMENT "count must be a scalar".
WEIR_MUST_USE weir_status_t* weir_dataset_int(const weir_kernel_ctx_t* ctx, int i, const char* name,
                                              int64_t* out_value);
WEIR_MUST_USE weir_status_t* weir_dataset_bool(const weir_kernel_ctx_t* ctx, int i,
                                               const char* name, bool* out_value);
WEIR_MUST_USE weir_status_t* weir_dataset_string(const weir_kernel_ctx_t* ctx, int i,
                                                 const char* name, weir_view_t* out_value);

// Shape functions: a scalar handle; the same, where all inputs but the first must be scalars.
WEIR_INLINE weir_status_t* weir_dataset_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set_scalar(ctx, 0);
}
weir_status_t* weir_dataset_shape_scalars(weir_shape_ctx_t* ctx);

// What the definitions of dataset ops have in common.
#define WEIR_DATASET_SPEC "output_types: list(type) >= 1; output_shapes: list(shape) >= 1"
#define WEIR_DATASET_ATTRS WEIR_DATASET_SPEC "; metadata: string = ''"

// ---- elements ----

WEIR_INLINE int weir_iterator_width(const weir_iterator_t* self) { return self->dataset->count; }
// An array for one element, zeroed; weir_element_free. NULL when out of memory.
weir_tensor_t** weir_element_create(int count);
void weir_element_clear(weir_tensor_t** element, int count);  // releases what it holds
void weir_element_free(weir_tensor_t** element, int count);   // NULL-safe
WEIR_INLINE void weir_element_move(weir_tensor_t** from, weir_tensor_t** to, int count) {
  for (int i = 0; i < count; ++i) {
    to[i] = from[i];
    from[i] = NULL;
  }
}
WEIR_INLINE void weir_element_share(weir_tensor_t* const* from, weir_tensor_t** to, int count) {
  for (int i = 0; i < count; ++i) to[i] = weir_tensor_retain(from[i]);
}

// Makes an element the outputs of a kernel with attribute output_shapes, and takes it.
// INVALID_ARGUMENT when it is not what the node declares.
WEIR_MUST_USE weir_status_t* weir_element_output(weir_kernel_ctx_t* ctx, weir_tensor_t** items,
                                                 int count);
// Its shape function: outputs are as output_shapes says.
weir_status_t* weir_element_shape(weir_shape_ctx_t* ctx);
// Whether components of |count| tensors are of these types and shapes. INVALID_ARGUMENT "Data type
// mismatch at component 0: expected int64 but got float." and the like.
WEIR_MUST_USE weir_status_t* weir_components_check_types(int count, const weir_dtype_t* types,
                                                         int got_count, const weir_dtype_t* got);
WEIR_MUST_USE weir_status_t* weir_components_check_shapes(int count,
                                                          const weir_shape_t* const* shapes,
                                                          int got_count,
                                                          const weir_shape_t* const* got);

#endif  // WEIR_OPS_DATA_DATASET_H_
