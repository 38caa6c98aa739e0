// top.c — weir top: what the tasks of a cluster do, again and again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "weir/server.h"

enum { MAX_TASKS = 256, MAX_DEVICES = 32, MAX_TEXT = 256 };

// A negative number: not told.
typedef struct device_t {
  char name[MAX_TEXT];
  double in_use, peak, limit, busy;
} device_t;

typedef struct top_task_t {
  char address[MAX_TEXT];
  char name[MAX_TEXT];   // "/job:worker/task:0"; "": it never answered
  char error[MAX_TEXT];  // why it does not answer; "": it does
  double seconds;        // when it did
  double steps, open, sessions, tensors, resident;
  double rate;  // steps a second since the answer before; negative: there was none
  device_t devices[MAX_DEVICES];
  int device_count;
} top_task_t;

typedef struct top_t {
  weir_server_options_t options;
  const char* target;
  double interval;
  bool once, json;
  top_task_t tasks[MAX_TASKS];
  int count;
} top_t;

// ---- lines "name{label="value",…} number" ----

typedef struct row_t {
  char name[MAX_TEXT];
  char labels[2 * MAX_TEXT];
  double value;
} row_t;

// Takes the next line of |*text| that has a number; false at the end.
static bool next_row(const char** text, row_t* row) {
  while (**text) {
    const char* line = *text;
    size_t size = strcspn(line, "\n");
    *text = line + size + (line[size] == '\n');
    size_t name = strcspn(line, "{ \n");
    const char* open = line[name] == '{' ? line + name + 1 : line + name;
    const char* close = line + size;
    while (close > open && *close != '}') --close;
    const char* number = line[name] == '{' ? close + 1 : line + name;
    char* end = NULL;
    row->value = strtod(number, &end);
    if (*line == '#' || name == 0 || end == number) continue;
    snprintf(row->name, sizeof(row->name), "%.*s", (int)name, line);
    snprintf(row->labels, sizeof(row->labels), "%.*s", (int)(close - open), open);
    return true;
  }
  return false;
}

// The value of the label |name|, in |out| of MAX_TEXT bytes; empty where there is none.
static void get_label(const row_t* row, const char* name, char* out) {
  size_t size = strlen(name);
  *out = 0;
  for (const char* at = row->labels; (at = strstr(at, name)); at += size) {
    bool is_whole = (at == row->labels || at[-1] == ',') && strncmp(at + size, "=\"", 2) == 0;
    if (!is_whole) continue;
    snprintf(out, MAX_TEXT, "%.*s", (int)strcspn(at + size + 2, "\""), at + size + 2);
    return;
  }
}

static device_t* find_device(top_task_t* task, const row_t* row) {
  char name[MAX_TEXT];
  get_label(row, "device", name);
  for (int i = 0; i < task->device_count; ++i) {
    if (strcmp(task->devices[i].name, name) == 0) return &task->devices[i];
  }
  if (task->device_count == MAX_DEVICES) return NULL;
  device_t* device = &task->devices[task->device_count++];
  *device = (device_t){.in_use = -1, .peak = -1, .limit = -1, .busy = -1};
  snprintf(device->name, sizeof(device->name), "%s", name);
  return device;
}

static void take_device_row(top_task_t* task, const row_t* row) {
  device_t* device = find_device(task, row);
  if (!device) return;
  if (strcmp(row->name, "weir_device_memory_bytes") == 0) device->in_use = row->value;
  if (strcmp(row->name, "weir_device_memory_peak_bytes") == 0) device->peak = row->value;
  if (strcmp(row->name, "weir_device_memory_limit_bytes") == 0) device->limit = row->value;
  if (strcmp(row->name, "weir_device_busy_ratio") == 0) device->busy = row->value;
}

static void take_row(top_task_t* task, const row_t* row) {
  const struct {
    const char* name;
    double* value;
  } numbers[] = {{"weir_steps_total", &task->steps},
                 {"weir_steps_open", &task->open},
                 {"weir_sessions", &task->sessions},
                 {"weir_tensor_memory_bytes", &task->tensors},
                 {"process_resident_memory_bytes", &task->resident}};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
    if (strcmp(row->name, numbers[i].name) == 0) *numbers[i].value += row->value;  // by role
  }
  if (strncmp(row->name, "weir_device_", 12) == 0) take_device_row(task, row);
  if (strcmp(row->name, "weir_task_info") != 0) return;
  char job[MAX_TEXT], index[MAX_TEXT];
  get_label(row, "job", job);
  get_label(row, "task", index);
  snprintf(task->name, sizeof(task->name), "/job:%.100s/task:%.100s", job, index);
}

