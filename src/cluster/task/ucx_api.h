// ucx_api.h — What is used of UCX (libucp.so.0, libucs.so.0), which is opened at run time: its
// functions, constants and structs as UCX 1.13 has them. UCX promises that those of version 1 stay:
// each struct begins with a mask of the fields that count, and only grows at its end.
//
// Immutable after it is opened. What UCX allows to which threads is up to who calls it.
#ifndef WEIR_CLUSTER_TASK_UCX_API_H_
#define WEIR_CLUSTER_TASK_UCX_API_H_

#include <stddef.h>

#include "base/base.h"

typedef struct ucp_context_t ucp_context_t;
typedef struct ucp_worker_t ucp_worker_t;
typedef struct ucp_endpoint_t ucp_endpoint_t;
typedef struct ucp_config_t ucp_config_t;
typedef int8_t ucs_status_t;  // UCX passes it in a byte

enum {
  UCS_OK = 0,
  UCS_INPROGRESS = 1,
  UCS_ERR_NO_MEMORY = -4,
  UCS_ERR_INVALID_PARAM = -5,
  UCS_ERR_UNREACHABLE = -6,
  UCS_ERR_BUSY = -15,
  UCS_ERR_CANCELED = -16,
  UCS_ERR_LAST = -100,
};

// A request that is under way, or at once its status: 0, or an error in the last 100 addresses.
typedef void* ucs_result_t;
WEIR_INLINE bool ucs_is_error(ucs_result_t result) {
  return (uintptr_t)result >= (uintptr_t)(intptr_t)UCS_ERR_LAST;
}
WEIR_INLINE ucs_status_t ucs_status_of(ucs_result_t result) {
  return (ucs_status_t)(intptr_t)result;
}

enum { UCP_MAJOR = 1, UCP_MINOR = 13 };  // the least version

typedef struct ucp_params_t {
  uint64_t mask;
  uint64_t features;
  uint64_t unused[16];
} ucp_params_t;
enum { UCP_PARAM_FEATURES = 1 << 0 };
enum { UCP_FEATURE_WAKEUP = 1 << 4, UCP_FEATURE_AM = 1 << 6 };

typedef struct ucp_worker_params_t {
  uint64_t mask;
  int thread_mode;  // 0: one thread only
  uint64_t unused[32];
} ucp_worker_params_t;

typedef struct ucp_worker_attr_t {
  uint64_t mask;
  int thread_mode;
  uint32_t address_flags;
  void* address;
  size_t address_size;
  size_t max_header_size;  // of an active message
  uint64_t unused[16];
} ucp_worker_attr_t;
enum { UCP_WORKER_ATTR_MAX_HEADER = 1 << 3 };

typedef void (*ucp_error_fn_t)(void* arg, ucp_endpoint_t* endpoint, ucs_status_t status);
typedef struct ucp_endpoint_params_t {
  uint64_t mask;
  const void* address;
  int error_mode;  // 1: who has died is noticed
  ucp_error_fn_t error_fn;
  void* error_arg;
  uint64_t unused[16];
} ucp_endpoint_params_t;
enum {
  UCP_ENDPOINT_ADDRESS = 1 << 0,
  UCP_ENDPOINT_ERROR_MODE = 1 << 1,
  UCP_ENDPOINT_ERROR_FN = 1 << 2,
};

typedef void (*ucp_sent_fn_t)(void* request, ucs_status_t status, void* arg);
typedef void (*ucp_received_fn_t)(void* request, ucs_status_t status, size_t size, void* arg);
typedef struct ucp_request_params_t {
  uint32_t mask;
  uint32_t flags;
  void* request;
  union {
    ucp_sent_fn_t sent;
    ucp_received_fn_t received;
  } fn;
  uint64_t datatype;
  void* arg;
  uint64_t unused[16];
} ucp_request_params_t;
enum { UCP_REQUEST_FN = 1 << 1, UCP_REQUEST_ARG = 1 << 2, UCP_REQUEST_FLAGS = 1 << 4 };
enum { UCP_SEND_BY_RENDEZVOUS = 1 << 2 };  // the receiver says where to before it is sent
enum { UCP_CLOSE_AT_ONCE = 1 << 0 };

typedef struct ucp_message_t {
  uint64_t mask;
  ucp_endpoint_t* reply;
} ucp_message_t;
enum { UCP_MESSAGE_IS_RENDEZVOUS = 1 << 17 };  // there is a descriptor for the data, not the data

typedef ucs_status_t (*ucp_message_fn_t)(void* arg, const void* header, size_t header_size,
                                         void* data, size_t size, const ucp_message_t* message);
