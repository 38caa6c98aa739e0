// mapping_guard.c — Guarded ranges, and the handler of SIGBUS that looks among them.
//
// The handler may run in any thread at any moment, so it takes no lock: ranges are in a list that
// only grows, whose entries are used again. A range cannot go while somebody faults in it.
#include "file/mapping_guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"

struct weir_guard_t {
  weir_guard_t* next;  // immutable once it is in the list
  atomic_uintptr_t begin, end;
  char* path;
  atomic_bool is_used, is_lost;
};

static weir_guard_t* _Atomic guards;
static pthread_mutex_t handler_mu = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;  // who handled SIGBUS until ours was installed
static atomic_int handing_on;    // the thread that asks him; 0: none
static uintptr_t page_size;

// ---- the handler ----

static weir_guard_t* find(uintptr_t address) {
  weir_guard_t* guard = atomic_load(&guards);
  while (guard && !(address >= atomic_load(&guard->begin) && address < atomic_load(&guard->end)))
    guard = guard->next;
  return guard;
}

static void say(const char* text) {
  size_t size = 0;
  while (text[size]) ++size;
  if (write(STDERR_FILENO, text, size) < 0) return;  // nobody is there to be told
}

static bool replace_page(uintptr_t address) {
  void* page = (void*)(address & ~(page_size - 1));
  return mmap(page, page_size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
              0) != MAP_FAILED;
}

// The instruction faults once more, and ends the process as ever.
static void give_up(int signal) {
  sigaction(signal, &(const struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

// Whoever has replaced our handler since, and been replaced by it again, may hand on to us.
static void hand_on(int signal, siginfo_t* info, void* context) {
  const int self = (int)gettid();
  const bool has_asked = atomic_exchange(&handing_on, self) == self;
  if (!has_asked && (before.sa_flags & SA_SIGINFO)) before.sa_sigaction(signal, info, context);
  else if (has_asked || before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)
    give_up(signal);
  else before.sa_handler(signal);
  atomic_store(&handing_on, 0);
}

static void on_fault(int signal, siginfo_t* info, void* context) {
  weir_guard_t* guard = info->si_code > 0 ? find((uintptr_t)info->si_addr) : NULL;
  if (!guard || !replace_page((uintptr_t)info->si_addr)) {
    hand_on(signal, info, context);
  } else if (!atomic_exchange(&guard->is_lost, true)) {
    say("weir: ");
    say(guard->path);
    say(": a page cannot be read or written: the disk is full or fails, or the file was shortened. "
        "What is written to it from now on is lost\n");
  }
}

// Other handlers may have been installed over ours since the last range.
static void install(void) {
  struct sigaction now, ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigemptyset(&ours.sa_mask);
  pthread_mutex_lock(&handler_mu);
  page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
  sigaction(SIGBUS, NULL, &now);
  if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_fault) {
    before = now;
    sigaction(SIGBUS, &ours, NULL);
  }
  pthread_mutex_unlock(&handler_mu);
}

// ---- ranges ----

static weir_guard_t* take_free(void) {
  weir_guard_t* guard = atomic_load(&guards);
  while (guard && atomic_exchange(&guard->is_used, true)) guard = guard->next;
  return guard;
}

static weir_guard_t* make(void) {
  weir_guard_t* guard = weir_calloc(1, sizeof(*guard));
  if (!guard) return NULL;
  atomic_store(&guard->is_used, true);
  atomic_store(&guard->begin, UINTPTR_MAX);
  guard->next = atomic_load(&guards);
  while (!atomic_compare_exchange_weak(&guards, &guard->next, guard)) continue;
  return guard;
}

weir_guard_t* weir_guard_add(const void* data, size_t size, const char* path) {
  install();
  weir_guard_t* guard = take_free();
  if (!guard) guard = make();
  if (!guard) return NULL;
  guard->path = weir_strdup(path);
  if (!guard->path) {
    atomic_store(&guard->is_used, false);
    return NULL;
  }
  atomic_store(&guard->is_lost, false);
  atomic_store(&guard->end, (uintptr_t)data + size);
  atomic_store(&guard->begin, (uintptr_t)data);
  return guard;
}

void weir_guard_remove(weir_guard_t* guard) {
  if (!guard) return;
  atomic_store(&guard->begin, UINTPTR_MAX);
  atomic_store(&guard->end, 0);
  weir_free(guard->path);
  guard->path = NULL;
  atomic_store(&guard->is_used, false);
}

weir_status_t* weir_guard_check(const weir_guard_t* guard) {
  if (!atomic_load(&guard->is_lost)) return NULL;
  return WEIR_STATUS(DATA_LOSS,
                     "%s: a page could not be read or written: the disk is full or fails, or the "
                     "file was shortened; what was written since is not in it",
                     guard->path);
}
