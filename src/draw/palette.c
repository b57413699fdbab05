/* SPDX-License-Identifier: Apache-2.0 */
/* Colours of the map. The hues are those of Okabe and Ito, which people with any colour vision tell
 * apart; their lightness is set so that the kinds stand about ten steps of CIE L* from each other,
 * and so stay apart in grey too. Texture (hatch, outline) says what hue must not say alone.
 */
#include "draw/map-private.h"

/* [dark + 2 * contrast][kind]; L* in the comment. */
static const uint32_t kind_colors[4][COOP_N_KINDS] = {
  {
      [COOP_KIND_UNMANAGED] = 0xff474747,  /* 30 grey */
      [COOP_KIND_STATE] = 0xff0068a3,      /* 42 blue */
      [COOP_KIND_UNKNOWN] = 0xffb2628f,    /* 52 reddish purple */
      [COOP_KIND_GRADIENT] = 0xff1aa77b,   /* 61 bluish green */
      [COOP_KIND_ACTIVATION] = 0xffeaa30a, /* 72 orange */
      [COOP_KIND_OTHER] = 0xff94d3fe,      /* 82 sky blue */
  },
  {
      [COOP_KIND_UNMANAGED] = 0xff595959,  /* 38 */
      [COOP_KIND_STATE] = 0xff1477b8,      /* 48 */
      [COOP_KIND_UNKNOWN] = 0xffc06e9c,    /* 57 */
      [COOP_KIND_GRADIENT] = 0xff31b588,   /* 66 */
      [COOP_KIND_ACTIVATION] = 0xfff7ad1e, /* 76 */
      [COOP_KIND_OTHER] = 0xffaeddff,      /* 86 */
  },
  {
      [COOP_KIND_UNMANAGED] = 0xff303030,  /* 20 */
      [COOP_KIND_STATE] = 0xff005485,      /* 34 */
      [COOP_KIND_UNKNOWN] = 0xffa25280,    /* 46 */
      [COOP_KIND_GRADIENT] = 0xff079c72,   /* 57 */
      [COOP_KIND_ACTIVATION] = 0xffe09b01, /* 69 */
      [COOP_KIND_OTHER] = 0xff8cd1ff,      /* 81 */
  },
  {
      [COOP_KIND_UNMANAGED] = 0xff636363,  /* 42 */
      [COOP_KIND_STATE] = 0xff2a81c3,      /* 52 */
      [COOP_KIND_UNKNOWN] = 0xffcc79a7,    /* 61 */
      [COOP_KIND_GRADIENT] = 0xff3fc092,   /* 70 */
      [COOP_KIND_ACTIVATION] = 0xffffba45, /* 80 */
      [COOP_KIND_OTHER] = 0xffc7e7ff,      /* 90 */
  },
};

/* PAGE is libadwaita's window_bg_color, so that the map lies on the page and not in a frame. */
static const uint32_t ink_colors[4][COOP_N_INKS] = {
  {
      [COOP_INK_PAGE] = 0xfffafafa, [COOP_INK_HOLE] = 0xffffffff, [COOP_INK_LARGEST] = 0xffdff1e4,
      [COOP_INK_OUTLINE] = 0xffa8a8a8, [COOP_INK_STRONG] = 0xff1b1b1b, [COOP_INK_BEYOND] = 0xffefefef,
      [COOP_INK_WARN] = 0xffd55e00,
  },
  {
      [COOP_INK_PAGE] = 0xff242424, [COOP_INK_HOLE] = 0xff171717, [COOP_INK_LARGEST] = 0xff1d3527,
      [COOP_INK_OUTLINE] = 0xff777777, [COOP_INK_STRONG] = 0xfff2f2f2, [COOP_INK_BEYOND] = 0xff2e2e2e,
      [COOP_INK_WARN] = 0xffff7a24,
  },
  {
      [COOP_INK_PAGE] = 0xfffafafa, [COOP_INK_HOLE] = 0xffffffff, [COOP_INK_LARGEST] = 0xffffffff,
      [COOP_INK_OUTLINE] = 0xff000000, [COOP_INK_STRONG] = 0xff000000, [COOP_INK_BEYOND] = 0xffdcdcdc,
      [COOP_INK_WARN] = 0xffb83a00,
  },
  {
      [COOP_INK_PAGE] = 0xff242424, [COOP_INK_HOLE] = 0xff000000, [COOP_INK_LARGEST] = 0xff000000,
      [COOP_INK_OUTLINE] = 0xffffffff, [COOP_INK_STRONG] = 0xffffffff, [COOP_INK_BEYOND] = 0xff404040,
      [COOP_INK_WARN] = 0xffff8c3d,
  },
};

