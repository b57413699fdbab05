/* SPDX-License-Identifier: Apache-2.0 */
/* Intern: texts, frames and stacks get a number once; the trace gets each once.
 *
 * What is interned before the run begins (names of dtypes, say) is kept and told when it begins.
 */
#include "torch/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  uint64_t key[3];   /* texts: hash; frames: file, func, line; stacks: parent, frame */
  char *text;        /* text, or "file:line" of a frame; NULL for stacks */
  uint64_t id;
  uint16_t kind;     /* CoopEventKind */
} Entry;

static struct {
  Entry *entries;    /* open addressing, size a power of two */
  size_t size, used;
  uint64_t last[3];  /* ids given: strings, frames, stacks */
  char *ignore[2];   /* folders of PyTorch and of this package */
} table;

static uint64_t
mix (uint64_t h)
{
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdull;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ull;
  return h ^ (h >> 33);
}

static void
tell (const Entry *entry)
{
  CoopEvent ev = { .kind = entry->kind };

  switch (entry->kind)
    {
    case COOP_EVENT_STRING:
      ev.u.string.id = entry->id;
      ev.u.string.bytes = strnlen (entry->text, 1024);
      coop_tell_text (&ev, entry->text);
      break;
    case COOP_EVENT_FRAME:
      ev.u.frame.id = entry->id;
      ev.u.frame.file = entry->key[0];
      ev.u.frame.func = entry->key[1];
      ev.u.frame.line = (int64_t) entry->key[2];
      coop_tell (&ev, NULL);
      break;
    default:
      ev.u.stack.id = entry->id;
      ev.u.stack.parent = entry->key[0];
      ev.u.stack.frame = entry->key[1];
      coop_tell (&ev, NULL);
    }
}