// ---- asking ----

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void take_answer(top_task_t* task, const char* text) {
  top_task_t before = *task;
  row_t row;
  task->steps = task->open = task->sessions = task->tensors = task->resident = 0;
  task->device_count = 0;
  task->error[0] = 0;
  task->seconds = now();
  while (next_row(&text, &row)) take_row(task, &row);
  double passed = task->seconds - before.seconds;
  bool is_same = before.name[0] && !before.error[0] && task->steps >= before.steps && passed > 0;
  task->rate = is_same ? (task->steps - before.steps) / passed : -1;
}

// The other tasks of the cluster that the first one tells of.
static void add_others(top_t* top, const char* text) {
  row_t row;
  while (next_row(&text, &row) && top->count < MAX_TASKS) {
    top_task_t* task = &top->tasks[top->count];
    char job[MAX_TEXT], index[MAX_TEXT], name[MAX_TEXT];
    if (strcmp(row.name, "weir_cluster_task_info") != 0) continue;
    get_label(&row, "job", job);
    get_label(&row, "task", index);
    snprintf(name, sizeof(name), "/job:%.100s/task:%.100s", job, index);
    if (strcmp(name, top->tasks[0].name) == 0) continue;
    get_label(&row, "address", task->address);
    ++top->count;
  }
}

// Asks a task; its error is its own, but that of the first, when it never answered, is returned.
static weir_status_t* ask(top_t* top, top_task_t* task) {
  char* text = NULL;
  bool is_first = task == top->tasks && !task->name[0];
  weir_status_t* status = weir_server_state(task->address, &top->options, &text);
  if (status && is_first) return status;
  if (status) snprintf(task->error, sizeof(task->error), "%s", weir_status_message(status));
  else take_answer(task, text);
  if (!status && is_first) add_others(top, text);
  weir_status_destroy(status);
  weir_buffer_free(text);
  return NULL;
}

static weir_status_t* ask_all(top_t* top) {
  for (int i = 0; i < top->count; ++i) WEIR_TRY(ask(top, &top->tasks[i]));
  return NULL;
}

// ---- showing ----

static const char* size_text(double bytes, char* out, size_t size) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  snprintf(out, size, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
  return out;
}

static void print_device(const device_t* device) {
  char used[32], peak[32], limit[32];
  printf("    %s", device->name);
  if (device->in_use >= 0)
    printf("  %s of %s, at most %s so far", size_text(device->in_use, used, sizeof(used)),
           size_text(device->limit, limit, sizeof(limit)),
           size_text(device->peak, peak, sizeof(peak)));
  if (device->busy >= 0) printf("  %.0f %% busy", device->busy * 100);
  printf("\n");
}

static void print_task(const top_task_t* task) {
  char tensors[32], resident[32], rate[32] = "-";
  const char* name = task->name[0] ? task->name : "?";
  if (task->error[0]) {
    printf("%-24s %-24s %s\n", name, task->address, task->error);
    return;
  }
  if (task->rate >= 0) snprintf(rate, sizeof(rate), "%.1f", task->rate);
  printf("%-24s %-24s %10.0f %10s %6.0f %8.0f %10s %10s\n", name, task->address, task->steps, rate,
         task->open, task->sessions, size_text(task->tensors, tensors, sizeof(tensors)),
         size_text(task->resident, resident, sizeof(resident)));
  for (int i = 0; i < task->device_count; ++i) print_device(&task->devices[i]);
}

static void print_table(const top_t* top) {
  if (!top->once && isatty(STDOUT_FILENO)) fputs("\x1b[H\x1b[J", stdout);
  printf("%-24s %-24s %10s %10s %6s %8s %10s %10s\n", "TASK", "ADDRESS", "STEPS", "STEPS/S", "OPEN",
         "SESSIONS", "TENSORS", "RESIDENT");
  for (int i = 0; i < top->count; ++i) print_task(&top->tasks[i]);
  if (!top->once) printf("\n");
}

// ---- for programs ----

static void print_number(const char* name, double value, const char* format) {
  printf(", \"%s\": ", name);
  if (value < 0) printf("null");
  else printf(format, value);
}

static void print_text(const char* before, const char* text) {
  fputs(before, stdout);
  print_json_text(text);
}

