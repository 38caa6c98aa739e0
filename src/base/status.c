// status.c — The status record, the static out-of-memory status, and failed checks.
#include "weir/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <dlfcn.h>
#include <execinfo.h>
#define WEIR_HAVE_BACKTRACE 1
#endif

#include "base/alloc.h"
#include "base/details.h"
#include "base/live.h"
#include "weir/argument.h"

// What a status carries beside code and message; see base/details.h.
typedef struct extras_t {
  weir_view_t details;
  weir_view_t node;
  bool has_origin;
  bool has_mark;
} extras_t;

struct weir_status_t {
  weir_code_t code;
  int line;
  const char* file;     // static: a __FILE__
  const char* message;  // |text|, or a literal for the static status
  extras_t extras;      // their bytes are behind the message
  char text[];          // the message, its zero, the details, the node
};

// Never freed and never changed, so that reporting exhausted memory needs none.
static weir_status_t out_of_memory = {.code = WEIR_RESOURCE_EXHAUSTED,
                                      .line = __LINE__,
                                      .file = __FILE__,
                                      .message = "out of memory"};

// In parentheses, since tools/tidy.h has a macro of that name.
weir_status_t*(weir_out_of_memory)(void) { return &out_of_memory; }

static weir_view_t put(char* to, weir_view_t bytes) {
  if (bytes.size) memcpy(to, bytes.data, bytes.size);
  return weir_view(to, bytes.size);
}

// A status with room for a message of |size|.
static weir_status_t* status_alloc(weir_code_t code, const char* file, int line, size_t size,
                                   const extras_t* extras) {
  size_t extra = extras->details.size + extras->node.size;
  weir_status_t* status = weir_malloc(sizeof(*status) + size + 1 + extra);
  if (!status) return NULL;
  status->code = code;
  status->file = file ? file : "";
  status->line = line;
  status->message = status->text;
  status->text[0] = '\0';
  status->text[size] = '\0';
  char* behind = status->text + size + 1;
  status->extras = *extras;
  status->extras.details = put(behind, extras->details);
  status->extras.node = put(behind + extras->details.size, extras->node);
  return status;
}

// Returns a copy of |take_status| with |prefix| before its message, and consumes it. Without
// memory it is returned as it was: the shorter message has to do.
static weir_status_t* remake(weir_status_t* take_status, weir_view_t prefix,
                             const extras_t* extras) {
  if (take_status == &out_of_memory && prefix.size == 0) return take_status;
  size_t size = strlen(take_status->message);
  weir_status_t* status = status_alloc(take_status->code, take_status->file, take_status->line,
                                       prefix.size + size, extras);
  if (!status) return take_status;
  put(status->text, prefix);
  memcpy(status->text + prefix.size, take_status->message, size);
  weir_status_destroy(take_status);
  return status;
}

static bool has_mark(const char* text) { return strstr(text, "{{node ") != NULL; }

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
  weir_status_t* status =
      status_alloc(code, file, line, (size_t)size, &(extras_t){.has_mark = has_mark(format)});
  if (status && size > 0) vsnprintf(status->text, (size_t)size + 1, format, args);
  va_end(args);
  return status ? status : &out_of_memory;
}

// With a prefix, the message is about what the prefix says: |node| and |has_origin| are new.
static weir_status_t* put_before(weir_status_t* take_status, weir_strbuf_t* take_prefix,
                                 weir_view_t node, bool has_origin) {
  extras_t extras = take_status->extras;
  extras.node = node;
  extras.has_origin = has_origin;
  weir_status_t* status = remake(take_status, weir_strbuf_view(take_prefix), &extras);
  weir_strbuf_free(take_prefix);
  return status;
}

weir_status_t* weir_status_prefix(weir_status_t* take_status, const char* format, ...) {
  if (!take_status || !format) return take_status;
  weir_strbuf_t prefix = {0};
  va_list args;
  va_start(args, format);
  weir_strbuf_vprintf(&prefix, format, args);
  va_end(args);
  return put_before(take_status, &prefix, weir_view("", 0), false);
}

weir_status_t* weir_status_copy(const weir_status_t* status) {
  if (!status) return NULL;
  size_t size = strlen(status->message);
  weir_status_t* copy =
      status == &out_of_memory
          ? NULL
          : status_alloc(status->code, status->file, status->line, size, &status->extras);
  if (copy) memcpy(copy->text, status->message, size);
  return copy ? copy : &out_of_memory;
}