typedef struct ucp_handler_params_t {
  uint64_t mask;
  unsigned id;
  uint32_t flags;
  ucp_message_fn_t fn;
  void* arg;
  uint64_t unused[8];
} ucp_handler_params_t;
enum { UCP_HANDLER_ID = 1 << 0, UCP_HANDLER_FN = 1 << 2, UCP_HANDLER_ARG = 1 << 3 };

// FUNCTION(type, name, symbol, arguments).
#define WEIR_UCX_FUNCTIONS(FUNCTION)                                                               \
  FUNCTION(void, version, ucp_get_version, (unsigned* major, unsigned* minor, unsigned* release))  \
  FUNCTION(ucs_status_t, read_config, ucp_config_read,                                             \
           (const char* prefix, const char* file, ucp_config_t** out_config))                      \
  FUNCTION(ucs_status_t, set_config, ucp_config_modify,                                            \
           (ucp_config_t * config, const char* name, const char* value))                           \
  FUNCTION(void, free_config, ucp_config_release, (ucp_config_t * config))                         \
  FUNCTION(ucs_status_t, create_context, ucp_init_version,                                         \
           (unsigned major, unsigned minor, const ucp_params_t* params,                            \
            const ucp_config_t* config, ucp_context_t** out_context))                              \
  FUNCTION(void, destroy_context, ucp_cleanup, (ucp_context_t * context))                          \
  FUNCTION(                                                                                        \
      ucs_status_t, create_worker, ucp_worker_create,                                              \
      (ucp_context_t * context, const ucp_worker_params_t* params, ucp_worker_t** out_worker))     \
  FUNCTION(void, destroy_worker, ucp_worker_destroy, (ucp_worker_t * worker))                      \
  FUNCTION(ucs_status_t, query_worker, ucp_worker_query,                                           \
           (ucp_worker_t * worker, ucp_worker_attr_t * attr))                                      \
  FUNCTION(ucs_status_t, get_address, ucp_worker_get_address,                                      \
           (ucp_worker_t * worker, void** out_address, size_t* out_size))                          \
  FUNCTION(void, free_address, ucp_worker_release_address, (ucp_worker_t * worker, void* address)) \
  FUNCTION(ucs_status_t, get_event_fd, ucp_worker_get_efd, (ucp_worker_t * worker, int* out_fd))   \
  FUNCTION(ucs_status_t, arm, ucp_worker_arm, (ucp_worker_t * worker))                             \
  FUNCTION(unsigned, progress, ucp_worker_progress, (ucp_worker_t * worker))                       \
  FUNCTION(ucs_status_t, set_handler, ucp_worker_set_am_recv_handler,                              \
           (ucp_worker_t * worker, const ucp_handler_params_t* params))                            \
  FUNCTION(                                                                                        \
      ucs_status_t, create_endpoint, ucp_ep_create,                                                \
      (ucp_worker_t * worker, const ucp_endpoint_params_t* params, ucp_endpoint_t** out_endpoint)) \
  FUNCTION(ucs_result_t, flush_endpoint, ucp_ep_flush_nbx,                                         \
           (ucp_endpoint_t * endpoint, const ucp_request_params_t* params))                        \
  FUNCTION(ucs_result_t, close_endpoint, ucp_ep_close_nbx,                                         \
           (ucp_endpoint_t * endpoint, const ucp_request_params_t* params))                        \
  FUNCTION(ucs_result_t, send, ucp_am_send_nbx,                                                    \
           (ucp_endpoint_t * endpoint, unsigned id, const void* header, size_t header_size,        \
            const void* data, size_t size, const ucp_request_params_t* params))                    \
  FUNCTION(ucs_result_t, receive, ucp_am_recv_data_nbx,                                            \
           (ucp_worker_t * worker, void* descriptor, void* data, size_t size,                      \
            const ucp_request_params_t* params))                                                   \
  FUNCTION(void, free_request, ucp_request_free, (void* request))

typedef struct ucx_api_t {
#define WEIR_UCX_FIELD(type, name, symbol, arguments) type(*name) arguments;
  WEIR_UCX_FUNCTIONS(WEIR_UCX_FIELD)
#undef WEIR_UCX_FIELD
  const char* (*status_text)(ucs_status_t status);  // of libucs
} ucx_api_t;

// Opens the libraries, once. UNAVAILABLE says what is missing.
WEIR_MUST_USE weir_status_t* weir_ucx_api_open(const ucx_api_t** out_api);
// An error of UCX's in words: "|what|: ...".
weir_status_t* weir_ucx_api_error(const ucx_api_t* api, const char* what, ucs_status_t code);

#endif  // WEIR_CLUSTER_TASK_UCX_API_H_
