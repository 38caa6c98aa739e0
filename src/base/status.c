// status.c — The status record, the static out-of-memory status, and failed checks.
#include "weir/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#define WEIR_HAVE_BACKTRACE 1
#endif

#include "base/alloc.h"
#include "base/details.h"
#include "base/live.h"
#include "weir/argument.h"

struct weir_status_t {
  weir_code_t code;
  int line;
  const char* file;     // static: a __FILE__
  const char* message;  // |text|, or a literal for the static status
  weir_view_t details;  // behind the message
  char text[];          // the message, its zero, the details
};

// Never freed and never changed, so that reporting exhausted memory needs none.
static weir_status_t out_of_memory = {.code = WEIR_RESOURCE_EXHAUSTED,
                                      .line = __LINE__,
                                      .file = __FILE__,
                                      .message = "out of memory"};

// In parentheses, since tools/tidy.h has a macro of that name.
weir_status_t*(weir_out_of_memory)(void) { return &out_of_memory; }

static weir_status_t* status_alloc(weir_code_t code, const char* file, int line, size_t size,
                                   weir_view_t details) {
  weir_status_t* status = weir_malloc(sizeof(*status) + size + 1 + details.size);
  if (!status) return NULL;
  status->code = code;
  status->file = file ? file : "";
  status->line = line;
  status->message = status->text;
  status->text[0] = '\0';
  status->text[size] = '\0';
  status->details = weir_view(status->text + size + 1, details.size);
  if (details.size) memcpy(status->text + size + 1, details.data, details.size);
  return status;
}

weir_view_t weir_status_details(const weir_status_t* status) {
  return status && status->details.size ? status->details : weir_view("", 0);
}

weir_status_t* weir_status_create(weir_code_t code, const char* file, int line, const char* format,
                                  ...) {
  if (code == WEIR_OK) return NULL;
  if (!format) format = "";
  va_list args;
  va_start(args, format);
  va_list measure;
  va_copy(measure, args);
  int size = vsnprintf(NULL, 0, format, measure);
  va_end(measure);
  if (size < 0) size = 0;  // an encoding error of the format: the code still matters
  weir_status_t* status = status_alloc(code, file, line, (size_t)size, weir_view("", 0));
  if (status && size > 0) vsnprintf(status->text, (size_t)size + 1, format, args);
  va_end(args);
  return status ? status : &out_of_memory;
}

weir_status_t* weir_status_prefix(weir_status_t* take_status, const char* format, ...) {
  if (!take_status || !format) return take_status;
  va_list args;
  va_start(args, format);
  va_list measure;
  va_copy(measure, args);
  int prefix = vsnprintf(NULL, 0, format, measure);
  va_end(measure);
  if (prefix < 0) prefix = 0;
  size_t size = strlen(take_status->message);
  weir_status_t* status = status_alloc(take_status->code, take_status->file, take_status->line,
                                       (size_t)prefix + size, weir_status_details(take_status));
  if (status) {
    if (prefix > 0) vsnprintf(status->text, (size_t)prefix + 1, format, args);
    memcpy(status->text + prefix, take_status->message, size);
    weir_status_destroy(take_status);
  }
  va_end(args);
  return status ? status : take_status;  // without memory the shorter message has to do
}

static weir_status_t* copy_with(const weir_status_t* status, weir_view_t details) {
  size_t size = strlen(status->message);
  weir_status_t* copy = status_alloc(status->code, status->file, status->line, size, details);
  if (copy) memcpy(copy->text, status->message, size);
  return copy;
}

weir_status_t* weir_status_copy(const weir_status_t* status) {
  if (!status) return NULL;
  if (status == &out_of_memory) return &out_of_memory;
  weir_status_t* copy = copy_with(status, weir_status_details(status));
  return copy ? copy : &out_of_memory;
}

weir_status_t* weir_status_with_details(weir_status_t* take_status, weir_view_t details) {
  if (!take_status || take_status == &out_of_memory) return take_status;
  weir_status_t* status = copy_with(take_status, details);
  if (!status) return take_status;
  weir_status_destroy(take_status);
  return status;
}

weir_code_t weir_status_code(const weir_status_t* status) {
  return status ? status->code : WEIR_OK;
}

const char* weir_status_message(const weir_status_t* status) {
  return status ? status->message : "";
}

const char* weir_code_name(weir_code_t code) {
  static const char* const names[] = {"OK",
                                      "CANCELLED",
                                      "UNKNOWN",
                                      "INVALID_ARGUMENT",
                                      "DEADLINE_EXCEEDED",
                                      "NOT_FOUND",
                                      "ALREADY_EXISTS",
                                      "PERMISSION_DENIED",
                                      "RESOURCE_EXHAUSTED",
                                      "FAILED_PRECONDITION",
                                      "ABORTED",
                                      "OUT_OF_RANGE",
                                      "UNIMPLEMENTED",
                                      "INTERNAL",
                                      "UNAVAILABLE",
                                      "DATA_LOSS",
                                      "UNAUTHENTICATED"};
  return (size_t)code < WEIR_COUNT_OF(names) ? names[code] : "UNKNOWN";
}

void weir_status_destroy(weir_status_t* status) {
  if (status != &out_of_memory) weir_free(status);
}

bool weir_status_report(weir_status_t* take_status) {
  if (!take_status) return false;
  fprintf(stderr, "%s: %s (%s:%d)\n", weir_code_name(take_status->code), take_status->message,
          take_status->file, take_status->line);
  weir_status_destroy(take_status);
  return true;
}

void weir_check_failed(const char* condition, const char* file, int line) {
  fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  fflush(stderr);
  abort();
}

// Names of the functions on the stack, where the C library can tell them.
static void print_calls(void) {
#ifdef WEIR_HAVE_BACKTRACE
  void* frames[32];
  backtrace_symbols_fd(frames, backtrace(frames, (int)WEIR_COUNT_OF(frames)), STDERR_FILENO);
#endif
}

static __attribute__((noreturn)) void abort_on(const char* function, const char* argument,
                                               const char* fault) {
  fprintf(stderr, "%s: %s %s\n", function, argument, fault);
  fflush(stderr);
  print_calls();
  abort();
}

void weir_abort_null(const char* function, const char* argument) {
  abort_on(function, argument, "is NULL");
}

void weir_abort_ended(const char* function, const char* argument) {
  abort_on(function, argument, "was destroyed before");
}
