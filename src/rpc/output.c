// output.c — Bytes on their way to a socket: copies of small things, references to large ones.
#include "base/alloc.h"
#include "rpc/connection.h"

// Below this a copy is cheaper than a reference and one more vector for the system to walk.
#define COPY_SIZE 1024

static weir_rpc_piece_t* add_piece(weir_rpc_output_t* output) {
  if (!WEIR_GROW(output->pieces, output->capacity, output->count + 1)) return NULL;
  weir_rpc_piece_t* piece = &output->pieces[output->count++];
  *piece = (weir_rpc_piece_t){0};
  return piece;
}

bool weir_rpc_output_copy(weir_rpc_output_t* output, const void* data, size_t size) {
  size_t offset = output->bytes.size;
  weir_strbuf_append(&output->bytes, data, size);
  if (output->bytes.failed) return false;
  weir_rpc_piece_t* last = output->count ? &output->pieces[output->count - 1] : NULL;
  if (!last || last->owner) {
    last = add_piece(output);
    if (!last) return false;
    last->offset = offset;
  }
  last->size += size;
  output->queued += size;
  return true;
}

bool weir_rpc_output_refer(weir_rpc_output_t* output, const void* data, size_t size,
                           weir_rpc_message_t* message) {
  if (size <= COPY_SIZE) return weir_rpc_output_copy(output, data, size);
  weir_rpc_piece_t* piece = add_piece(output);
  if (!piece) return false;
  piece->data = data;
  piece->size = size;
  piece->owner = weir_rpc_message_retain(message);
  output->queued += size;
  return true;
}

int weir_rpc_output_vectors(const weir_rpc_output_t* output, struct iovec* out_vectors, int count) {
  int used = 0;
  for (size_t i = output->first; i < output->count && used < count; ++i) {
    const weir_rpc_piece_t* piece = &output->pieces[i];
    const uint8_t* data =
        piece->owner ? piece->data : (const uint8_t*)output->bytes.data + piece->offset;
    // An iovec is not const, though writing leaves what it points to alone.
    out_vectors[used].iov_base = (void*)(uintptr_t)data;
    out_vectors[used++].iov_len = piece->size;
  }
  return used;
}

void weir_rpc_output_advance(weir_rpc_output_t* output, size_t size) {
  output->queued -= size;
  while (size > 0) {
    weir_rpc_piece_t* piece = &output->pieces[output->first];
    size_t part = WEIR_MIN(size, piece->size);
    size -= part;
    piece->size -= part;
    piece->offset += part;
    if (piece->owner) piece->data += part;
    if (piece->size > 0) break;
    weir_rpc_message_destroy(piece->owner);
    piece->owner = NULL;
    ++output->first;
  }
  if (output->queued > 0) return;
  output->first = output->count = 0;
  output->bytes.size = 0;  // the memory is kept for the next turn
}

void weir_rpc_output_free(weir_rpc_output_t* output) {
  for (size_t i = output->first; i < output->count; ++i) {
    weir_rpc_message_destroy(output->pieces[i].owner);
  }
  weir_free(output->pieces);
  weir_strbuf_free(&output->bytes);
}