static void print_json_devices(const top_task_t* task) {
  fputs(", \"devices\": [", stdout);
  for (int i = 0; i < task->device_count; ++i) {
    const device_t* device = &task->devices[i];
    print_text(i ? ", {\"device\": " : "{\"device\": ", device->name);
    print_number("memory_bytes", device->in_use, "%.0f");
    print_number("peak_bytes", device->peak, "%.0f");
    print_number("limit_bytes", device->limit, "%.0f");
    print_number("busy", device->busy, "%.2f");
    putchar('}');
  }
  putchar(']');
}

static void print_json(const top_t* top) {
  fputs("{\"tasks\": [", stdout);
  for (int i = 0; i < top->count; ++i) {
    const top_task_t* task = &top->tasks[i];
    print_text(i ? ", {\"address\": " : "{\"address\": ", task->address);
    if (task->name[0]) print_text(", \"task\": ", task->name);
    if (task->error[0]) {
      print_text(", \"error\": ", task->error);
    } else {
      print_number("steps", task->steps, "%.0f");
      print_number("steps_per_second", task->rate, "%.3f");
      print_number("steps_open", task->open, "%.0f");
      print_number("sessions", task->sessions, "%.0f");
      print_number("tensor_bytes", task->tensors, "%.0f");
      print_number("resident_bytes", task->resident, "%.0f");
      print_json_devices(task);
    }
    putchar('}');
  }
  puts("]}");
}

// ---- the verb ----

static weir_status_t* watch(top_t* top) {
  struct timespec pause = {.tv_sec = (time_t)top->interval};
  pause.tv_nsec = (long)((top->interval - (double)pause.tv_sec) * 1e9);
  top->count = 1;
  snprintf(top->tasks[0].address, sizeof(top->tasks[0].address), "%s", top->target);
  WEIR_TRY(ask_all(top));
  if (!top->once && !top->json) print_table(top);
  do {
    fflush(stdout);
    nanosleep(&pause, NULL);
    WEIR_TRY(ask_all(top));
    if (top->json) print_json(top);
    else print_table(top);
  } while (!top->once);
  return NULL;
}

static int parse(int argc, char** argv, top_t* top) {
  args_t args = {.argc = argc, .argv = argv};
  while (args.next < argc) {
    const char* at = argv[args.next];
    const char* value = NULL;
    if (args_option(&args, "tls-ca", &top->options.tls_ca) ||
        args_option(&args, "tls-cert", &top->options.tls_cert) ||
        args_option(&args, "tls-key", &top->options.tls_key) ||
        args_option(&args, "token-file", &top->options.token_file))
      continue;
    if (args_flag(&args, "once")) top->once = true;
    else if (args_flag(&args, "json")) top->json = true;
    else if (args_option(&args, "interval", &value)) {
      if (!parse_double(value, &top->interval) || !(top->interval > 0 && top->interval < 1e6))
        return usage_error(&verb_top, "'%s' is no number of seconds", value);
    } else if (!top->target && (value = args_positional(&args))) top->target = value;
    else return unknown_argument(&verb_top, at);
  }
  if (!top->target) return usage_error(&verb_top, "no server is given");
  if (strlen(top->target) < MAX_TEXT) return EXIT_OK;
  return usage_error(&verb_top, "an address of %zu bytes", strlen(top->target));
}

static int run_top(int argc, char** argv) {
  top_t* top = calloc(1, sizeof(*top));
  if (!top) return EXIT_FAILED;
  top->interval = 1;
  int code = parse(argc, argv, top);
  if (code == EXIT_OK) {
    weir_status_t* status = watch(top);
    if (status) code = fail(status);
  }
  free(top);
  return code;
}

const verb_t verb_top = {
    .name = "top",
    .summary = "show what the tasks of a cluster do",
    .help =
        "usage: weir top grpc://HOST:PORT [OPTIONS]\n"
        "Asks the server there, and the other tasks of its cluster, again and again: steps, steps "
        "a\n"
        "second, steps and sessions that are open, memory, devices. A step counts at each task "
        "that\n"
        "takes part in it. Servers need no --metrics-port for it.\n\n"
        "  --once            prints once, after an interval, and ends\n"
        "  --json            one JSON object a line; what is not known is null\n"
        "  --interval=S      seconds between two looks (1)\n"
        "  --tls-ca=FILE --tls-cert=FILE --tls-key=FILE\n"
        "                    whom to trust, own certificate and key (PEM), where servers have TLS\n"
        "  --token-file=FILE the secret that the servers ask for\n",
    .run = run_top};
