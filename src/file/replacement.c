// replacement.c — Writing under a temporary name, then renaming.
#include "file/replacement.h"

#include "file/temporary.h"

weir_status_t* weir_replacement_begin(weir_replacement_t* file, const char* path) {
  file->path = path;
  weir_strbuf_puts(&file->temporary, path);
  weir_temporary_append(&file->temporary);
  WEIR_TRY(weir_strbuf_finish(&file->temporary));
  return weir_writer_open(file->temporary.data, false, &file->writer);
}

weir_status_t* weir_replacement_end(weir_replacement_t* file, weir_status_t* take_status) {
  weir_status_t* status = take_status;
  if (file->writer) {
    if (!status) status = weir_writer_sync(file->writer);
    weir_status_t* closed = weir_writer_close(file->writer);
    if (status) weir_status_destroy(closed);
    else status = closed;
    if (!status) status = weir_fs_rename(file->temporary.data, file->path);
    if (status) weir_status_destroy(weir_fs_remove(file->temporary.data));
    else status = weir_fs_sync_parent(file->path);
  }
  weir_strbuf_free(&file->temporary);
  *file = (weir_replacement_t){0};
  return status;
}
