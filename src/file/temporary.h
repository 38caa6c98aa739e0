// temporary.h — Names of files until they are whole, and the end of those whose writer was killed.
//
// A name says who writes the file: "<path>.tempstate<host>-<process>-<random>", in hexadecimal,
// decimal, hexadecimal. A file with such a name is of Weir, and nobody writes it any more if that
// process is of this host and gone, or if it is of another host and has not changed for a day. The
// clock that tells is the file system's: a host's may be wrong.
//
// Thread-safe.
#ifndef WEIR_FILE_TEMPORARY_H_
#define WEIR_FILE_TEMPORARY_H_

#include "file/fs.h"

// Appends to |path| what makes it the name of a temporary file that this process writes.
void weir_temporary_append(weir_strbuf_t* path);
// Removes the temporary files beside |path|, which was written just now, that nobody writes any
// more. What cannot be removed stays and is logged: it harms nobody.
void weir_temporary_clean(const char* path);

#endif  // WEIR_FILE_TEMPORARY_H_
