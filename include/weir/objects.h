// objects.h — Checkpoints of TensorFlow 2's objects (tf.train.Checkpoint, tf.Module, Keras models
// in that format): their values by the way that leads to an object, into the variables of a session
// and out of them.
//
//   weir_objects_t* objects = NULL;
//   check(weir_objects_open("runs/ckpt-1", &objects));
//   check(weir_objects_read(objects, "model/layers/0/kernel", &kernel));
//   check(weir_objects_restore(objects, session, NULL, 0));
//   check(weir_objects_save(session, "runs/ckpt-2", NULL, 0));
//
// The same files are open to weir/checkpoint.h, by keys. Threading: reading is thread-safe.
#ifndef WEIR_OBJECTS_H_
#define WEIR_OBJECTS_H_

#include "weir/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_objects_t weir_objects_t;

// A value of an object. Borrowed, as long as the objects are open.
typedef struct weir_object_value_t {
  // The names of attributes, list places or keys from the root to the object, the fewest that there
  // are, joined by '/'. Within a name TensorFlow writes ".S" for '/' and ".." for '.'. Where none
  // lead there (slots of optimizers), what stands before "/.ATTRIBUTES/" in the key.
  const char* path;
  const char* attribute;  // "VARIABLE_VALUE" for variables; tables and others have their own
  const char* name;       // what the variable was called; "" where that was not written
  const char* key;        // of its tensor in the checkpoint
} weir_object_value_t;

// Opens a checkpoint as weir_checkpoint_open does. FAILED_PRECONDITION when it is none of objects;
// DATA_LOSS when it says of them what cannot be.
WEIR_API WEIR_MUST_USE weir_status_t* weir_objects_open(const char* path,
                                                        weir_objects_t** out_objects);
WEIR_API void weir_objects_close(weir_objects_t* objects);  // NULL is fine
// Sorted by path.
WEIR_API size_t weir_objects_count(const weir_objects_t* objects);
WEIR_API const weir_object_value_t* weir_objects_at(const weir_objects_t* objects, size_t index);
// The value of the variable that |path| leads to, by any names, not only the fewest. NULL: none.
WEIR_API const weir_object_value_t* weir_objects_find(const weir_objects_t* objects,
                                                      const char* path);
// Reads it, the caller's to release. NOT_FOUND suggests a path that is like it.
WEIR_API WEIR_MUST_USE weir_status_t* weir_objects_read(const weir_objects_t* objects,
                                                        const char* path,
                                                        weir_tensor_t** out_tensor);

// A variable of a session's graph, or a table that can change, and the object whose value or
// entries it gets.
typedef struct weir_object_variable_t {
  const char* variable;
  const char* path;
} weir_object_variable_t;
// Gives |count| variables the values of objects. |variables| NULL: every variable of the graph, but
// no table, each from the object that was called as it is. None changes on failure: NOT_FOUND names
// a variable or a path, INVALID_ARGUMENT a variable with both types or shapes, or a name that
// several objects had.
WEIR_API WEIR_MUST_USE weir_status_t* weir_objects_restore(const weir_objects_t* objects,
                                                           weir_session_t* session,
                                                           const weir_object_variable_t* variables,
                                                           int count);

// Writes the checkpoint |prefix| as tf.train.Checkpoint.write does, for its read: the values that
// |count| variables of a session in this process have, each as that of the object that its path
// leads to. |variables| NULL: all of the graph, but no table, by their names: "dense/kernel" is the
// kernel of "dense". It appears when it is whole; steps that run meanwhile may be in some values
// and not in others. INVALID_ARGUMENT names what is no path, or one of two variables;
// FAILED_PRECONDITION a variable that is not initialised.
WEIR_API WEIR_MUST_USE weir_status_t* weir_objects_save(weir_session_t* session, const char* prefix,
                                                        const weir_object_variable_t* variables,
                                                        int count);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_OBJECTS_H_
