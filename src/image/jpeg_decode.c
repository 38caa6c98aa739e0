// jpeg_decode.c — Decoding JPEG files by libjpeg-turbo, with the settings that TensorFlow gives it.
#include "base/alloc.h"
#include "base/interrupt.h"
#include "image/jpeg.h"
#include "image/jpeg_error.h"

enum {
  // Files of several scans are kept as coefficients, two bytes each, whatever the ratio is; each
  // scan may be small and yet touch all of them. Only hostile files are near either limit.
  kMaxScans = 500,
  kMaxCoefficients = 1 << 30,
  kMaxSamples = 1 << 29,  // of the result, as in TensorFlow
};

struct weir_jpeg_t {
  struct jpeg_decompress_struct info;
  struct jpeg_source_mgr source;
  struct jpeg_progress_mgr progress;
  weir_jpeg_error_t error;
  weir_jpeg_options_t options;
  weir_view_t data;
  int channels;
  int64_t left, top, width, height;  // of the result within what libjpeg puts out
  uint8_t* pixels;
};

// ---- the source ----

static void init_source(j_decompress_ptr info) { (void)info; }
static void end_source(j_decompress_ptr info) { (void)info; }

// Called at the end of the data. |source| knows what the decoder has used up, which is behind what
// it has looked at: where it stopped within something, it is told to wait, and so ends there. To
// recover, the image is over instead.
static boolean meet_end(j_decompress_ptr info) {
  static const JOCTET kEnd[2] = {0xff, JPEG_EOI};
  const weir_jpeg_t* jpeg = info->client_data;
  struct jpeg_source_mgr* source = info->src;
  if (!jpeg->options.recovers) {
    if (source->bytes_in_buffer > 0) return FALSE;
    weir_jpeg_error_raise((j_common_ptr)info,
                          WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: it is cut off"));
  }
  source->next_input_byte = kEnd;
  source->bytes_in_buffer = sizeof kEnd;
  return TRUE;
}

static void skip(j_decompress_ptr info, long count) {
  struct jpeg_source_mgr* source = info->src;
  if (count <= 0) return;
  if ((size_t)count > source->bytes_in_buffer) {
    source->bytes_in_buffer = 0;
    meet_end(info);
    return;
  }
  source->next_input_byte += count;
  source->bytes_in_buffer -= (size_t)count;
}

// ---- steps, each under a guard ----

// Runs |step|, and returns its error or libjpeg's.
static weir_status_t* guard(weir_jpeg_t* jpeg, weir_status_t* (*step)(weir_jpeg_t* jpeg)) {
  if (setjmp(jpeg->error.jump)) return jpeg->error.status;
  return step(jpeg);
}

// Called now and then while a file of several scans is read.
static void watch(j_common_ptr info) {
  const weir_jpeg_t* jpeg = info->client_data;
  if (jpeg->info.input_scan_number > kMaxScans) {
    weir_jpeg_error_raise(
        info, WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: more than %d scans", kMaxScans));
  }
  if (weir_is_interrupted()) {
    weir_jpeg_error_raise(info, WEIR_STATUS(CANCELLED, "the work was interrupted"));
  }
}

static void set_up(weir_jpeg_t* jpeg) {
  struct jpeg_decompress_struct* info = &jpeg->info;
  jpeg_create_decompress(info);
  jpeg->source = (struct jpeg_source_mgr){.next_input_byte = (const JOCTET*)jpeg->data.data,
                                          .bytes_in_buffer = jpeg->data.size,
                                          .init_source = init_source,
                                          .fill_input_buffer = meet_end,
                                          .skip_input_data = skip,
                                          .resync_to_restart = jpeg_resync_to_restart,
                                          .term_source = end_source};
  jpeg->progress.progress_monitor = watch;
  info->client_data = jpeg;
  info->src = &jpeg->source;
  info->progress = &jpeg->progress;
}

static bool is_cmyk(const struct jpeg_decompress_struct* info) {
  return info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
}

static weir_status_t* check_size(const struct jpeg_decompress_struct* info, bool has_scans) {
  const int64_t components = info->num_components;
  const int64_t result = (int64_t)info->output_width * info->output_height * components;
  const int64_t whole = (int64_t)info->image_width * info->image_height * components;
  if (result < kMaxSamples && (!has_scans || whole < kMaxCoefficients)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: %u by %u pixels are too many",
                     info->image_width, info->image_height);
}

static weir_status_t* set_window(weir_jpeg_t* jpeg) {
  const weir_jpeg_options_t* options = &jpeg->options;
  const int64_t width = jpeg->info.output_width, height = jpeg->info.output_height;
  jpeg->left = options->crops ? options->crop_x : 0;
  jpeg->top = options->crops ? options->crop_y : 0;
  jpeg->width = options->crops ? options->crop_width : width;
  jpeg->height = options->crops ? options->crop_height : height;
  if (jpeg->left >= 0 && jpeg->top >= 0 && jpeg->width > 0 && jpeg->height > 0 &&
      jpeg->left + jpeg->width <= width && jpeg->top + jpeg->height <= height) {
    return NULL;
  }
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Invalid JPEG data or crop window: x=%lld, y=%lld, w=%lld, h=%lld for image_width: %lld "
      "and image_height: %lld",
      (long long)jpeg->left, (long long)jpeg->top, (long long)jpeg->width, (long long)jpeg->height,
      (long long)width, (long long)height);
}

static weir_status_t* read_sizes(weir_jpeg_t* jpeg) {
  set_up(jpeg);
  if (jpeg_read_header(&jpeg->info, TRUE) == JPEG_HEADER_OK) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: the header is cut off");
}

static weir_status_t* read_header(weir_jpeg_t* jpeg) {
  struct jpeg_decompress_struct* info = &jpeg->info;
  const weir_jpeg_options_t* options = &jpeg->options;
  WEIR_TRY(read_sizes(jpeg));
  jpeg->channels = options->channels ? options->channels : WEIR_MIN(info->num_components, 3);
  if (jpeg->channels == 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: 2 components");
  }
  info->out_color_space = jpeg->channels == 1 ? JCS_GRAYSCALE : is_cmyk(info) ? JCS_CMYK : JCS_RGB;
  info->do_fancy_upsampling = options->is_fancy;
  info->dct_method = options->is_fast ? JDCT_IFAST : JDCT_ISLOW;
  info->scale_num = 1;
  info->scale_denom = (unsigned)options->ratio;
  jpeg_calc_output_dimensions(info);
  WEIR_TRY(check_size(info, jpeg_has_multiple_scans(info)));
  return set_window(jpeg);
}

// Adobe's files hold complements.
static void to_rgb(const uint8_t* cmyk, bool is_adobe, JDIMENSION count, uint8_t* rgb) {
  const int flip = is_adobe ? 0 : 255;
  for (JDIMENSION i = 0; i < count; ++i, cmyk += 4, rgb += 3) {
    for (int k = 0; k < 3; ++k) rgb[k] = (uint8_t)((cmyk[k] ^ flip) * (cmyk[3] ^ flip) / 255);
  }
}

// Copies what is in the window of a row that was read.
static void put_row(const weir_jpeg_t* jpeg, const uint8_t* row, int64_t y) {
  const struct jpeg_decompress_struct* info = &jpeg->info;
  const int64_t row_size = jpeg->width * jpeg->channels;
  uint8_t* to = jpeg->pixels + (y - jpeg->top) * row_size;
  if (y < jpeg->top) return;
  if (info->out_color_space == JCS_CMYK) {
    to_rgb(row + 4 * jpeg->left, info->saw_Adobe_marker, (JDIMENSION)jpeg->width, to);
  } else {
    memcpy(to, row + jpeg->left * jpeg->channels, (size_t)row_size);
  }
}

// Reads rows until one is not there, or all of the window are. The unread ones are black, if so
// many are acceptable.
static weir_status_t* read_rows(weir_jpeg_t* jpeg) {
  struct jpeg_decompress_struct* info = &jpeg->info;
  const bool is_direct = info->out_color_space != JCS_CMYK && !jpeg->options.crops;
  const int64_t end = jpeg->top + jpeg->height, row_size = jpeg->width * jpeg->channels;
  JSAMPROW row = NULL;
  if (!is_direct) {  // libjpeg frees it
    row = info->mem->alloc_large((j_common_ptr)info, JPOOL_IMAGE, 4 * (size_t)info->output_width);
  }
  while (info->output_scanline < end) {
    const int64_t y = info->output_scanline;
    WEIR_TRY(weir_interrupt_poll(y));
    if (is_direct) row = jpeg->pixels + y * row_size;
    if (jpeg_read_scanlines(info, &row, 1) == 0) break;
    if (!is_direct) put_row(jpeg, row, y);
  }
  const float fraction = (float)info->output_scanline / (float)end;
  if (fraction < WEIR_MIN(1.0f, jpeg->options.acceptable_fraction)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: it ends at line %u of %u",
                       info->output_scanline, info->output_height);
  }
  const int64_t unread = WEIR_MAX(info->output_scanline, jpeg->top);
  memset(jpeg->pixels + (unread - jpeg->top) * row_size, 0, (size_t)((end - unread) * row_size));
  return NULL;
}

