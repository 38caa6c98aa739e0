// variable.c — Variables: a tensor under a lock, written in place when nobody else holds it.
//
// A read gives a reference to the tensor, not a copy. A write that finds the tensor shared must not
// change it under its readers: it makes new memory, writes there, and lets the old go. For resource
// variables that is all: a read is a snapshot.
//
// Reference variables are different in TensorFlow: a read is the variable's memory itself, and who
// looks at it after a write, however long ago he read it, sees the write. Programs rely on it where
// they order a reader after a write but not the read. Sharing memory in that way would mean torn
// values, so here memory that a write leaves gets a successor: a record (left_t) that leads to the
// variable. Executors ask every input that may be such memory, just before its kernel runs, whether
// it is outdated, and renew it: the same view, of the same bytes, in the memory that the variable
// holds now. plan.c finds the nodes that have to ask.
//
// - A view fits only while the number of elements stays. When that changes, all records are given
//   the last tensor of the old one (|last|), and stay with it.
// - Records hold the variable and the variable lists the records; a record goes with the last
//   reference to the memory it was made for, which may be dropped by a writer that holds |mu|.
//   Hence |left_mu|, a second lock, taken inside the first.
// - Asking for the newest tensor takes |mu|, so a renewal waits for a write that is under way
//   instead of seeing half of it.
//
// A variable that lies in a file (file/mapping.h) is written there, whoever holds its tensor: that
// is for those who read with the lock held, or look at the shape. All others get a copy, by
// weir_variable_snapshot.
#include "base/alloc.h"
#include "file/mapping.h"
#include "op/resource.h"

// A memory of a reference variable that a write left because others read it: its successor is what
// the variable holds now.
typedef struct left_t {
  weir_successor_t base;      // first
  weir_variable_t* variable;  // retained
  weir_tensor_t* last;  // guarded by the variable's left_mu. What it held last before it took on
                        // another size, retained; NULL: it did not, and this is in its list
  struct left_t* next;
  struct left_t* previous;
} left_t;

static void destroy(weir_resource_t* resource) {
  weir_variable_t* variable = (weir_variable_t*)resource;
  weir_tensor_release(variable->tensor);
  weir_mutex_destroy(&variable->mu);
  weir_mutex_destroy(&variable->left_mu);
  weir_free(variable->shape);
  weir_free(variable);
}

static void describe(weir_resource_t* resource, weir_strbuf_t* out) {
  weir_variable_t* variable = (weir_variable_t*)resource;
  weir_tensor_t* tensor = weir_variable_read(variable);
  weir_strbuf_puts(out, weir_dtype_name(variable->dtype));
  if (tensor) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    weir_strbuf_puts(out, weir_tensor_shape_text(tensor, shape));
  } else {
    weir_strbuf_puts(out, " uninitialized");
  }
  weir_tensor_release(tensor);
}

const weir_resource_type_t weir_variable_type = {
    .name = "N10tensorflow3VarE",  // as TensorFlow's messages name it
    .destroy = destroy,
    .describe = describe,
};

static weir_status_t* create(weir_dtype_t dtype, const weir_shape_t* shape, bool is_ref,
                             weir_variable_t** out) {
  weir_variable_t* variable = weir_calloc(1, sizeof(*variable));
  if (!variable) return weir_out_of_memory();
  if (shape) {
    variable->shape = weir_shape_clone(shape);
    if (!variable->shape) {
      weir_free(variable);
      return weir_out_of_memory();
    }
  }
  weir_resource_init(&variable->base, &weir_variable_type);
  weir_mutex_init(&variable->mu);
  weir_mutex_init(&variable->left_mu);
  variable->dtype = dtype;
  variable->is_ref = is_ref;
  *out = variable;
  return NULL;
}

weir_status_t* weir_variable_create(weir_dtype_t dtype, const weir_shape_t* shape,
                                    weir_variable_t** out) {
  return create(dtype, shape, false, out);
}

weir_status_t* weir_variable_create_ref(weir_dtype_t dtype, const weir_shape_t* shape,
                                        weir_variable_t** out) {
  return create(dtype, shape, true, out);
}

// ---- memories left behind ----

static weir_tensor_t* left_newest(weir_successor_t* successor) {
  left_t* left = (left_t*)successor;
  weir_variable_t* variable = left->variable;
  weir_mutex_lock(&variable->mu);  // waits for a write that is under way
  weir_mutex_lock(&variable->left_mu);
  weir_tensor_t* newest = weir_tensor_retain(left->last ? left->last : variable->tensor);
  weir_mutex_unlock(&variable->left_mu);
  weir_mutex_unlock(&variable->mu);
  return newest;
}

// May be called with the variable's mu held: a writer drops what it left.
static void left_destroy(weir_successor_t* successor) {
  left_t* left = (left_t*)successor;
  weir_variable_t* variable = left->variable;
  weir_mutex_lock(&variable->left_mu);
  if (!left->last) {
    if (left->next) left->next->previous = left->previous;
    if (left->previous) left->previous->next = left->next;
    else variable->left = left->next;
  }
  weir_mutex_unlock(&variable->left_mu);
  weir_tensor_release(left->last);
  weir_resource_release(&variable->base);
  weir_free(left);
}

static void detach_left(weir_variable_t* variable) {
  weir_mutex_lock(&variable->left_mu);
  for (left_t* left = variable->left; left; left = left->next)
    left->last = weir_tensor_retain(variable->tensor);
  variable->left = NULL;
  weir_mutex_unlock(&variable->left_mu);
}

