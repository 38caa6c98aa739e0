// jpeg_encode.c — Encoding JPEG files by libjpeg-turbo, with the settings that TensorFlow gives it.
#include "base/alloc.h"
#include "base/interrupt.h"
#include "image/jpeg.h"
#include "image/jpeg_error.h"

typedef struct encoder_t {
  struct jpeg_compress_struct info;
  struct jpeg_destination_mgr destination;
  weir_jpeg_error_t error;
  const weir_jpeg_source_t* source;
  const weir_jpeg_params_t* params;
  weir_strbuf_t* out;
  JOCTET buffer[16384];
} encoder_t;

// ---- the destination ----

static void start_output(j_compress_ptr info) {
  encoder_t* e = info->client_data;
  info->dest->next_output_byte = e->buffer;
  info->dest->free_in_buffer = sizeof e->buffer;
}

static boolean write_buffer(j_compress_ptr info) {
  encoder_t* e = info->client_data;
  weir_strbuf_append(e->out, (const char*)e->buffer, sizeof e->buffer);
  start_output(info);
  return TRUE;
}

static void end_output(j_compress_ptr info) {
  encoder_t* e = info->client_data;
  weir_strbuf_append(e->out, (const char*)e->buffer, sizeof e->buffer - info->dest->free_in_buffer);
}

// ---- encoding ----

static void set_params(encoder_t* e) {
  struct jpeg_compress_struct* info = &e->info;
  const weir_jpeg_params_t* params = e->params;
  info->image_width = (JDIMENSION)e->source->width;
  info->image_height = (JDIMENSION)e->source->height;
  info->input_components = e->source->channels;
  info->in_color_space = e->source->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(info);
  info->optimize_coding = params->is_optimized;
  info->density_unit = params->density_unit;
  info->X_density = params->x_density;
  info->Y_density = params->y_density;
  jpeg_set_quality(info, params->quality, TRUE);
  if (params->is_progressive) jpeg_simple_progression(info);
  for (int i = 0; i < info->num_components && !params->has_small_chroma; ++i) {
    info->comp_info[i].h_samp_factor = 1;
    info->comp_info[i].v_samp_factor = 1;
  }
}

// Metadata stands in an APP1 segment, after the name of its format and a zero.
static void write_xmp(j_compress_ptr info, weir_view_t xmp) {
  static const char kName[] = "http://ns.adobe.com/xap/1.0/";
  enum { kMaxMarker = 65533 };
  if (xmp.size == 0) return;
  if (xmp.size > kMaxMarker - sizeof kName) {
    weir_jpeg_error_raise(
        (j_common_ptr)info,
        WEIR_STATUS(INTERNAL, "JPEG encoding failed: %zu bytes of metadata", xmp.size));
  }
  jpeg_write_m_header(info, JPEG_APP0 + 1, (unsigned)(sizeof kName + xmp.size));
  for (size_t i = 0; i < sizeof kName; ++i) jpeg_write_m_byte(info, kName[i]);
  for (size_t i = 0; i < xmp.size; ++i) jpeg_write_m_byte(info, (uint8_t)xmp.data[i]);
}

static weir_status_t* encode(encoder_t* e) {
  struct jpeg_compress_struct* info = &e->info;
  const size_t row_size = (size_t)e->source->width * (size_t)e->source->channels;
  if (setjmp(e->error.jump)) return e->error.status;
  jpeg_create_compress(info);
  info->client_data = e;
  info->dest = &e->destination;
  set_params(e);
  jpeg_start_compress(info, TRUE);
  write_xmp(info, e->params->xmp);
  while (info->next_scanline < info->image_height) {
    JSAMPROW row = (JSAMPROW)e->source->pixels + info->next_scanline * row_size;
    WEIR_TRY(weir_interrupt_poll(info->next_scanline));
    jpeg_write_scanlines(info, &row, 1);
  }
  jpeg_finish_compress(info);
  return weir_strbuf_finish(e->out);
}

weir_status_t* weir_jpeg_encode(const weir_jpeg_source_t* source, const weir_jpeg_params_t* params,
                                weir_strbuf_t* out) {
  encoder_t* e = weir_calloc(1, sizeof *e);
  if (!e) return weir_out_of_memory();
  e->source = source;
  e->params = params;
  e->out = out;
  e->destination = (struct jpeg_destination_mgr){.init_destination = start_output,
                                                 .empty_output_buffer = write_buffer,
                                                 .term_destination = end_output};
  e->info.err = weir_jpeg_error_init(&e->error, WEIR_INTERNAL, "JPEG encoding failed");
  weir_status_t* status = encode(e);
  jpeg_destroy_compress(&e->info);
  weir_free(e);
  return status;
}