// Lets libjpeg pass over what is not in the window: all but the columns of blocks that it touches,
// whose colors are interpolated as if there were no others.
static void skip_outside(weir_jpeg_t* jpeg) {
  JDIMENSION left = (JDIMENSION)jpeg->left, width = (JDIMENSION)jpeg->width;
  jpeg_crop_scanline(&jpeg->info, &left, &width);
  jpeg->left -= left;
  if (jpeg->top > 0) jpeg_skip_scanlines(&jpeg->info, (JDIMENSION)jpeg->top);
}

static weir_status_t* decode(weir_jpeg_t* jpeg) {
  struct jpeg_decompress_struct* info = &jpeg->info;
  if (!jpeg_start_decompress(info)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: it is cut off");
  }
  if (jpeg->options.crops) skip_outside(jpeg);
  WEIR_TRY(read_rows(jpeg));
  // What follows may be cut off but not wrong.
  if (info->output_scanline == info->output_height) jpeg_finish_decompress(info);
  return NULL;
}

// ---- the interface ----

static weir_status_t* open_with(weir_view_t data, const weir_jpeg_options_t* options,
                                weir_status_t* (*step)(weir_jpeg_t* jpeg), weir_jpeg_t** out_jpeg) {
  weir_jpeg_t* jpeg = weir_calloc(1, sizeof *jpeg);
  if (!jpeg) return weir_out_of_memory();
  jpeg->data = data;
  jpeg->options = *options;
  jpeg->info.err = weir_jpeg_error_init(&jpeg->error, WEIR_INVALID_ARGUMENT, "Invalid JPEG data");
  weir_status_t* status = guard(jpeg, step);
  if (status) {
    weir_jpeg_destroy(jpeg);
  } else {
    *out_jpeg = jpeg;
  }
  return status;
}

