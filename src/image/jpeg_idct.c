// jpeg_idct.c — The inverse DCTs of JPEG, in integers: the accurate one of Loeffler, Ligtenberg and
// Moschytz, its forms for smaller results, and the fast one of Arai, Agui and Nakajima. Scaling and
// rounding are those of libjpeg, so that pixels are, too.
#include <math.h>

#include "image/jpeg_internal.h"

enum { kConstBits = 13, kPassBits = 2 };

// A constant of |kConstBits| fraction bits.
#define FIX(x) ((int64_t)((x) * (1 << kConstBits) + 0.5))

static int64_t descale(int64_t x, int bits) { return (x + ((int64_t)1 << (bits - 1))) >> bits; }

// ---- accurate, 8 * 8 ----

// One row or column: |in| is eight values |step| apart; |out| gets them unscaled.
static void transform8(const int64_t* in, int step, int64_t* out) {
  // Even part.
  const int64_t z1 = (in[2 * step] + in[6 * step]) * FIX(0.541196100);
  const int64_t t2 = z1 - in[6 * step] * FIX(1.847759065);
  const int64_t t3 = z1 + in[2 * step] * FIX(0.765366865);
  const int64_t t0 = (in[0] + in[4 * step]) * (1 << kConstBits);
  const int64_t t1 = (in[0] - in[4 * step]) * (1 << kConstBits);
  const int64_t even[4] = {t0 + t3, t1 + t2, t1 - t2, t0 - t3};
  // Odd part: a rotation of four, by twelve products.
  const int64_t a = in[7 * step], b = in[5 * step], c = in[3 * step], d = in[step];
  const int64_t z5 = (a + c + b + d) * FIX(1.175875602);
  const int64_t ad = -(a + d) * FIX(0.899976223);
  const int64_t bc = -(b + c) * FIX(2.562915447);
  const int64_t ac = z5 - (a + c) * FIX(1.961570560);
  const int64_t bd = z5 - (b + d) * FIX(0.390180644);
  const int64_t odd[4] = {d * FIX(1.501321110) + ad + bd, c * FIX(3.072711026) + bc + ac,
                          b * FIX(2.053119869) + bc + bd, a * FIX(0.298631336) + ad + ac};
  for (int i = 0; i < 4; ++i) {
    out[i] = even[i] + odd[i];
    out[7 - i] = even[i] - odd[i];
  }
}

static void idct8(const int16_t* coefs, const uint16_t* quant, uint8_t* pixels, int stride) {
  int64_t in[WEIR_JPEG_BLOCK], work[WEIR_JPEG_BLOCK], out[8];
  for (int i = 0; i < WEIR_JPEG_BLOCK; ++i) in[i] = (int64_t)coefs[i] * quant[i];
  for (int x = 0; x < 8; ++x) {
    transform8(in + x, 8, out);
    for (int y = 0; y < 8; ++y) work[8 * y + x] = descale(out[y], kConstBits - kPassBits);
  }
  for (int y = 0; y < 8; ++y) {
    transform8(work + 8 * y, 1, out);
    for (int x = 0; x < 8; ++x) {
      pixels[y * stride + x] = weir_jpeg_clamp(descale(out[x], kConstBits + kPassBits + 3) + 128);
    }
  }
}

// ---- accurate, smaller ----

static void transform4(const int64_t* in, int step, int64_t* out) {
  const int64_t t0 = in[0] * (1 << (kConstBits + 1));
  const int64_t t2 = in[2 * step] * FIX(1.847759065) - in[6 * step] * FIX(0.765366865);
  const int64_t a = in[7 * step], b = in[5 * step], c = in[3 * step], d = in[step];
  const int64_t odd0 =
      -a * FIX(0.211164243) + b * FIX(1.451774981) - c * FIX(2.172734803) + d * FIX(1.061594337);
  const int64_t odd2 =
      -a * FIX(0.509795579) - b * FIX(0.601344887) + c * FIX(0.899976223) + d * FIX(2.562915447);
  out[0] = t0 + t2 + odd2;
  out[3] = t0 + t2 - odd2;
  out[1] = t0 - t2 + odd0;
  out[2] = t0 - t2 - odd0;
}

static void transform2(const int64_t* in, int step, int64_t* out) {
  const int64_t t0 = in[0] * (1 << (kConstBits + 2));
  const int64_t odd = -in[7 * step] * FIX(0.720959822) + in[5 * step] * FIX(0.850430095) -
                      in[3 * step] * FIX(1.272758580) + in[step] * FIX(3.624509785);
  out[0] = t0 + odd;
  out[1] = t0 - odd;
}

