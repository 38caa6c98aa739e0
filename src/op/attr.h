// attr.h — Attribute values of nodes, and typed access to them.
//
// Values live in the arena of the graph or registry that owns the node; tensors within are
// references it holds. Immutable after create.
#ifndef WEIR_OP_ATTR_H_
#define WEIR_OP_ATTR_H_

#include "base/alloc.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

typedef enum weir_attr_kind_t {
  WEIR_ATTR_NONE = 0,
  WEIR_ATTR_STRING,
  WEIR_ATTR_INT,
  WEIR_ATTR_FLOAT,
  WEIR_ATTR_BOOL,
  WEIR_ATTR_TYPE,
  WEIR_ATTR_SHAPE,
  WEIR_ATTR_TENSOR,
  WEIR_ATTR_FUNC,
  WEIR_ATTR_PLACEHOLDER,  // within function bodies: the name of the function's attribute to take
                          // the value from, in .s
} weir_attr_kind_t;

typedef struct weir_attr_t weir_attr_t;
typedef struct weir_named_attr_t weir_named_attr_t;

// All attributes of one node, in the order of the op definition, extra ones (names beginning with
// '_') after.
typedef struct weir_attrs_t {
  const weir_named_attr_t* items;
  size_t count;
} weir_attrs_t;

// A function by name with the attributes to instantiate it with.
typedef struct weir_func_t {
  weir_view_t name;
  weir_attrs_t attrs;
} weir_func_t;

struct weir_attr_t {
  weir_attr_kind_t
      kind;  // of the value, or of each element of a list; NONE is an empty list of no known kind
  bool is_list;
  size_t count;  // lists: the number of elements
  union {
    weir_view_t s;  // STRING, PLACEHOLDER
    int64_t i;
    float f;
    bool b;
    weir_dtype_t type;
    const weir_shape_t* shape;
    weir_tensor_t* tensor;
    const weir_func_t* func;
    const weir_view_t* strings;
    const int64_t* ints;
    const float* floats;
    const bool* bools;
    const weir_dtype_t* types;
    const weir_shape_t* const* shapes;
    weir_tensor_t* const* tensors;
    const weir_func_t* funcs;
  } u;
  weir_view_t raw;  // the AttrValue message it was read from; empty when built in memory
};

struct weir_named_attr_t {
  const char* name;
  weir_attr_t value;
};

// NULL when absent.
const weir_attr_t* weir_attrs_find(weir_attrs_t attrs, const char* name);

// Typed access. The graph has checked every attribute of a registered op against its definition, so
// these abort on a name the op does not declare; they are for shape functions, gradients and
// kernels.
int64_t weir_attrs_int(weir_attrs_t attrs, const char* name);
float weir_attrs_float(weir_attrs_t attrs, const char* name);
bool weir_attrs_bool(weir_attrs_t attrs, const char* name);
weir_dtype_t weir_attrs_type(weir_attrs_t attrs, const char* name);
weir_view_t weir_attrs_string(weir_attrs_t attrs, const char* name);
const weir_shape_t* weir_attrs_shape(weir_attrs_t attrs, const char* name);
weir_tensor_t* weir_attrs_tensor(weir_attrs_t attrs, const char* name);
const weir_func_t* weir_attrs_func(weir_attrs_t attrs, const char* name);
const weir_attr_t* weir_attrs_list(weir_attrs_t attrs,
                                   const char* name);  // a list: count and u.ints etc.

// Building values: weir_attr_int("axis", 1). Views and arrays are borrowed until the builder copies
// them.
weir_named_attr_t weir_attr_int(const char* name, int64_t value);
weir_named_attr_t weir_attr_float(const char* name, float value);
weir_named_attr_t weir_attr_bool(const char* name, bool value);
weir_named_attr_t weir_attr_type(const char* name, weir_dtype_t value);
weir_named_attr_t weir_attr_string(const char* name, const char* value);
weir_named_attr_t weir_attr_view(const char* name, weir_view_t value);
weir_named_attr_t weir_attr_shape(const char* name, const weir_shape_t* value);
weir_named_attr_t weir_attr_tensor(const char* name, weir_tensor_t* value);
weir_named_attr_t weir_attr_func(const char* name, const weir_func_t* value);
weir_named_attr_t weir_attr_ints(const char* name, const int64_t* values, size_t count);
weir_named_attr_t weir_attr_floats(const char* name, const float* values, size_t count);
weir_named_attr_t weir_attr_types(const char* name, const weir_dtype_t* values, size_t count);
weir_named_attr_t weir_attr_strings(const char* name, const weir_view_t* values, size_t count);
weir_named_attr_t weir_attr_shapes(const char* name, const weir_shape_t* const* values,
                                   size_t count);
weir_named_attr_t weir_attr_copy(const char* name,
                                 const weir_attr_t* value);  // the same value under |name|
#define WEIR_ATTRS(...)                                  \
  ((weir_attrs_t){                                       \
      .items = (const weir_named_attr_t[]){__VA_ARGS__}, \
      .count = sizeof((const weir_named_attr_t[]){__VA_ARGS__}) / sizeof(weir_named_attr_t)})
#define WEIR_NO_ATTRS ((weir_attrs_t){.items = NULL, .count = 0})

// AttrValue messages. Parsing copies into |arena| all but the bytes of |proto| itself, which must
// outlive the value (raw and strings point into it). Tensors parsed are appended to |tensors|,
// which holds their references.
typedef struct weir_tensor_list_t {
  weir_tensor_t** items;
  size_t count;
  size_t capacity;
} weir_tensor_list_t;
WEIR_MUST_USE weir_status_t* weir_tensor_list_add(weir_tensor_list_t* list,
                                                  weir_tensor_t* take_tensor);
void weir_tensor_list_free(weir_tensor_list_t* list);

WEIR_MUST_USE weir_status_t* weir_attr_parse(weir_view_t proto, weir_arena_t* arena,
                                             weir_tensor_list_t* tensors, weir_attr_t* out_value);
// The same for a node's attribute, with its name in errors. Names that begin with '_' are notes of
// whoever made the graph, in which shapes may be symbolic.
WEIR_MUST_USE weir_status_t* weir_attr_parse_named(const char* name, weir_view_t proto,
                                                   weir_arena_t* arena, weir_tensor_list_t* tensors,
                                                   weir_attr_t* out_value);
WEIR_MUST_USE weir_status_t* weir_attr_write(const weir_attr_t* value,
                                             weir_strbuf_t* out);  // |raw| where there is one
// The same as an entry of the map |field|, under its name.
WEIR_MUST_USE weir_status_t* weir_attr_write_entry(const weir_named_attr_t* attr, uint32_t field,
                                                   weir_strbuf_t* out);
// Deep copy into |arena|; |tensors| takes references on the tensors within.
WEIR_MUST_USE weir_status_t* weir_attr_clone(const weir_attr_t* value, weir_arena_t* arena,
                                             weir_tensor_list_t* tensors, weir_attr_t* out_value);
bool weir_attr_equal(const weir_attr_t* a, const weir_attr_t* b);  // by value, tensors bit for bit
uint64_t weir_attr_hash(const weir_attr_t* value);
void weir_attr_append_text(const weir_attr_t* value,
                           weir_strbuf_t* out);  // for messages: 3, "SAME", [1,2], float

#endif  // WEIR_OP_ATTR_H_
