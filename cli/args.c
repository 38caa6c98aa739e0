// args.c — Command-line parsing and error printing of the weir command.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool args_option(args_t* args, const char* name, const char** out_value) {
  const char* text = args->argv[args->next];
  size_t size = strlen(name);
  if (strncmp(text, "--", 2) != 0 || strncmp(text + 2, name, size) != 0) return false;
  if (text[2 + size] == '=') {
    *out_value = text + 3 + size;
    ++args->next;
    return true;
  }
  if (text[2 + size] != 0 || args->next + 1 >= args->argc) return false;
  *out_value = args->argv[args->next + 1];
  args->next += 2;
  return true;
}

bool args_flag(args_t* args, const char* name) {
  const char* text = args->argv[args->next];
  if (strncmp(text, "--", 2) != 0 || strcmp(text + 2, name) != 0) return false;
  ++args->next;
  return true;
}

bool args_tls(args_t* args, weir_session_options_t* options) {
  return args_option(args, "tls-ca", &options->tls_ca) ||
         args_option(args, "tls-cert", &options->tls_cert) ||
         args_option(args, "tls-key", &options->tls_key) ||
         args_option(args, "token-file", &options->token_file);
}

// A GPU by its number, beside one CPU: "cuda:1" is the second, so there must be two, and "@" joins
// what else was asked of it.
static void list_device(const args_t* args, weir_session_options_t* options) {
  static char list[128], place[96];  // what options point to
  char kind[64], number[32] = "0";
  if (sscanf(args->device ? args->device : "", "%63[^:]:%31s", kind, number) < 1) return;
  long index = strtol(number, NULL, 10);
  snprintf(list, sizeof(list), "cpu,%s:%ld%s%s%s", kind, index + 1, args->tf32 ? "@tf32=" : "",
           args->tf32 ? args->tf32 : "", args->is_deterministic ? "@deterministic=1" : "");
  options->devices = list;
  if (index == 0) return;
  snprintf(place, sizeof(place), "/device:%s:%ld", strcmp(kind, "cuda") == 0 ? "GPU" : kind, index);
  options->place = place;
}

bool args_running(args_t* args, weir_session_options_t* options) {
  if (args_option(args, "device", &args->device) || args_option(args, "tf32", &args->tf32) ||
      (!args->is_deterministic && (args->is_deterministic = args_flag(args, "deterministic")))) {
    list_device(args, options);
    return true;
  }
  return args_option(args, "devices", &options->devices) ||
         args_option(args, "place", &options->place) ||
         args_option(args, "rates", &options->rates) ||
         args_option(args, "amp", &options->mixed_precision);
}

const char* args_positional(args_t* args) {
  const char* text = args->argv[args->next];
  if (text[0] == '-' && text[1] != 0) return NULL;
  ++args->next;
  return text;
}

int usage_error(const verb_t* verb, const char* format, ...) {
  va_list list;
  va_start(list, format);
  fprintf(stderr, "weir %s: ", verb->name);
  vfprintf(stderr, format, list);
  fprintf(stderr, "\nTry 'weir %s --help'.\n", verb->name);
  va_end(list);
  return EXIT_USAGE;
}

// The options that |help| tells of, "--name", in |names|, whose texts are in |buffer|.
static size_t list_options(const char* help, char* buffer, size_t size, const char** names,
                           size_t most) {
  size_t count = 0, used = 0;
  for (const char* at = strstr(help, "--"); at && count < most; at = strstr(at + 2, "--")) {
    size_t length = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (length == 2 || used + length + 1 > size) continue;
    memcpy(buffer + used, at, length);
    buffer[used + length] = 0;
    names[count++] = buffer + used;
    used += length + 1;
  }
  return count;
}

int unknown_argument(const verb_t* verb, const char* argument) {
  enum { MOST = 256 };
  char buffer[8192], wanted[256];
  const char* names[MOST];
  if (strncmp(argument, "--", 2) != 0)
    return usage_error(verb, "unknown option or argument '%s'", argument);
  snprintf(wanted, sizeof(wanted), "%.*s", (int)strcspn(argument, "="), argument);
  size_t count = list_options(verb->help, buffer, sizeof(buffer), names, MOST);
  const char* meant = weir_suggest(wanted, names, count);
  if (meant && strcmp(meant, wanted) == 0)
    return usage_error(verb, "the option '%s' needs a value, or takes none", wanted);
  if (!meant) return usage_error(verb, "unknown option '%s'", argument);
  return usage_error(verb, "unknown option '%s' (did you mean '%s'?)", argument, meant);
}

bool parse_long(const char* text, long* out_value) {
  char* end = NULL;
  errno = 0;
  *out_value = strtol(text, &end, 10);
  return *text && !*end && errno == 0;
}

bool parse_double(const char* text, double* out_value) {
  char* end = NULL;
  errno = 0;
  *out_value = strtod(text, &end);
  return *text && !*end && errno == 0;
}

bool parse_int(const char* text, int max, int* out_value) {
  long value = 0;
  if (!parse_long(text, &value) || value < 0 || value > max) return false;
  *out_value = (int)value;
  return true;
}

bool parse_size(const char* text, uint64_t* out_size) {
  const char* units = "KMG";
  char* end = NULL;
  errno = 0;
  unsigned long long size = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
  if (errno || size == 0) return false;
  const char* unit = *end ? strchr(units, *end) : NULL;
  int shift = unit ? 10 * (int)(unit - units + 1) : 0;
  if ((*end && !unit) || (unit && end[1]) || size > UINT64_MAX >> shift) return false;
  *out_size = (uint64_t)size << shift;
  return true;
}

int fail(weir_status_t* take_status) {
  fprintf(stderr, "weir: %s: %s\n", weir_code_name(weir_status_code(take_status)),
          weir_status_message(take_status));
  weir_status_destroy(take_status);
  return EXIT_FAILED;
}

weir_status_t* find_node(weir_graph_t* graph, const char* option, const char* name,
                         weir_node_t** out_node) {
  weir_edge_t edge;
  *out_node = weir_graph_find_node(graph, name);
  if (*out_node) return NULL;
  weir_status_t* status = weir_graph_find_output(graph, name, &edge);  // knows what may be meant
  if (weir_status_code(status) == WEIR_NOT_FOUND)
    return weir_status_prefix(status, "--%s: ", option);
  weir_status_destroy(status);
  return WEIR_STATUS(NOT_FOUND, "--%s: the graph has no node '%s'", option, name);
}

int finish(weir_session_t* take_session, weir_graph_t* take_graph, weir_status_t* take_status) {
  weir_session_destroy(take_session);
  weir_graph_release(take_graph);
  return take_status ? fail(take_status) : EXIT_OK;
}

bool write_file(const char* path, const char* data, size_t size) {
  FILE* file = fopen(path, "wb");
  bool is_written = file && fwrite(data, 1, size, file) == size;
  if (file && fclose(file) != 0) is_written = false;
  if (!is_written) fprintf(stderr, "weir: cannot write '%s': %s\n", path, strerror(errno));
  return is_written;
}
