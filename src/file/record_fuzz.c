// record_fuzz.c — Fuzz target: any bytes as a record file.
#include "file/record.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_file_t* file = NULL;
  weir_record_reader_t* reader = NULL;
  weir_status_t* status = weir_file_from_view(weir_view(data, size), "input", &file);
  if (!status) status = weir_record_reader_create(file, &reader);
  uint64_t last = 0;
  while (!status) {
    weir_view_t record;
    status = weir_record_next(reader, &record);
    if (status) break;
    WEIR_CHECK(weir_record_tell(reader) == last + record.size + 16);
    last = weir_record_tell(reader);
  }
  weir_status_destroy(status);
  weir_record_reader_destroy(reader);
  return 0;
}
