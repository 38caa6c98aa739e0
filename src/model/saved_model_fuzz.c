// saved_model_fuzz.c — Fuzz target: any bytes as saved_model.pb, of which a graph is chosen and
// what it says beside its nodes is read.
#include "model/meta_graph.h"
#include "model/saved_model.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_view_t bytes = weir_view(data, size), message = {0};
  weir_meta_graph_t meta = {0};
  weir_status_t* status = weir_saved_model_select(bytes, "serve", &message);
  if (status) message = bytes;  // a MetaGraphDef by itself is read, too
  weir_status_destroy(status);
  status = weir_meta_graph_read(message, &meta);
  for (size_t i = 0; !status && i < meta.asset_count; ++i)
    WEIR_CHECK(meta.assets[i].tensor && meta.assets[i].file[0] != '/');
  for (size_t i = 1; !status && i < meta.signature_count; ++i)
    WEIR_CHECK(strcmp(meta.signatures[i - 1].name, meta.signatures[i].name) < 0);
  weir_status_destroy(status);
  weir_meta_graph_free(&meta);
  return 0;
}
