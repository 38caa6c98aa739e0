// saver_background.c — Saving on a thread of its own while steps go on.
//
// What is saved is taken between two steps: the variables are fetched, which holds their memory and
// copies nothing on a CPU; a step that updates a variable whose memory is held writes to memory of
// its own (op/variable.c). The thread then runs the nodes that save, fed with these values in place
// of what they would read: so the files are the same. Where the variables are with servers, these
// take and write them (saver_snapshot.c), and the thread waits for that. One save at a time: the
// thread has the saver's list meanwhile, and every other call on the saver waits for it.
#include <pthread.h>
#include <stdatomic.h>

#include "api/saver.h"
#include "base/alloc.h"
#include "session/session.h"
#include "weir/argument.h"

struct weir_saving_t {
  weir_saver_t* saver;
  weir_session_t* session;
  weir_save_t save;
  weir_tensor_t** values;
  void* step;  // of a snapshot by servers; NULL: |values| are here
  pthread_t thread;
  weir_status_t* status;  // of the thread, once it has ended
  atomic_bool is_done;
  bool is_joined;
};

static void release_values(weir_saving_t* saving) {
  for (int i = 0; saving->values && i < saving->saver->value_count; ++i)
    weir_tensor_release(saving->values[i]);
  weir_free(saving->values);
  saving->values = NULL;
}

static void destroy(weir_saving_t* saving) {
  release_values(saving);
  weir_free(saving->save.path);
  weir_free(saving);
}

static weir_status_t* end_snapshot(weir_saving_t* saving) {
  return weir_saver_end(saving->saver, &saving->save,
                        weir_saver_end_snapshot(saving->session, saving->step));
}

static void* write_main(void* arg) {
  weir_saving_t* saving = arg;
  saving->status = saving->step ? end_snapshot(saving)
                                : weir_saver_write(saving->saver, saving->session, &saving->save);
  release_values(saving);  // steps may write in place again
  atomic_store(&saving->is_done, true);
  return NULL;
}

static weir_status_t* take_values(weir_saving_t* saving) {
  const weir_saver_t* saver = saving->saver;
  saving->values = weir_calloc((size_t)saver->value_count, sizeof(*saving->values));
  if (!saving->values) return weir_out_of_memory();
  saving->save.values = saving->values;
  weir_step_spec_t spec = {.fetches = saver->values, .fetch_count = saver->value_count};
  return weir_session_run(saving->session, &spec, saving->values);
}

static weir_status_t* start_thread(weir_saving_t* saving) {
  const int error = pthread_create(&saving->thread, NULL, write_main, saving);
  if (!error) return NULL;
  if (saving->step) weir_status_destroy(weir_saver_end_snapshot(saving->session, saving->step));
  return WEIR_STATUS(RESOURCE_EXHAUSTED, "saver: no thread to save: %s", strerror(error));
}

weir_status_t* weir_saver_start(weir_saver_t* saver, weir_session_t* session, char* take_path,
                                double metric) {
  weir_saving_t* saving = weir_calloc(1, sizeof(*saving));
  if (!saving) {
    weir_free(take_path);
    return weir_out_of_memory();
  }
  *saving = (weir_saving_t){
      .saver = saver, .session = session, .save = {.path = take_path, .metric = metric}};
  weir_status_t* status = session->remote
                              ? weir_saver_begin_snapshot(saver, session, take_path, &saving->step)
                              : take_values(saving);
  const weir_code_t code = weir_status_code(status);
  if (session->remote && (code == WEIR_UNIMPLEMENTED || code == WEIR_NOT_FOUND))
    saving->save.path = NULL;  // the caller's
  if (!status) status = start_thread(saving);
  if (status) destroy(saving);
  else saver->saving = saving;
  return status;
}

bool weir_saver_is_busy(const weir_saver_t* saver) {
  WEIR_ASSERT_ARG(saver);
  return saver->saving && !atomic_load(&saver->saving->is_done);
}

void weir_saver_join(weir_saver_t* saver) {
  weir_saving_t* saving = saver->saving;
  if (!saving || saving->is_joined) return;
  pthread_join(saving->thread, NULL);
  saving->is_joined = true;
}

weir_status_t* weir_saver_wait(weir_saver_t* saver) {
  WEIR_REQUIRE_ARG(saver);
  weir_saving_t* saving = saver->saving;
  if (!saving) return NULL;
  weir_saver_join(saver);
  weir_status_t* status = saving->status;
  destroy(saving);
  saver->saving = NULL;
  return status;
}
