/* SPDX-License-Identifier: Apache-2.0 */
/* Legend: samples painted by the same function as the map. */
#include "config.h"

#include "legend.h"

#include <glib/gi18n.h>

#include "colors.h"
#include "draw/text.h"

#define SAMPLE_WIDTH 24
#define SAMPLE_HEIGHT 14
#define N_KIND_ENTRIES 6 /* the first entries */
/* Shown where there are such only. */
#define PENDING_ENTRY 7
#define VOID_ENTRY 9

/* One sample: a paintable picture and its name. */
typedef struct {
  const char *name, *help;
  CoopKind kind;
  gboolean used;
  CoopPin pin;
  gboolean victim;
} Entry;

static const Entry entries[] = {
  { N_("State"), N_("Parameters, buffers, optimizer state"), COOP_KIND_STATE, TRUE, COOP_PIN_NONE, FALSE },
  { N_("Activation"), N_("Made in the forward pass"), COOP_KIND_ACTIVATION, TRUE, COOP_PIN_NONE, FALSE },
  { N_("Gradient"), N_("Made in the backward pass"), COOP_KIND_GRADIENT, TRUE, COOP_PIN_NONE, FALSE },
  { N_("Other"), N_("Batches, results"), COOP_KIND_OTHER, TRUE, COOP_PIN_NONE, FALSE },
  { N_("Workspace"), N_("Temporary memory that no tensor has claimed"), COOP_KIND_UNKNOWN, TRUE,
    COOP_PIN_NONE, FALSE },
  { N_("Unmanaged"), N_("In the pool, but never evictable"), COOP_KIND_UNMANAGED, TRUE, COOP_PIN_NONE, FALSE },
  { N_("Pinned"), N_("Hatched: may not be evicted now. Plain: may. Paler: not used for longer"),
    COOP_KIND_ACTIVATION, TRUE, COOP_PIN_CONSTANT, FALSE },
  { N_("Pending"), N_("Hatched the other way: freed, but a stream of the device may still use it"),
    COOP_KIND_ACTIVATION, TRUE, COOP_PIN_PENDING, FALSE },
  { N_("Hole"), N_("Free, with its size where it fits. The largest hole is tinted"), COOP_KIND_UNKNOWN,
    FALSE, COOP_PIN_NONE, FALSE },
  { N_("Not backed"), N_("Addresses not backed by the device: no memory is there, so it is no hole"),
    COOP_KIND_UNMANAGED, FALSE, COOP_PIN_NONE, FALSE },
  { N_("Last eviction"), N_("Underlined: where the last victims lay"), COOP_KIND_UNKNOWN, FALSE,
    COOP_PIN_NONE, TRUE },
};

struct _CoopLegend
{
  GtkWidget parent_instance;

  GtkWidget *box, *flow, *scale;
  guint n_added;  /* samples in front of the entries */
  GtkWidget *samples[G_N_ELEMENTS (entries)];
  GtkWidget *extras[2]; /* voids, pending */
  int factor; /* that the samples were painted for; 0: not yet */
  gboolean dark, contrast;
};

G_DEFINE_FINAL_TYPE (CoopLegend, coop_legend, GTK_TYPE_WIDGET)

const char *
coop_legend_kind_name (CoopKind kind)
{
  for (gsize i = 0; i < G_N_ELEMENTS (entries); i++)
    if (entries[i].used && !entries[i].pin && entries[i].kind == kind)
      return _(entries[i].name);
  return coop_kind_label (kind);
}

const char *
coop_legend_pin_name (CoopPin pin)
{
  switch (pin)
    {
    case COOP_PIN_NONE:
      return _("evictable");
    case COOP_PIN_OPERATOR:
      return _("in use by an operator");
    case COOP_PIN_CONSTANT:
      return _("constant: cannot be made again");
    case COOP_PIN_ESCAPED:
      return _("its pointer is known elsewhere");
    case COOP_PIN_USER:
      return _("kept by the script");
    case COOP_PIN_UNCLAIMED:
      return _("workspace of an operator");
    case COOP_PIN_UNMANAGED:
      return _("of a sort that is not managed");
    case COOP_PIN_PENDING:
      return _("freed, waits for a stream");
    case COOP_N_PINS:
      break;
    }
  return "?";
}

