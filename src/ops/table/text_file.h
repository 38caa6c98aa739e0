// text_file.h — Tables from the lines of files.
#ifndef WEIR_OPS_TABLE_TEXT_FILE_H_
#define WEIR_OPS_TABLE_TEXT_FILE_H_

#include "ops/table/table.h"

enum { WEIR_TEXT_WHOLE_LINE = -2, WEIR_TEXT_LINE_NUMBER = -1 };  // others are columns

// Fills a table that is filled once with what |key_index| and |value_index| say of each of the
// first |vocab_size| lines; -1: of all.
WEIR_MUST_USE weir_status_t* weir_lookup_table_read_file(weir_lookup_table_t* table,
                                                         weir_view_t path, int64_t key_index,
                                                         int64_t value_index, int64_t vocab_size);

#endif  // WEIR_OPS_TABLE_TEXT_FILE_H_