static int
by_id (const void *a, const void *b)
{
  const Entry *const *x = a, *const *y = b;
  return (*x)->kind != (*y)->kind ? (*x)->kind - (*y)->kind : ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

void
coop_intern_begin (void)
{
  const Entry **sorted = malloc ((table.used + 1) * sizeof *sorted);
  size_t n = 0;

  if (sorted == NULL)
    return;
  for (size_t i = 0; i < table.size; i++)
    if (table.entries[i].id != 0)
      sorted[n++] = &table.entries[i];
  qsort (sorted, n, sizeof *sorted, by_id);
  for (size_t i = 0; i < n; i++)
    tell (sorted[i]);
  free (sorted);
}

static Entry *
slot_for (const uint64_t key[3], const char *text, uint16_t kind)
{
  uint64_t h = mix (key[0] ^ mix (key[1] ^ mix (key[2] ^ kind)));

  for (size_t i = h & (table.size - 1);; i = (i + 1) & (table.size - 1))
    {
      Entry *e = &table.entries[i];
      if (e->id == 0)
        return e;
      if (e->kind == kind && memcmp (e->key, key, sizeof e->key) == 0
          && (kind != COOP_EVENT_STRING || strcmp (e->text, text) == 0))
        return e;
    }
}

static bool
grow (void)
{
  Entry *old = table.entries;
  size_t old_size = table.size, size = old_size ? 2 * old_size : 1024;

  table.entries = calloc (size, sizeof *table.entries);
  if (table.entries == NULL)
    {
      table.entries = old;
      return false;
    }
  table.size = size;
  for (size_t i = 0; i < old_size; i++)
    if (old[i].id != 0)
      *slot_for (old[i].key, old[i].text, old[i].kind) = old[i];
  free (old);
  return true;
}

static const Entry *
intern (const uint64_t key[3], const char *text, uint16_t kind)
{
  static const Entry nothing;

  if (table.used * 2 >= table.size && !grow ())
    return &nothing;
  Entry *e = slot_for (key, text, kind);
  if (e->id != 0)
    return e;
  char *copy = text ? strdup (text) : NULL;
  if (text != NULL && copy == NULL)
    return &nothing;
  memcpy (e->key, key, sizeof e->key);
  e->text = copy;
  e->kind = kind;
  e->id = ++table.last[kind == COOP_EVENT_STRING ? 0 : kind == COOP_EVENT_FRAME ? 1 : 2];
  table.used++;
  if (coop_on ())
    {
      coop_lock ();
      tell (e);
      coop_unlock ();
    }
  return e;
}

uint64_t
coop_intern_texts (void)
{
  return table.last[0] + table.last[1];
}

uint64_t
coop_string (const char *text)
{
  uint64_t key[3] = { 0, 0, 0 };

  for (const char *p = text; *p; p++)
    key[0] = (key[0] ^ (unsigned char) *p) * 0x100000001b3ull;
  return intern (key, text, COOP_EVENT_STRING)->id;
}

void
coop_intern_ignore (unsigned which, const char *folder)
{
  free (table.ignore[which]);
  table.ignore[which] = strdup (folder);
}

static bool
is_ignored (const char *file)
{
  for (unsigned i = 0; i < 2; i++)
    if (table.ignore[i] != NULL && strncmp (file, table.ignore[i], strlen (table.ignore[i])) == 0)
      return true;
  return false;
}

typedef struct {
  char file[512], func[128];
  long line;
} Frame;

static bool
text_attribute (PyObject *object, const char *name, char *out, size_t size)
{
  PyObject *text = object ? PyObject_GetAttrString (object, name) : NULL;
  bool ok = text != NULL && coop_utf8 (text, out, size) != NULL;

  Py_XDECREF (text);
  return ok;
}

/* One Python frame. False: PyTorch's own, or unreadable. */
static bool
frame_read (PyObject *frame, Frame *f)
{
  PyObject *code = PyObject_GetAttrString (frame, "f_code");
  PyObject *line = PyObject_GetAttrString (frame, "f_lineno");
  bool ok = text_attribute (code, "co_filename", f->file, sizeof f->file)
            && text_attribute (code, "co_name", f->func, sizeof f->func);

  f->line = line && PyLong_Check (line) ? PyLong_AsLong (line) : 0;
  Py_XDECREF (code);
  Py_XDECREF (line);
  PyErr_Clear ();
  return ok && !is_ignored (f->file);
}

#define MAX_FRAMES 64
#define MAX_WARNINGS 8

/* Outermost frame first, so that a stack's parent is known. */
static uint64_t
stack_of (uint64_t frames[], unsigned n)
{
  uint64_t stack = 0;

  while (n > 0)
    stack = intern ((uint64_t[3]){ stack, frames[--n], 0 }, NULL, COOP_EVENT_STACK)->id;
  return stack;
}

uint64_t
coop_stack (const char **where)
{
  uint64_t frames[MAX_FRAMES];
  unsigned n = 0;
  PyObject *frame = (PyObject *) PyEval_GetFrame ();

  *where = NULL;
  Py_XINCREF (frame);
  while (frame != NULL && frame != Py_None && n < MAX_FRAMES)
    {
      char text[544];
      Frame f;
      if (frame_read (frame, &f))
        {
          uint64_t file = coop_string (f.file), func = coop_string (f.func);
          snprintf (text, sizeof text, "%s:%ld", f.file, f.line);
          const Entry *e = intern ((uint64_t[3]){ file, func, (uint64_t) f.line }, text,
                                   COOP_EVENT_FRAME);
          if (n == 0)
            *where = e->text;
          frames[n++] = e->id;
        }
      PyObject *back = PyObject_GetAttrString (frame, "f_back");
      Py_DECREF (frame);
      frame = back;
    }
  Py_XDECREF (frame);
  PyErr_Clear ();
  return stack_of (frames, n);
}

uint64_t
coop_stack_in_module (uint64_t stack, const char *path)
{
  uint64_t file = coop_string ("module"), func = coop_string (path);
  const Entry *e = intern ((uint64_t[3]){ file, func, 0 }, path, COOP_EVENT_FRAME);

  return intern ((uint64_t[3]){ stack, e->id, 0 }, NULL, COOP_EVENT_STACK)->id;
}

/* ---- code objects ---- */

typedef struct {
  PyObject *code;   /* kept, so that its address is not another's */
  CoopCode kind;
} Code;

static CoopCode
ask_code (PyObject *code)
{
  char file[512], func[128];

  if (!text_attribute (code, "co_filename", file, sizeof file)
      || !text_attribute (code, "co_name", func, sizeof func) || !is_ignored (file))
    return COOP_CODE_USER;
  return strcmp (func, "_call_impl") == 0 ? COOP_CODE_MODULE_CALL : COOP_CODE_LIBRARY;
}

CoopCode
coop_code_kind (PyObject *code)
{
  enum { SIZE = 4096 };
  static Code codes[SIZE];
  Code *c = &codes[((uintptr_t) code >> 4) * 0x9e3779b97f4a7c15ull >> 52];

  if (c->code == code)
    return c->kind;
  CoopCode kind = ask_code (code);
  PyErr_Clear ();
  Py_XDECREF (c->code);
  Py_INCREF (code);
  *c = (Code){ code, kind };
  return kind;
}

void
coop_warn (const char *text, uint64_t tensor, uint64_t op)
{
  CoopEvent ev = { .kind = COOP_EVENT_WARNING };
  static unsigned told;

  if (told++ < MAX_WARNINGS)
    fprintf (stderr, "coopscope: %s\n", text);
  if (told == MAX_WARNINGS)
    fprintf (stderr, "coopscope: further warnings go to the trace alone\n");
  ev.u.warning.code = COOP_WARNING_TOLD;
  ev.u.warning.tensor = tensor;
  ev.u.warning.op = op;
  ev.u.warning.string = coop_string (text);
  if (!coop_on ())
    return;
  coop_lock ();
  coop_tell_text (&ev, text);
  coop_unlock ();
}