static GdkPaintable *
paint_sample (const Entry *entry, gboolean dark, gboolean contrast, int factor)
{
  int width = SAMPLE_WIDTH * factor, height = SAMPLE_HEIGHT * factor;
  guint32 *pixels = g_new (guint32, (gsize) width * (gsize) height);
  coop_map_swatch (entry->kind, entry->used, entry->pin, entry->victim, dark, contrast, pixels, width,
                   height, (gsize) width * 4);
  g_autoptr (GBytes) bytes = g_bytes_new_take (pixels, (gsize) width * (gsize) height * 4);
  return GDK_PAINTABLE (gdk_memory_texture_new (width, height, GDK_MEMORY_DEFAULT, bytes,
                                                (gsize) width * 4));
}

static void
coop_legend_dispose (GObject *object)
{
  g_clear_pointer (&COOP_LEGEND (object)->box, gtk_widget_unparent);
  G_OBJECT_CLASS (coop_legend_parent_class)->dispose (object);
}

static void
coop_legend_class_init (CoopLegendClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_legend_dispose;
  gtk_widget_class_set_css_name (widget_class, "cooplegend");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_GROUP);
}

static GtkWidget *
make_entry (CoopLegend *self, gsize i)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 5);
  GtkWidget *label = gtk_label_new (_(entries[i].name));
  self->samples[i] = gtk_picture_new ();
  gtk_widget_set_size_request (self->samples[i], SAMPLE_WIDTH, SAMPLE_HEIGHT);
  gtk_widget_set_valign (self->samples[i], GTK_ALIGN_CENTER);
  gtk_widget_add_css_class (label, "caption");
  gtk_box_append (GTK_BOX (box), self->samples[i]);
  gtk_box_append (GTK_BOX (box), label);
  gtk_widget_set_tooltip_text (box, _(entries[i].help));
  return box;
}

static void
coop_legend_init (CoopLegend *self)
{
  GtkWidget *flow = self->flow = gtk_flow_box_new ();
  gtk_flow_box_set_selection_mode (GTK_FLOW_BOX (flow), GTK_SELECTION_NONE);
  gtk_flow_box_set_max_children_per_line (GTK_FLOW_BOX (flow), G_N_ELEMENTS (entries) + COOP_N_GROUPS);
  gtk_flow_box_set_min_children_per_line (GTK_FLOW_BOX (flow), 5);
  gtk_flow_box_set_column_spacing (GTK_FLOW_BOX (flow), 10);
  gtk_flow_box_set_row_spacing (GTK_FLOW_BOX (flow), 3);
  gtk_widget_set_hexpand (flow, TRUE);
  gtk_widget_add_css_class (flow, "legend");
  for (gsize i = 0; i < G_N_ELEMENTS (entries); i++)
    {
      GtkWidget *child = gtk_flow_box_child_new ();
      gtk_widget_set_focusable (child, FALSE);
      gtk_flow_box_child_set_child (GTK_FLOW_BOX_CHILD (child), make_entry (self, i));
      gtk_flow_box_append (GTK_FLOW_BOX (flow), child);
      if (i == VOID_ENTRY || i == PENDING_ENTRY)
        self->extras[i == PENDING_ENTRY] = child;
    }
  coop_legend_forget_extras (self);
  self->scale = gtk_label_new (NULL);
  gtk_label_set_width_chars (GTK_LABEL (self->scale), 16);
  gtk_label_set_xalign (GTK_LABEL (self->scale), 1);
  gtk_widget_set_valign (self->scale, GTK_ALIGN_START);
  gtk_widget_set_margin_top (self->scale, 3);
  gtk_widget_add_css_class (self->scale, "caption");
  gtk_widget_add_css_class (self->scale, "numeric");

  self->box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  gtk_box_append (GTK_BOX (self->box), flow);
  gtk_box_append (GTK_BOX (self->box), self->scale);
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _("Legend of the map"), -1);
}

GtkWidget *
coop_legend_new (void)
{
  return g_object_new (COOP_TYPE_LEGEND, NULL);
}

