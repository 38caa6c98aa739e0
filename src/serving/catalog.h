// catalog.h — The models that are served: their folders are looked at again and again, new versions
// are loaded and old ones let go while requests run.
//
// Thread-safe. A version lives as long as someone holds it: requests end on the one they began on.
#ifndef WEIR_SERVING_CATALOG_H_
#define WEIR_SERVING_CATALOG_H_

#include "base/base.h"
#include "base/string.h"
#include "base/thread.h"
#include "weir/model.h"

typedef struct weir_catalog_t weir_catalog_t;
typedef struct weir_lanes_t weir_lanes_t;

// How requests of one kind are joined (batch.h).
typedef struct weir_lanes_options_t {
  int64_t max_rows;  // of a joined run
  int64_t
      timeout_us;     // so long the first one waits for others; 0: it takes those that wait already
  int max_runs;       // of one kind of requests, at a time
  weir_pool_t* pool;  // answers of joined requests are made on it
} weir_lanes_options_t;

// What clients ask for a version by. TensorFlow Serving's ModelSpec.
typedef struct weir_model_spec_t {
  weir_view_t name;
  bool has_version;
  int64_t version;
  weir_view_t label;      // empty: none
  weir_view_t signature;  // empty: the default
} weir_model_spec_t;

// A version that can be run. Immutable.
typedef struct weir_version_t {
  weir_ref_t ref;
  int64_t number;
  const char* model_name;  // borrowed: the catalog's
  weir_model_t* model;
  weir_lanes_t* lanes;  // requests that are joined (batch.h); NULL: they are not
} weir_version_t;
void weir_version_release(weir_version_t* version);  // NULL-safe

// TensorFlow Serving's states.
typedef enum weir_version_state_t {
  WEIR_VERSION_UNKNOWN = 0,
  WEIR_VERSION_START = 10,
  WEIR_VERSION_LOADING = 20,
  WEIR_VERSION_AVAILABLE = 30,
  WEIR_VERSION_UNLOADING = 40,
  WEIR_VERSION_END = 50,
} weir_version_state_t;
const char* weir_version_state_name(weir_version_state_t state);

typedef struct weir_catalog_options_t {
  int keep;     // so many of the newest versions serve; 0: one; negative: all
  int poll_ms;  // 0: a second; negative: never
  int threads;  // of a model's session
  bool warms_with_zeros;
  const weir_lanes_options_t* batching;  // borrowed; NULL: requests run one by one
} weir_catalog_options_t;

WEIR_MUST_USE weir_status_t* weir_catalog_create(const weir_catalog_options_t* options,
                                                 weir_catalog_t** out_catalog);
// "NAME=DIR" or "DIR", whose last part then is the name. Before start.
WEIR_MUST_USE weir_status_t* weir_catalog_add(weir_catalog_t* catalog, const char* spec);
// "NAME=VERSION" or "MODEL/NAME=VERSION": of the only model, without one. Before start.
WEIR_MUST_USE weir_status_t* weir_catalog_add_label(weir_catalog_t* catalog, const char* spec);
// Loads what there is and goes on looking. Fails when a model has no version that loads.
WEIR_MUST_USE weir_status_t* weir_catalog_start(weir_catalog_t* catalog);
void weir_catalog_destroy(weir_catalog_t* catalog);  // NULL-safe; nobody holds a version any more

// The version, retained. NOT_FOUND as TensorFlow Serving has it.
WEIR_MUST_USE weir_status_t* weir_catalog_find(weir_catalog_t* catalog,
                                               const weir_model_spec_t* spec,
                                               weir_version_t** out_version);
// Calls |visit| for the versions of the model, newest first; all, or the one asked for. |message|:
// why it failed; "" for OK. NOT_FOUND: no such model or version.
typedef void (*weir_version_fn_t)(void* arg, int64_t number, weir_version_state_t state,
                                  weir_code_t code, const char* message);
WEIR_MUST_USE weir_status_t* weir_catalog_visit(weir_catalog_t* catalog,
                                                const weir_model_spec_t* spec,
                                                weir_version_fn_t visit, void* arg);
// Whether each model has a version that serves.
bool weir_catalog_is_ready(weir_catalog_t* catalog);
// Ends the runs of all versions that serve, with CANCELLED.
void weir_catalog_cancel(weir_catalog_t* catalog);
int weir_catalog_model_count(const weir_catalog_t* catalog);
const char* weir_catalog_model_name(const weir_catalog_t* catalog, int index);  // borrowed

#endif  // WEIR_SERVING_CATALOG_H_
