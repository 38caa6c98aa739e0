// status.c — TF_Status: code, text and payloads.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensorflow/internal.h"

typedef struct payload_t {
  char* key;  // owned, like |value|
  char* value;
  struct payload_t* next;
} payload_t;

struct TSL_Status {
  TF_Code code;
  char* message;  // owned; NULL: ""
  payload_t* payloads;
};

static void free_payloads(TF_Status* s) {
  for (payload_t *payload = s->payloads, *next; payload; payload = next) {
    next = payload->next;
    weir_free(payload->key);
    weir_free(payload->value);
    weir_free(payload);
  }
  s->payloads = NULL;
}

// Without a status no function of the API can say anything: there is no way on.
TF_Status* TF_NewStatus(void) {
  TF_Status* s = weir_calloc(1, sizeof(*s));
  WEIR_CHECK(s);
  return s;
}

void TF_DeleteStatus(TF_Status* s) {
  if (!s) return;
  free_payloads(s);
  weir_free(s->message);
  weir_free(s);
}

void TF_SetStatus(TF_Status* s, TF_Code code, const char* msg) {
  char* message = code != TF_OK && msg ? weir_strdup(msg) : NULL;  // |msg| may be the one it has
  free_payloads(s);
  weir_free(s->message);
  s->code = code;
  s->message = message;
}

TF_Code TF_GetCode(const TF_Status* s) { return s->code; }
const char* TF_Message(const TF_Status* s) { return s->message ? s->message : ""; }

// ---- payloads ----

static payload_t* find_payload(TF_Status* s, const char* key) {
  payload_t* payload = s->payloads;
  while (payload && strcmp(payload->key, key)) payload = payload->next;
  return payload;
}

void TF_SetPayload(TF_Status* s, const char* key, const char* value) {
  if (s->code == TF_OK) return;
  char* copy = weir_strdup(value);
  payload_t* payload = find_payload(s, key);
  if (payload && copy) {
    weir_free(payload->value);
    payload->value = copy;
    return;
  }
  payload_t* added = weir_calloc(1, sizeof(*added));
  char* name = weir_strdup(key);
  if (!copy || !added || !name) {  // as a status has no status, the payload is lost
    weir_free(copy);
    weir_free(added);
    weir_free(name);
    return;
  }
  *added = (payload_t){.key = name, .value = copy, .next = s->payloads};
  s->payloads = added;
}

void TF_ForEachPayload(const TF_Status* s, TF_PayloadVisitor visitor, void* capture) {
  for (const payload_t* payload = s->payloads; payload; payload = payload->next)
    visitor(payload->key, payload->value, capture);
}

// ---- errno ----