// |variable|, locked, is about to hold |next| in place of its tensor: tells those who hold that.
static weir_status_t* leave_locked(weir_variable_t* variable, const weir_tensor_t* next) {
  weir_tensor_t* old = variable->tensor;
  if (!variable->is_ref || !old) return NULL;
  if (next->count != old->count) {
    detach_left(variable);
    return NULL;
  }
  if (weir_tensor_is_sole(old)) return NULL;
  left_t* left = weir_calloc(1, sizeof(*left));
  if (!left) return weir_out_of_memory();
  left->base = (weir_successor_t){.newest = left_newest, .destroy = left_destroy};
  left->variable = (weir_variable_t*)weir_resource_retain(&variable->base);
  weir_mutex_lock(&variable->left_mu);
  left->next = variable->left;
  if (left->next) left->next->previous = left;
  variable->left = left;
  weir_mutex_unlock(&variable->left_mu);
  weir_tensor_leave(old, &left->base);
  return NULL;
}

// ---- reading and writing ----

weir_tensor_t* weir_variable_read(weir_variable_t* variable) {
  weir_mutex_lock(&variable->mu);
  weir_tensor_t* tensor = weir_tensor_retain(variable->tensor);
  weir_mutex_unlock(&variable->mu);
  return tensor;
}

// A reference variable has its memory for itself: what others hold is copied. Its memory is copied
// for a resource variable, too, whose reads are snapshots.
static weir_status_t* own(const weir_variable_t* variable, weir_tensor_t** tensor) {
  bool is_own = !(*tensor)->root && weir_tensor_is_sole(*tensor);
  bool is_others = weir_tensor_is_variable(*tensor) || weir_mapping_has(*tensor);
  if (variable->is_ref ? !is_own : is_others) {
    weir_tensor_t* copy = NULL;
    WEIR_TRY(weir_tensor_copy(*tensor, &copy));
    weir_tensor_release(*tensor);
    *tensor = copy;
  }
  if (variable->is_ref) (*tensor)->is_variable = true;
  return NULL;
}

static weir_status_t* copy_of_file(const weir_tensor_t* tensor, weir_tensor_t** out_tensor) {
  WEIR_TRY(weir_tensor_copy(tensor, out_tensor));
  weir_status_t* status = weir_mapping_check(tensor);
  if (!status) return NULL;
  weir_tensor_release(*out_tensor);
  *out_tensor = NULL;
  return status;
}

weir_status_t* weir_variable_snapshot(weir_variable_t* variable, weir_tensor_t** out_tensor) {
  weir_status_t* status = NULL;
  weir_mutex_lock(&variable->mu);
  const bool is_in_file = variable->tensor && weir_mapping_has(variable->tensor);
  if (is_in_file) status = copy_of_file(variable->tensor, out_tensor);
  else *out_tensor = weir_tensor_retain(variable->tensor);
  weir_mutex_unlock(&variable->mu);
  return status;
}

void weir_variable_put_in_file(weir_variable_t* variable, weir_tensor_t* take_tensor) {
  weir_mutex_lock(&variable->mu);
  weir_tensor_t* old = variable->tensor;
  variable->tensor = take_tensor;
  weir_mutex_unlock(&variable->mu);
  weir_tensor_release(old);
}

// Writes the elements of |value| to the file that |variable| lies in.
static weir_status_t* write_locked(weir_variable_t* variable, const weir_tensor_t* value) {
  char had[WEIR_SHAPE_TEXT_SIZE], got[WEIR_SHAPE_TEXT_SIZE];
  const weir_tensor_t* tensor = variable->tensor;
  if (tensor->dtype != value->dtype || !weir_tensor_same_shape(tensor, value) ||
      !weir_tensor_is_host(value))
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "a variable of shape %s that lies in a file cannot be assigned shape %s",
                       weir_tensor_shape_text(tensor, had), weir_tensor_shape_text(value, got));
  memmove(tensor->data, value->data, (size_t)value->count * weir_dtype_size(variable->dtype));
  return weir_mapping_check(tensor);
}

weir_status_t* weir_variable_assign(weir_variable_t* variable, weir_tensor_t* take_tensor) {
  weir_status_t* status = own(variable, &take_tensor);
  weir_tensor_t* unused = take_tensor;
  weir_mutex_lock(&variable->mu);
  const bool is_in_file = variable->tensor && weir_mapping_has(variable->tensor);
  if (!status && is_in_file) status = write_locked(variable, take_tensor);
  else if (!status) status = leave_locked(variable, take_tensor);
  if (!status && !is_in_file) {
    unused = variable->tensor;
    variable->tensor = take_tensor;
  }
  weir_mutex_unlock(&variable->mu);
  weir_tensor_release(unused);  // outside the lock: freeing may take long
  return status;
}

weir_status_t* weir_variable_make_sole_locked(weir_variable_t* variable, const char* what) {
  if (!variable->tensor) {
    return WEIR_STATUS(FAILED_PRECONDITION, "Attempting to use uninitialized value %s", what);
  }
  if (weir_mapping_has(variable->tensor)) return weir_mapping_check(variable->tensor);
  if (weir_tensor_is_sole(variable->tensor)) return NULL;
  weir_tensor_t* copy = NULL;
  WEIR_TRY(weir_tensor_copy(variable->tensor, &copy));
  copy->is_variable = variable->is_ref;
  weir_status_t* status = leave_locked(variable, copy);
  if (status) {
    weir_tensor_release(copy);
    return status;
  }
  weir_tensor_release(variable->tensor);
  variable->tensor = copy;
  return NULL;
}

weir_status_t* weir_variable_make_sole_with_locked(weir_variable_t* variable, const char* what,
                                                   weir_tensor_t** input) {
  const weir_tensor_t* root = (*input)->root ? (*input)->root : *input;
  bool is_own = variable->is_ref && root == variable->tensor;
  WEIR_TRY(weir_variable_make_sole_locked(variable, what));
  return is_own ? weir_tensor_move(input, variable->tensor) : NULL;
}
