/* SPDX-License-Identifier: Apache-2.0 */
/* Text helpers shared by picture and chart. */
#ifndef COOP_DRAW_TEXT_H
#define COOP_DRAW_TEXT_H

#include <cairo.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A sans font with every option that could differ between machines' settings fixed. */
void coop_text_font (cairo_t *cr, double size, bool bold);
void coop_text_color (cairo_t *cr, uint32_t argb, double alpha);
/* "37.7 MiB"; shorter than the general format: "512 MiB", not "512.0 MiB". */
void coop_text_size (uint64_t bytes, char *out, size_t size);

#endif