weir_status_t* weir_status_append(weir_status_t* take_status, weir_view_t text) {
  if (!take_status || take_status == &out_of_memory || text.size == 0) return take_status;
  size_t size = strlen(take_status->message);
  weir_status_t* status = status_alloc(take_status->code, take_status->file, take_status->line,
                                       size + text.size, &take_status->extras);
  if (!status) return take_status;
  memcpy(status->text, take_status->message, size);
  put(status->text + size, text);
  weir_status_destroy(take_status);
  return status;
}

// ---- what a status carries beside code and message ----

weir_status_t* weir_status_with_details(weir_status_t* take_status, weir_view_t details) {
  if (!take_status) return NULL;
  extras_t extras = take_status->extras;
  extras.details = details;
  return remake(take_status, weir_view("", 0), &extras);
}

weir_view_t weir_status_details(const weir_status_t* status) {
  return status && status->extras.details.size ? status->extras.details : weir_view("", 0);
}

weir_status_t* weir_status_at_node(weir_status_t* take_status, const char* name, const char* op) {
  if (!take_status) return NULL;
  weir_strbuf_t prefix = {0};
  if (op) weir_strbuf_printf(&prefix, "Node '%s' (%s): ", name, op);
  else weir_strbuf_printf(&prefix, "Node '%s': ", name);
  return put_before(take_status, &prefix, weir_view_of(name), false);
}

weir_status_t* weir_status_about_node(weir_status_t* take_status, weir_view_t name) {
  if (!take_status) return NULL;
  extras_t extras = take_status->extras;
  extras.node = name;
  return remake(take_status, weir_view("", 0), &extras);
}

bool weir_status_has_node(const weir_status_t* status) {
  return status && status->extras.node.size > 0;
}

weir_status_t* weir_status_mark_node(weir_status_t* take_status) {
  if (!take_status || take_status->extras.has_mark || !take_status->extras.node.size)
    return take_status;
  weir_status_t* marked = weir_status_create(
      take_status->code, take_status->file, take_status->line, "%s\n\t [[{{node %.*s}}]]",
      take_status->message, WEIR_VIEW_ARG(take_status->extras.node));
  marked = weir_status_with_details(marked, weir_status_details(take_status));
  weir_status_destroy(take_status);
  return marked;
}

weir_status_t* weir_status_from(weir_status_t* take_status, const char* task) {
  if (!take_status || take_status->extras.has_origin) return take_status;
  weir_strbuf_t prefix = {0};
  weir_strbuf_printf(&prefix, "From %s:\n", task);
  return put_before(take_status, &prefix, weir_view("", 0), true);
}

bool weir_status_has_origin(const weir_status_t* status) {
  return status && status->extras.has_origin;
}

weir_status_t* weir_status_received(weir_code_t code, weir_view_t text) {
  weir_status_t* status = weir_status_create(code, __FILE__, __LINE__, "%.*s", WEIR_VIEW_ARG(text));
  if (!status || status == &out_of_memory) return status;
  status->extras.has_origin = strncmp(status->message, "From /", 6) == 0;
  status->extras.has_mark = has_mark(status->message);
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

#ifdef WEIR_HAVE_BACKTRACE
// The function of this library that the program called, the outermost on the stack, where the
// loader knows its name; else |function|.
static const char* called_by_program(void* const* frames, int count, const char* function) {
  Dl_info own, info;
  if (!dladdr((const void*)(uintptr_t)weir_abort_on, &own)) return function;
  for (int i = 0; i < count && dladdr(frames[i], &info) && info.dli_fbase == own.dli_fbase; ++i) {
    if (info.dli_sname && !strncmp(info.dli_sname, "weir_", 5)) function = info.dli_sname;
  }
  return function;
}

static void print_fault(const char* function, const char* argument, const char* fault) {
  void* frames[32];
  int count = backtrace(frames, (int)WEIR_COUNT_OF(frames));
  const char* called = called_by_program(frames, count, function);
  if (strcmp(called, function)) fprintf(stderr, "%s: ", called);
  fprintf(stderr, "%s: %s %s\n", function, argument, fault);
  fflush(stderr);
  backtrace_symbols_fd(frames, count, STDERR_FILENO);
}
#else
static void print_fault(const char* function, const char* argument, const char* fault) {
  fprintf(stderr, "%s: %s %s\n", function, argument, fault);
  fflush(stderr);
}
#endif

void weir_abort_on(const char* function, const char* argument, const char* fault) {
  print_fault(function, argument, fault);
  abort();
}

void weir_abort_null(const char* function, const char* argument) {
  weir_abort_on(function, argument, "is NULL");
}

void weir_abort_ended(const char* function, const char* argument) {
  weir_abort_on(function, argument, "was destroyed before");
}
