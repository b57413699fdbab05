/* SPDX-License-Identifier: Apache-2.0 */
/* Legend: samples painted by the same function as the map. */
#include "config.h"

#include "legend.h"

#include <glib/gi18n.h>

#include "draw/text.h"

#define SAMPLE_WIDTH 24
#define SAMPLE_HEIGHT 14

/* One sample: a paintable picture and its name. */
typedef struct {
  const char *name, *help;
  CoopKind kind;
  gboolean used, pinned, victim;
} Entry;

static const Entry entries[] = {
  { N_("State"), N_("Parameters, buffers, optimizer state"), COOP_KIND_STATE, TRUE, FALSE, FALSE },
  { N_("Activation"), N_("Made in the forward pass"), COOP_KIND_ACTIVATION, TRUE, FALSE, FALSE },
  { N_("Gradient"), N_("Made in the backward pass"), COOP_KIND_GRADIENT, TRUE, FALSE, FALSE },
  { N_("Other"), N_("Batches, results"), COOP_KIND_OTHER, TRUE, FALSE, FALSE },
  { N_("Workspace"), N_("Temporary memory that no tensor has claimed"), COOP_KIND_UNKNOWN, TRUE, FALSE,
    FALSE },
  { N_("Unmanaged"), N_("In the pool, but never evictable"), COOP_KIND_UNMANAGED, TRUE, FALSE, FALSE },
  { N_("Pinned"), N_("Hatched: may not be evicted now. Plain: may. Paler: not used for longer"),
    COOP_KIND_ACTIVATION, TRUE, TRUE, FALSE },
  { N_("Hole"), N_("Free, with its size where it fits. The largest hole is tinted"), COOP_KIND_UNKNOWN,
    FALSE, FALSE, FALSE },
  { N_("Last eviction"), N_("Underlined: where the last victims lay"), COOP_KIND_UNKNOWN, FALSE, FALSE,
    TRUE },
};

struct _CoopLegend
{
  GtkWidget parent_instance;

  GtkWidget *box, *scale;
  GtkWidget *samples[G_N_ELEMENTS (entries)];
  int factor; /* that the samples were painted for; 0: not yet */
  gboolean dark, contrast;
};

G_DEFINE_FINAL_TYPE (CoopLegend, coop_legend, GTK_TYPE_WIDGET)

const char *
coop_legend_kind_name (CoopKind kind)
{
  for (gsize i = 0; i < G_N_ELEMENTS (entries); i++)
    if (entries[i].used && !entries[i].pinned && entries[i].kind == kind)
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
  coop_map_swatch (entry->kind, entry->used, entry->pinned, entry->victim, dark, contrast, pixels, width,
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
  GtkWidget *flow = gtk_flow_box_new ();
  gtk_flow_box_set_selection_mode (GTK_FLOW_BOX (flow), GTK_SELECTION_NONE);
  gtk_flow_box_set_max_children_per_line (GTK_FLOW_BOX (flow), G_N_ELEMENTS (entries));
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
    }
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