weir_status_t* weir_jpeg_open(weir_view_t data, const weir_jpeg_options_t* options,
                              weir_jpeg_t** out_jpeg) {
  return open_with(data, options, read_header, out_jpeg);
}

weir_status_t* weir_jpeg_read_size(weir_view_t data, int64_t* out_width, int64_t* out_height,
                                   int* out_channels) {
  const weir_jpeg_options_t options = {.ratio = 1};
  weir_jpeg_t* jpeg = NULL;
  WEIR_TRY(open_with(data, &options, read_sizes, &jpeg));
  *out_width = jpeg->info.image_width;
  *out_height = jpeg->info.image_height;
  *out_channels = jpeg->info.num_components;
  weir_jpeg_destroy(jpeg);
  return NULL;
}

void weir_jpeg_destroy(weir_jpeg_t* jpeg) {
  if (!jpeg) return;
  jpeg_destroy_decompress(&jpeg->info);
  weir_free(jpeg);
}

void weir_jpeg_size(const weir_jpeg_t* jpeg, int64_t* out_width, int64_t* out_height,
                    int* out_channels) {
  *out_width = jpeg->width;
  *out_height = jpeg->height;
  *out_channels = jpeg->channels;
}

weir_status_t* weir_jpeg_decode(weir_jpeg_t* jpeg, uint8_t* pixels) {
  jpeg->pixels = pixels;
  return guard(jpeg, decode);
}