void
coop_legend_set_theme (CoopLegend *self, gboolean dark, gboolean contrast)
{
  int factor = gtk_widget_get_scale_factor (GTK_WIDGET (self));
  if (self->factor == factor && self->dark == dark && self->contrast == contrast)
    return;
  self->factor = factor;
  self->dark = dark;
  self->contrast = contrast;
  for (gsize i = 0; i < G_N_ELEMENTS (entries); i++)
    {
      g_autoptr (GdkPaintable) sample = paint_sample (&entries[i], dark, contrast, factor);
      gtk_picture_set_paintable (GTK_PICTURE (self->samples[i]), sample);
    }
}

static GtkWidget *
make_sample (const CoopLegendSample *sample, int factor)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 5), *picture = gtk_picture_new ();
  GtkWidget *label = gtk_label_new (sample->name);
  gsize n = (gsize) SAMPLE_WIDTH * SAMPLE_HEIGHT * (gsize) factor * (gsize) factor;
  guint32 *pixels = g_new (guint32, n);
  for (gsize i = 0; i < n; i++)
    pixels[i] = sample->argb;
  g_autoptr (GBytes) bytes = g_bytes_new_take (pixels, n * 4);
  g_autoptr (GdkTexture) texture = gdk_memory_texture_new (SAMPLE_WIDTH * factor, SAMPLE_HEIGHT * factor,
                                                           GDK_MEMORY_DEFAULT, bytes,
                                                           (gsize) (SAMPLE_WIDTH * factor) * 4);
  gtk_picture_set_paintable (GTK_PICTURE (picture), GDK_PAINTABLE (texture));
  gtk_widget_set_size_request (picture, SAMPLE_WIDTH, SAMPLE_HEIGHT);
  gtk_widget_set_valign (picture, GTK_ALIGN_CENTER);
  gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_END);
  gtk_label_set_max_width_chars (GTK_LABEL (label), 24);
  gtk_widget_add_css_class (label, "caption");
  gtk_box_append (GTK_BOX (box), picture);
  gtk_box_append (GTK_BOX (box), label);
  gtk_widget_set_tooltip_text (box, sample->name);
  return box;
}

void
coop_legend_set_samples (CoopLegend *self, GPtrArray *samples)
{
  GtkFlowBox *flow = GTK_FLOW_BOX (self->flow);
  int factor = gtk_widget_get_scale_factor (GTK_WIDGET (self));
  guint n = samples ? samples->len : 0;
  for (; self->n_added > 0; self->n_added--)
    gtk_flow_box_remove (flow, GTK_WIDGET (gtk_flow_box_get_child_at_index (flow, 0)));
  for (; self->n_added < n; self->n_added++)
    {
      GtkWidget *child = gtk_flow_box_child_new ();
      gtk_widget_set_focusable (child, FALSE);
      gtk_flow_box_child_set_child (GTK_FLOW_BOX_CHILD (child), make_sample (samples->pdata[self->n_added], factor));
      gtk_flow_box_insert (flow, child, (int) self->n_added);
    }
  for (int i = 0; i < N_KIND_ENTRIES; i++)
    gtk_widget_set_visible (GTK_WIDGET (gtk_flow_box_get_child_at_index (flow, (int) n + i)), n == 0);
}

/* Rest where they are once they have been shown: a legend must not jump. */
void
coop_legend_set_extras (CoopLegend *self, gboolean voids, gboolean pending)
{
  if (voids)
    gtk_widget_set_visible (self->extras[0], TRUE);
  if (pending)
    gtk_widget_set_visible (self->extras[1], TRUE);
}

void
coop_legend_forget_extras (CoopLegend *self)
{
  gtk_widget_set_visible (self->extras[0], FALSE);
  gtk_widget_set_visible (self->extras[1], FALSE);
}

void
coop_legend_set_view (CoopLegend *self, const CoopMapView *view)
{
  char size[32];
  coop_text_size ((guint64) view->bytes_per_pixel, size, sizeof size);
  /* Translators: scale of the map: one pixel is so many bytes, like "8 KiB" */
  g_autofree char *text = g_strdup_printf (_("1 pixel = %s"), size);
  if (!g_str_equal (text, gtk_label_get_text (GTK_LABEL (self->scale))))
    gtk_label_set_text (GTK_LABEL (self->scale), text);
  coop_legend_set_theme (self, view->dark, view->contrast);
}