static int
theme (bool dark, bool contrast)
{
  return (dark ? 1 : 0) + (contrast ? 2 : 0);
}

uint32_t
coop_map_mix (uint32_t a, uint32_t b, uint32_t part)
{
  uint32_t out = 0xff000000;
  for (int shift = 0; shift <= 16; shift += 8)
    {
      uint32_t x = a >> shift & 0xff, y = b >> shift & 0xff;
      out |= ((x * (256 - part) + y * part + 128) >> 8) << shift;
    }
  return out;
}

uint32_t
coop_map_kind_color (CoopKind kind, bool dark, bool contrast)
{
  if ((unsigned) kind >= COOP_N_KINDS)
    kind = COOP_KIND_UNKNOWN;
  return kind_colors[theme (dark, contrast)][kind];
}

/* The hues of Okabe and Ito without vermilion, which is WARN, and two more; L* from 35 to 85. */
static const uint32_t group_colors[2][COOP_N_GROUPS] = {
  { 0xff9a9a9a, 0xffeaa30a, 0xff0068a3, 0xff1aa77b, 0xffb2628f, 0xff77c3f0, 0xffd9c300, 0xff5b4bb3, 0xff7a4f21 },
  { 0xff7c7c7c, 0xfff7ad1e, 0xff2a81c3, 0xff31b588, 0xffd080ae, 0xff94d3fe, 0xfff0e442, 0xff8f7ff0, 0xffb07a45 },
};

/* Stops of viridis, whose lightness grows evenly. */
static const uint32_t ramp_stops[5] = { 0xff440154, 0xff3b528b, 0xff21918c, 0xff5ec962, 0xfffde725 };

uint32_t
coop_map_group_color (int group, bool dark, bool contrast)
{
  (void) contrast; /* they stand out from the page as they are */
  return group_colors[dark][group < 0 || group >= COOP_N_GROUPS ? 0 : group];
}

uint32_t
coop_map_ramp_color (int step, bool dark)
{
  step = step < 0 ? 0 : step >= COOP_N_RAMP ? COOP_N_RAMP - 1 : step;
  if (!dark)
    step = COOP_N_RAMP - 1 - step;
  int place = step * 4 * 256 / (COOP_N_RAMP - 1), stop = place >> 8;
  if (stop >= 4)
    return ramp_stops[4];
  return coop_map_mix (ramp_stops[stop], ramp_stops[stop + 1], (uint32_t) (place & 255));
}

uint32_t
coop_map_ink (CoopMapInk ink, bool dark, bool contrast)
{
  return ink_colors[theme (dark, contrast)][(unsigned) ink < COOP_N_INKS ? ink : COOP_INK_PAGE];
}

uint32_t
coop_map_shade (uint32_t color, uint8_t age, bool dark, bool contrast)
{
  if (contrast)
    return color;
  return coop_map_mix (color, coop_map_ink (COOP_INK_PAGE, dark, false), (uint32_t) age * 3 / 10);
}

uint32_t
coop_map_hatch (uint32_t color, bool contrast)
{
  return coop_map_mix (color, 0xff000000, contrast ? 150 : 84);
}

uint32_t
coop_map_edge (uint32_t color, bool dark)
{
  return dark ? coop_map_mix (color, 0xff000000, 130) : coop_map_mix (color, 0xffffffff, 150);
}