// By the code that TensorFlow has for it; all others are UNKNOWN.
static const struct {
  int error;
  TF_Code code;
} io_codes[] = {
    {0, TF_OK},
    {EINVAL, TF_INVALID_ARGUMENT},
    {ENAMETOOLONG, TF_INVALID_ARGUMENT},
    {E2BIG, TF_INVALID_ARGUMENT},
    {EDESTADDRREQ, TF_INVALID_ARGUMENT},
    {EDOM, TF_INVALID_ARGUMENT},
    {EFAULT, TF_INVALID_ARGUMENT},
    {EILSEQ, TF_INVALID_ARGUMENT},
    {ENOPROTOOPT, TF_INVALID_ARGUMENT},
    {ENOSTR, TF_INVALID_ARGUMENT},
    {ENOTSOCK, TF_INVALID_ARGUMENT},
    {ENOTTY, TF_INVALID_ARGUMENT},
    {EPROTOTYPE, TF_INVALID_ARGUMENT},
    {ESPIPE, TF_INVALID_ARGUMENT},
    {ETIMEDOUT, TF_DEADLINE_EXCEEDED},
    {ETIME, TF_DEADLINE_EXCEEDED},
    {ENODEV, TF_NOT_FOUND},
    {ENOENT, TF_NOT_FOUND},
    {ENXIO, TF_NOT_FOUND},
    {ESRCH, TF_NOT_FOUND},
    {EEXIST, TF_ALREADY_EXISTS},
    {EADDRNOTAVAIL, TF_ALREADY_EXISTS},
    {EALREADY, TF_ALREADY_EXISTS},
    {EPERM, TF_PERMISSION_DENIED},
    {EACCES, TF_PERMISSION_DENIED},
    {EROFS, TF_PERMISSION_DENIED},
    {ENOTEMPTY, TF_FAILED_PRECONDITION},
    {EISDIR, TF_FAILED_PRECONDITION},
    {ENOTDIR, TF_FAILED_PRECONDITION},
    {EADDRINUSE, TF_FAILED_PRECONDITION},
    {EBADF, TF_FAILED_PRECONDITION},
    {EBUSY, TF_FAILED_PRECONDITION},
    {ECHILD, TF_FAILED_PRECONDITION},
    {EISCONN, TF_FAILED_PRECONDITION},
    {ENOTCONN, TF_FAILED_PRECONDITION},
    {EPIPE, TF_FAILED_PRECONDITION},
    {ETXTBSY, TF_FAILED_PRECONDITION},
    {ENOSPC, TF_RESOURCE_EXHAUSTED},
    {EDQUOT, TF_RESOURCE_EXHAUSTED},
    {EMFILE, TF_RESOURCE_EXHAUSTED},
    {EMLINK, TF_RESOURCE_EXHAUSTED},
    {ENFILE, TF_RESOURCE_EXHAUSTED},
    {ENOBUFS, TF_RESOURCE_EXHAUSTED},
    {ENOMEM, TF_RESOURCE_EXHAUSTED},
    {EUSERS, TF_RESOURCE_EXHAUSTED},
    {EFBIG, TF_OUT_OF_RANGE},
    {EOVERFLOW, TF_OUT_OF_RANGE},
    {ERANGE, TF_OUT_OF_RANGE},
    {ENOSYS, TF_UNIMPLEMENTED},
    {ENOTSUP, TF_UNIMPLEMENTED},
    {EAFNOSUPPORT, TF_UNIMPLEMENTED},
    {EPFNOSUPPORT, TF_UNIMPLEMENTED},
    {EPROTONOSUPPORT, TF_UNIMPLEMENTED},
    {ESOCKTNOSUPPORT, TF_UNIMPLEMENTED},
    {EXDEV, TF_UNIMPLEMENTED},
    {EAGAIN, TF_UNAVAILABLE},
    {ECONNREFUSED, TF_UNAVAILABLE},
    {ECONNABORTED, TF_UNAVAILABLE},
    {ECONNRESET, TF_UNAVAILABLE},
    {EINTR, TF_UNAVAILABLE},
    {EHOSTDOWN, TF_UNAVAILABLE},
    {EHOSTUNREACH, TF_UNAVAILABLE},
    {ENETDOWN, TF_UNAVAILABLE},
    {ENETRESET, TF_UNAVAILABLE},
    {ENETUNREACH, TF_UNAVAILABLE},
    {ENOLCK, TF_UNAVAILABLE},
    {ENOLINK, TF_UNAVAILABLE},
    {EDEADLK, TF_ABORTED},
    {ESTALE, TF_ABORTED},
    {ECANCELED, TF_CANCELLED},
};

void TF_SetStatusFromIOError(TF_Status* s, int error_code, const char* context) {
  TF_Code code = TF_UNKNOWN;
  for (size_t i = 0; i < WEIR_COUNT_OF(io_codes); ++i) {
    if (io_codes[i].error == error_code) code = io_codes[i].code;
  }
  char text[512];
  snprintf(text, sizeof(text), "%s; %s", context, strerror(error_code));
  TF_SetStatus(s, code, text);
}

// ---- to and from Weir's ----

bool tf_status_take(TF_Status* out, weir_status_t* take_status) {
  const bool is_ok = !take_status;
  if (!out) {  // a caller that does not want to know
    weir_status_destroy(take_status);
    return is_ok;
  }
  TF_SetStatus(out, (TF_Code)weir_status_code(take_status), weir_status_message(take_status));
  weir_status_destroy(take_status);
  return is_ok;
}

void tf_status_clear(TF_Status* out) { TF_SetStatus(out, TF_OK, ""); }

weir_status_t* tf_status_to_weir(const TF_Status* status) {
  if (status->code == TF_OK) return NULL;
  return weir_status_create((weir_code_t)status->code, __FILE__, __LINE__, "%s",
                            TF_Message(status));
}
