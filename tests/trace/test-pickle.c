/* SPDX-License-Identifier: Apache-2.0 */
/* The pickle reader: values, sharing, refusals, and what is cut short. test-pickle SNAPSHOT.pickle */
#include <glib/gstdio.h>
#include <string.h>

#include "trace/pickle.h"
#include "trace/snapshot.h"

static char *snapshot;

typedef struct {
  const char *data;
  gsize left;
} Input;

static gssize
read_input (gpointer user, void *buffer, gsize n)
{
  Input *input = user;
  n = MIN (MIN (n, input->left), 3);
  memcpy (buffer, input->data, n);
  input->data += n;
  input->left -= n;
  return (gssize) n;
}

static guint sealed;

static guint64
seal (gpointer user, CoopPickle *pickle, CoopPickleValue list)
{
  sealed++;
  return 7 + coop_pickle_length (pickle, list);
}

static CoopPickle *
parse (const char *data, gsize n, GError **error)
{
  Input input = { data, n };
  CoopPickleSource source = { .read = read_input, .read_user = &input, .seal_key = "frames", .seal = seal };
  return coop_pickle_read (&source, error);
}

#define PARSE(text, error) parse (text, sizeof (text) - 1, error)

static void
assert_int (CoopPickle *p, CoopPickleValue value, guint64 wanted)
{
  guint64 got;
  g_assert_true (coop_pickle_int (p, value, &got));
  g_assert_cmpuint (got, ==, wanted);
}

static void
test_values (void)
{
  g_autoptr (GError) error = NULL;
  /* [255, 65535, -1, 2**31, -2**63, 2**64 - 1, 0, 2**100, 1.5, True, None, "ab", b"x", ()] */
  CoopPickle *p = PARSE ("\x80\x02](K\xffM\xff\xffJ\xff\xff\xff\xff\x8a\x05\x00\x00\x00\x80\x00"
                         "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00\x8a\x00"
                         "\x8a\x0d\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10G\x3f\xf8\x00\x00\x00\x00\x00\x00\x88N"
                         "X\x02\x00\x00\x00" "abC\x01x)e.", &error);
  g_assert_no_error (error);
  CoopPickleValue list = coop_pickle_root (p);
  const guint64 numbers[] = { 255, 65535, (guint64) -1, G_GUINT64_CONSTANT (1) << 31, G_GUINT64_CONSTANT (1) << 63, G_MAXUINT64, 0 };
  double real;
  g_assert_cmpuint (coop_pickle_length (p, list), ==, 14);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    assert_int (p, coop_pickle_item (p, list, i), numbers[i]);
  g_assert_cmpint (coop_pickle_type (coop_pickle_item (p, list, 7)), ==, COOP_PICKLE_BYTES);
  g_assert_true (coop_pickle_real (p, coop_pickle_item (p, list, 8), &real) && real == 1.5);
  assert_int (p, coop_pickle_item (p, list, 9), 1);
  g_assert_cmpint (coop_pickle_type (coop_pickle_item (p, list, 10)), ==, COOP_PICKLE_NONE);
  g_assert_cmpstr (coop_pickle_text (p, coop_pickle_item (p, list, 11), NULL), ==, "ab");
  g_assert_cmpint (coop_pickle_type (coop_pickle_item (p, list, 12)), ==, COOP_PICKLE_BYTES);
  g_assert_cmpint (coop_pickle_type (coop_pickle_item (p, list, 13)), ==, COOP_PICKLE_TUPLE);
  g_assert_cmpuint (coop_pickle_item (p, list, 14), ==, 0);
  coop_pickle_free (p);
}

/* {"a": 1, "a": 2, "b": memo of "a"}; the last one of a key counts */
static void
test_dict_and_memo (void)
{
  CoopPickle *p = PARSE ("\x80\x04}\x94(\x8c\x01" "a\x94K\x01h\x01K\x02\x8c\x01" "bh\x01u.", NULL);
  g_assert_nonnull (p);
  CoopPickleValue dict = coop_pickle_root (p), key, value;
  g_assert_cmpuint (coop_pickle_pairs (p, dict), ==, 3);
  assert_int (p, coop_pickle_get (p, dict, "a"), 2);
  g_assert_cmpstr (coop_pickle_text (p, coop_pickle_get (p, dict, "b"), NULL), ==, "a");
  g_assert_cmpuint (coop_pickle_get (p, dict, "c"), ==, 0);
  coop_pickle_pair (p, dict, 0, &key, &value);
  g_assert_cmpuint (key, ==, coop_pickle_text_value (p, "a"));
  coop_pickle_free (p);
}

