// resource.h — The resource manager: state that outlives a step, by container, name and type.
// Thread-safe.
//
// Variables, queues, stacks, TensorArrays, accumulators, tables live here. Sessions of a task share
// one manager; each step has one of its own for what dies with the step.
#ifndef WEIR_OP_RESOURCE_H_
#define WEIR_OP_RESOURCE_H_

#include "base/string.h"
#include "base/thread.h"
#include "tensor/handle.h"

typedef struct weir_resource_t weir_resource_t;
typedef struct weir_resource_type_t {
  const char* name;                            // "Variable", for messages and tools
  void (*destroy)(weir_resource_t* resource);  // required: the last reference is gone
  void (*close)(weir_resource_t*
                    resource);  // optional: removed from the manager: wake and fail whoever waits
  void (*describe)(weir_resource_t* resource, weir_strbuf_t* out);  // optional: one line for tools
} weir_resource_type_t;
struct weir_resource_t {  // every resource starts with this
  const weir_resource_type_t* type;
  weir_ref_t ref;
};
void weir_resource_init(weir_resource_t* resource, const weir_resource_type_t* type);
weir_resource_t* weir_resource_retain(weir_resource_t* resource);
void weir_resource_release(weir_resource_t* resource);

typedef struct weir_resources_t weir_resources_t;
WEIR_MUST_USE weir_status_t* weir_resources_create(const char* default_container,
                                                   weir_resources_t** out_resources);
void weir_resources_destroy(weir_resources_t* resources);

// Makes room for the state of |count| devices: the manager itself is the first one's, every other
// has one of its own that lives as long. Clearing, visiting and describing are of all.
WEIR_MUST_USE weir_status_t* weir_resources_reserve(weir_resources_t* resources, int count);
// That of device |ordinal|, less than what was reserved.
weir_resources_t* weir_resources_of(weir_resources_t* resources, int ordinal);

// An empty container means the default one. Looks up and retains.
// NOT_FOUND "Resource <container>/<name>/<type> does not exist"; a name that holds another type is
// NOT_FOUND too.
WEIR_MUST_USE weir_status_t* weir_resources_find(weir_resources_t* resources, weir_view_t container,
                                                 weir_view_t name, const weir_resource_type_t* type,
                                                 weir_resource_t** out_resource);
// Finds or creates; |create| is called at most once, outside no lock. The result is retained for
// the caller.
typedef weir_status_t* (*weir_resource_create_fn_t)(void* arg, weir_resource_t** out_resource);
WEIR_MUST_USE weir_status_t* weir_resources_find_or_create(weir_resources_t* resources,
                                                           weir_view_t container, weir_view_t name,
                                                           const weir_resource_type_t* type,
                                                           weir_resource_create_fn_t create,
                                                           void* arg,
                                                           weir_resource_t** out_resource);
// Adds, consuming |take_resource| also on failure. ALREADY_EXISTS when the place is taken.
WEIR_MUST_USE weir_status_t* weir_resources_add(weir_resources_t* resources, weir_view_t container,
                                                weir_view_t name, weir_resource_t* take_resource);
WEIR_MUST_USE weir_status_t* weir_resources_remove(weir_resources_t* resources,
                                                   weir_view_t container, weir_view_t name,
                                                   const weir_resource_type_t* type);  // NOT_FOUND
void weir_resources_clear(weir_resources_t* resources,
                          weir_view_t container);  // Reset of one container
void weir_resources_clear_all(weir_resources_t* resources);
// Calls |fn| for every resource of |type|, with the manager locked: |fn| must not come back to it.
typedef void (*weir_resource_visit_fn_t)(void* arg, const char* container, const char* name,
                                         weir_resource_t* resource);
void weir_resources_visit(weir_resources_t* resources, const weir_resource_type_t* type,
                          weir_resource_visit_fn_t fn, void* arg);
void weir_resources_describe(weir_resources_t* resources, weir_strbuf_t* out);

// ---- variables: both the ref and the resource kind ----
// Readers retain the tensor and go; a writer that finds it shared writes a copy. So nothing is read
// torn. What was read of a resource variable is a snapshot. What was read of a reference variable
// is outdated after a write and follows it (tensor.h, "tensors that move"), as TensorFlow's does,
// which shares the memory; only when the variable takes on another size does it stay behind.
typedef struct weir_variable_t {
  weir_resource_t base;
  weir_mutex_t mu;
  weir_tensor_t* tensor;  // guarded by mu; NULL while uninitialised
  weir_dtype_t dtype;     // immutable
  bool is_ref;            // immutable: handed out by reference
  weir_shape_t* shape;    // declared; immutable, owned; NULL: any
  weir_mutex_t left_mu;   // taken after mu
  struct left_t* left;    // memories left while others read them; guarded by left_mu
} weir_variable_t;
extern const weir_resource_type_t weir_variable_type;
WEIR_MUST_USE weir_status_t* weir_variable_create(weir_dtype_t dtype, const weir_shape_t* shape,
                                                  weir_variable_t** out);
WEIR_MUST_USE weir_status_t* weir_variable_create_ref(weir_dtype_t dtype, const weir_shape_t* shape,
                                                      weir_variable_t** out);
// Retains and returns the value, NULL while uninitialised. One that lies in a file may change as it
// is looked at: with the lock held it does not.
weir_tensor_t* weir_variable_read(weir_variable_t* variable);
// The same of what nobody writes to: a copy where the variable lies in a file. NULL as above.
WEIR_MUST_USE weir_status_t* weir_variable_snapshot(weir_variable_t* variable,
                                                    weir_tensor_t** out_tensor);
// Gives a resource variable another value, which lies in a shared mapping (file/mapping.h): from
// now on writes are made there, whoever holds it, assignments too, and its shape stays.
void weir_variable_put_in_file(weir_variable_t* variable, weir_tensor_t* take_tensor);
// Replaces the value; consumes |take_tensor| also on failure. A reference variable copies it unless
// nobody else holds it; a resource variable copies memory of a reference variable.
WEIR_MUST_USE weir_status_t* weir_variable_assign(weir_variable_t* variable,
                                                  weir_tensor_t* take_tensor);
// Makes |variable->tensor| safe to write in place: copies it when others hold it. mu must be held.
// FAILED_PRECONDITION naming |what| when uninitialised.
WEIR_MUST_USE weir_status_t* weir_variable_make_sole_locked(weir_variable_t* variable,
                                                            const char* what);
// The same for a write that reads |input| as it goes. Where that is the memory of a reference
// variable itself it follows the variable: the write reads what it has written before.
WEIR_MUST_USE weir_status_t* weir_variable_make_sole_with_locked(weir_variable_t* variable,
                                                                 const char* what,
                                                                 weir_tensor_t** input);

#endif  // WEIR_OP_RESOURCE_H_
