/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of events, kinds, phases and pins: what people, files and flags read. */
#include "event.h"

#include <stddef.h>

const char *
coop_event_kind_label (unsigned kind)
{
  switch (kind)
    {
#define X(ID, value, label)                                                                        \
    case value:                                                                                    \
      return label;
      COOP_EVENT_KINDS (X)
#undef X
    default:
      return NULL;
    }
}

static const char *
label_of (const char *const *labels, unsigned n, unsigned i)
{
  return i < n ? labels[i] : NULL;
}

const char *
coop_kind_label (unsigned kind)
{
  static const char *const labels[COOP_N_KINDS] = {
    [COOP_KIND_UNKNOWN] = "unknown",   [COOP_KIND_STATE] = "state",
    [COOP_KIND_ACTIVATION] = "activation", [COOP_KIND_GRADIENT] = "gradient",
    [COOP_KIND_OTHER] = "other",       [COOP_KIND_UNMANAGED] = "unmanaged",
  };
  return label_of (labels, COOP_N_KINDS, kind);
}

const char *
coop_phase_label (unsigned phase)
{
  static const char *const labels[COOP_N_PHASES] = {
    [COOP_PHASE_OTHER] = "other",
    [COOP_PHASE_FORWARD] = "forward",
    [COOP_PHASE_BACKWARD] = "backward",
    [COOP_PHASE_OPTIMIZER] = "optimizer",
  };
  return label_of (labels, COOP_N_PHASES, phase);
}

const char *
coop_pin_label (unsigned pin)
{
  static const char *const labels[COOP_N_PINS] = {
    [COOP_PIN_NONE] = "none",           [COOP_PIN_OPERATOR] = "operator",
    [COOP_PIN_CONSTANT] = "constant",   [COOP_PIN_ESCAPED] = "escaped",
    [COOP_PIN_USER] = "user",           [COOP_PIN_UNCLAIMED] = "unclaimed",
    [COOP_PIN_UNMANAGED] = "unmanaged", [COOP_PIN_PENDING] = "pending",
  };
  return label_of (labels, COOP_N_PINS, pin);
}