/* Two dicts share one list of frames: it is handed over once, and both have its number. */
static void
test_sealed (void)
{
  sealed = 0;
  CoopPickle *p = PARSE ("\x80\x04](}(\x8c\x06" "frames]\x94(K\x01K\x02" "eu}(\x8c\x06" "framesh\x00ue.", NULL);
  g_assert_nonnull (p);
  for (guint i = 0; i < 2; i++)
    {
      CoopPickleValue frames = coop_pickle_get (p, coop_pickle_item (p, coop_pickle_root (p), i), "frames");
      g_assert_cmpint (coop_pickle_type (frames), ==, COOP_PICKLE_SEALED);
      g_assert_cmpuint (coop_pickle_sealed (frames), ==, 9);
    }
  g_assert_cmpuint (sealed, ==, 1);
  coop_pickle_free (p);
}

static void
test_refused (void)
{
  static const struct {
    const char *bytes;
    gsize n;
    const char *says;
  } bad[] = {
#define BAD(text, says) { text, sizeof (text) - 1, says }
    BAD ("\x80\x02" "cos\nsystem\n.", "byte 2: it imports something (GLOBAL)"),
    BAD ("\x80\x04\x8c\x02os\x8c\x06system\x93.", "byte 14: it imports something (GLOBAL)"),
    BAD ("\x80\x04)\x81.", "byte 3: it calls something (REDUCE)"),
    BAD ("\x80\x02N)R.", "byte 4: it calls something (REDUCE)"),
    BAD ("\x80\x02N}b.", "byte 4: it builds an object (BUILD)"),
    BAD ("\x80\x02K\x01\x51.", "byte 4: it refers to something outside"),
    BAD ("\x80\x02\x82\x01.", "byte 2: it refers to something outside"),
    BAD ("\x80\x04\x8f.", "byte 2: opcode 0x8f"),
    BAD ("(lp0\n.", "byte 0: no pickle of protocol 2"),
    BAD ("\x80\x06N.", "byte 0: pickle protocol 6 is not supported"),
    BAD ("\x80\x02h\x00.", "byte 2: memo number 0 was never given"),
    BAD ("\x80\x02Nr\xff\xff\xff\x7f.", "byte 3: memo number 2147483647 cannot be"),
    BAD ("\x80\x02.", "byte 2: the end comes"),
    BAD ("\x80\x02NN.", "byte 4: the end comes"),
    BAD ("\x80\x02(N.", "byte 4: the end comes"),
    BAD ("\x80\x02" "e.", "byte 2: a mark is missing"),
    BAD ("\x80\x02" "a.", "byte 2: too few values"),
    BAD ("\x80\x02(e.", "byte 3: too few values"),
    BAD ("\x80\x02NK\x01" "a.", "byte 5: items for what is no list"),
    BAD ("\x80\x02}(K\x01u.", "byte 6: a key without a value"),
    BAD ("\x80\x02}]K\x01s.", "byte 6: a key that cannot be one"),
    BAD ("\x80\x02X\xff\xff\xff\xff.", "byte 2: 4294967295 bytes in one piece"),
    BAD ("\x80\x02X\xff\xff\xff\x0f.", "byte 8: the file ends in the middle"),
    BAD ("\x80\x04](}(\x8c\x06" "frames]\x94(K\x01" "euh\x00K\x01" "ae.", "a list grows after its use"),
#undef BAD
  };
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;
      CoopPickle *p = parse (bad[i].bytes, bad[i].n, &error);
      g_test_message ("%s: %s", bad[i].says, error != NULL ? error->message : "taken");
      g_assert_null (p);
      g_assert_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_FOREIGN);
      g_assert_nonnull (strstr (error->message, bad[i].says));
    }
}

/* A list that contains itself, a hundred thousand lists in each other: nothing here walks into values. */
static void
test_deep (void)
{
  CoopPickle *p = PARSE ("\x80\x04]\x94h\x00" "a.", NULL);
  g_assert_nonnull (p);
  g_assert_cmpuint (coop_pickle_item (p, coop_pickle_root (p), 0), ==, coop_pickle_root (p));
  coop_pickle_free (p);
  g_autoptr (GString) deep = g_string_new ("\x80\x04");
  for (guint i = 0; i < 100000; i++)
    g_string_append_c (deep, ']');
  for (guint i = 1; i < 100000; i++)
    g_string_append_c (deep, 'a');
  g_string_append_c (deep, '.');
  p = parse (deep->str, deep->len, NULL);
  g_assert_nonnull (p);
  coop_pickle_free (p);
}

/* ---- cut short, cancelled ---- */