// |more|: bits that the transform of this size scales up by, beyond the constants'.
static void idct_small(const int16_t* coefs, const uint16_t* quant, int size, int more,
                       uint8_t* pixels, int stride) {
  int64_t in[WEIR_JPEG_BLOCK], work[WEIR_JPEG_BLOCK] = {0}, out[4];
  for (int i = 0; i < WEIR_JPEG_BLOCK; ++i) in[i] = (int64_t)coefs[i] * quant[i];
  for (int x = 0; x < 8; ++x) {
    (size == 4 ? transform4 : transform2)(in + x, 8, out);
    for (int y = 0; y < size; ++y) {
      work[8 * y + x] = descale(out[y], kConstBits - kPassBits + more);
    }
  }
  for (int y = 0; y < size; ++y) {
    (size == 4 ? transform4 : transform2)(work + 8 * y, 1, out);
    for (int x = 0; x < size; ++x) {
      pixels[y * stride + x] =
          weir_jpeg_clamp(descale(out[x], kConstBits + kPassBits + 3 + more) + 128);
    }
  }
}

void weir_jpeg_idct(const int16_t* coefs, const uint16_t* quant, int scale, uint8_t* pixels,
                    int stride) {
  switch (scale) {
    case 8: idct8(coefs, quant, pixels, stride); break;
    case 4: idct_small(coefs, quant, 4, 1, pixels, stride); break;
    case 2: idct_small(coefs, quant, 2, 2, pixels, stride); break;
    default: *pixels = weir_jpeg_clamp(descale((int64_t)coefs[0] * quant[0], 3) + 128); break;
  }
}

// ---- fast ----

enum { kFastBits = 8 };

static int64_t times(int64_t x, int constant) { return (x * constant) >> kFastBits; }

static void transform_fast(const int64_t* in, int step, int64_t* out) {
  // Even part.
  const int64_t t10 = in[0] + in[4 * step], t11 = in[0] - in[4 * step];
  const int64_t t13 = in[2 * step] + in[6 * step];
  const int64_t t12 = times(in[2 * step] - in[6 * step], 362) - t13;  // sqrt(2)
  const int64_t even[4] = {t10 + t13, t11 + t12, t11 - t12, t10 - t13};
  // Odd part.
  const int64_t z13 = in[5 * step] + in[3 * step], z10 = in[5 * step] - in[3 * step];
  const int64_t z11 = in[step] + in[7 * step], z12 = in[step] - in[7 * step];
  const int64_t o7 = z11 + z13;
  const int64_t o11 = times(z11 - z13, 362);
  const int64_t z5 = times(z10 + z12, 473);   // 1.847759065
  const int64_t o10 = times(z12, 277) - z5;   // 1.082392200
  const int64_t o12 = times(z10, -669) + z5;  // -2.613125930
  const int64_t o6 = o12 - o7, o5 = o11 - o6, o4 = o10 + o5;
  out[0] = even[0] + o7;
  out[7] = even[0] - o7;
  out[1] = even[1] + o6;
  out[6] = even[1] - o6;
  out[2] = even[2] + o5;
  out[5] = even[2] - o5;
  out[4] = even[3] + o4;
  out[3] = even[3] - o4;
}

void weir_jpeg_fast_multipliers(const uint16_t* quant, int32_t* multipliers) {
  double scale[8] = {1};
  const double pi = 3.14159265358979323846;
  for (int i = 1; i < 8; ++i) scale[i] = cos(i * pi / 16) * sqrt(2.0);
  for (int i = 0; i < WEIR_JPEG_BLOCK; ++i) {
    const int64_t factor = (int64_t)(scale[i / 8] * scale[i % 8] * (1 << 14) + 0.5);
    multipliers[i] = (int32_t)descale(quant[i] * factor, 14 - kPassBits);
  }
}

void weir_jpeg_idct_fast(const int16_t* coefs, const int32_t* multipliers, uint8_t* pixels,
                         int stride) {
  int64_t in[WEIR_JPEG_BLOCK], work[WEIR_JPEG_BLOCK], out[8];
  for (int i = 0; i < WEIR_JPEG_BLOCK; ++i) in[i] = (int64_t)coefs[i] * multipliers[i];
  for (int x = 0; x < 8; ++x) {
    transform_fast(in + x, 8, out);
    for (int y = 0; y < 8; ++y) work[8 * y + x] = out[y];
  }
  for (int y = 0; y < 8; ++y) {
    transform_fast(work + 8 * y, 1, out);
    for (int x = 0; x < 8; ++x) {
      pixels[y * stride + x] = weir_jpeg_clamp((out[x] >> (kPassBits + 3)) + 128);
    }
  }
}
