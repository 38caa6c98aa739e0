// npz.h — NumPy's .npz files: zip archives of .npy members. weir/file.h says what callers see; this
// is what fuzzers need besides.
#ifndef WEIR_FILE_NPZ_H_
#define WEIR_FILE_NPZ_H_

#include "file/fs.h"
#include "weir/file.h"

// As weir_npz_open. Consumes |take_file|, also when this fails.
WEIR_MUST_USE weir_status_t* weir_npz_from_file(weir_file_t* take_file,
                                                const weir_npz_options_t* options,
                                                weir_npz_t** out_npz);

#endif  // WEIR_FILE_NPZ_H_