static guint
files_in (const char *dir)
{
  GDir *d = g_dir_open (dir, 0, NULL);
  guint n = 0;
  while (g_dir_read_name (d) != NULL)
    n++;
  g_dir_close (d);
  return n;
}

static void
remove_all (const char *dir)
{
  GDir *d = g_dir_open (dir, 0, NULL);
  for (const char *name; (name = g_dir_read_name (d)) != NULL;)
    {
      g_autofree char *path = g_build_filename (dir, name, NULL);
      g_remove (path);
    }
  g_dir_close (d);
}

/* Every prefix of a snapshot is an error that says at which byte, and leaves nothing behind. */
static void
test_prefixes (void)
{
  g_autofree char *data = NULL, *dir = g_dir_make_tmp ("coop-pickle-XXXXXX", NULL);
  g_autofree char *in = g_build_filename (dir, "s.pickle", NULL), *out = g_build_filename (dir, "s.coop", NULL);
  gsize size;
  g_assert_true (g_file_get_contents (snapshot, &data, &size, NULL));
  for (gsize n = 0; n <= size; n++)
    {
      g_autoptr (GError) error = NULL;
      FILE *file = fopen (in, "wb");
      g_assert_cmpuint (fwrite (data, 1, n, file), ==, n);
      fclose (file);
      CoopSnapshotJob job = { .path = in, .out = out };
      gboolean ok = coop_snapshot_import (&job, &error);
      coop_snapshot_clear (&job);
      g_assert_cmpint (ok, ==, n == size);
      if (ok)
        continue;
      g_autofree char *where = g_strdup_printf ("byte %" G_GSIZE_FORMAT ": ", n);
      g_assert_nonnull (strstr (error->message, where));
      g_assert_cmpuint (files_in (dir), ==, 1);
    }
  g_assert_cmpuint (files_in (dir), ==, 3); /* two devices */
  remove_all (dir);
  g_rmdir (dir);
}

typedef struct {
  guint calls, allowed;
} Cancel;

static gboolean
go_on (gpointer user, double part)
{
  Cancel *cancel = user;
  g_assert_cmpfloat (part, >=, 0);
  g_assert_cmpfloat (part, <=, 1);
  return cancel->calls++ < cancel->allowed;
}

#define ADD(out, text) g_string_append_len (out, text, sizeof (text) - 1)

/* A large one, so that there is something to cancel. */
static void
write_large (const char *path)
{
  g_autoptr (GString) out = g_string_new (NULL);
  ADD (out, "\x80\x02}(X\x08\x00\x00\x00segments]X\x0d\x00\x00\x00" "device_traces](](");
  for (guint32 i = 0; i < 20000; i++)
    {
      guint32 addr = 0x100000 + i * 512;
      ADD (out, "}(X\x06\x00\x00\x00" "actionX\x05\x00\x00\x00" "allocX\x04\x00\x00\x00" "addrJ");
      g_string_append_len (out, (const char *) &addr, 4);
      ADD (out, "X\x04\x00\x00\x00sizeK\x40u");
    }
  ADD (out, "eeu.");
  g_assert_true (g_file_set_contents (path, out->str, (gssize) out->len, NULL));
}

static void
test_cancelled (void)
{
  g_autofree char *dir = g_dir_make_tmp ("coop-pickle-XXXXXX", NULL);
  g_autofree char *in = g_build_filename (dir, "s.pickle", NULL), *out = g_build_filename (dir, "s.coop", NULL);
  guint calls = 0;
  write_large (in);
  for (guint allowed = 0;; allowed++)
    {
      g_autoptr (GError) error = NULL;
      Cancel cancel = { 0, allowed };
      CoopSnapshotJob job = { .path = in, .out = out, .go_on = go_on, .user = &cancel };
      gboolean ok = coop_snapshot_import (&job, &error);
      coop_snapshot_clear (&job);
      if (ok)
        break;
      g_assert_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_CANCELLED);
      g_assert_cmpuint (files_in (dir), ==, 1);
      calls++;
    }
  g_assert_cmpuint (calls, >=, 3); /* while reading and while writing */
  remove_all (dir);
  g_rmdir (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  snapshot = argc > 1 ? argv[1] : NULL;
  g_test_add_func ("/pickle/values", test_values);
  g_test_add_func ("/pickle/dict-and-memo", test_dict_and_memo);
  g_test_add_func ("/pickle/sealed", test_sealed);
  g_test_add_func ("/pickle/refused", test_refused);
  g_test_add_func ("/pickle/deep", test_deep);
  if (snapshot != NULL)
    g_test_add_func ("/snapshot/prefixes", test_prefixes);
  g_test_add_func ("/snapshot/cancelled", test_cancelled);
  return g_test_run ();
}
