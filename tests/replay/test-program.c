/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in files: what is read, what is refused and with which words, and that writing loses nothing. */
#include "replay-support.h"

#include "replay/json-parse.h"

#define OP_A "{\"op\":\"A\",\"in\":[],\"out\":[[1,1024]],\"mut\":[],\"cost\":10}\n"

/* ---- JSON ---- */

static void
test_json (void)
{
  static const char *const good[] = { "1", "-0.5e+3", " [ ] ", "{\"a\":[1,{\"b\":null}],\"c\":\"\\u00e9\\n\"}", "true" };
  static const char *const bad[] = { "", "{", "[1,]", "[1 2]", "{\"a\"}", "{a:1}", "01", "1.", "1e", "nul", "\"a",
                                     "\"\\x\"", "\"\\ud800\"", "1 2", "\"\t\"", "1e999",
                                     "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]" };
  CoopJson *json = coop_json_new ();
  const char *why;
  for (guint i = 0; i < G_N_ELEMENTS (good); i++)
    g_assert_nonnull (coop_json_parse (json, good[i], strlen (good[i]), &why));
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_test_message ("%s", bad[i]);
      g_assert_null (coop_json_parse (json, bad[i], strlen (bad[i]), &why));
      g_assert_nonnull (why);
    }
  coop_json_free (json);
}

static void
test_json_values (void)
{
  CoopJson *json = coop_json_new ();
  const char *why, *text = "{\"a\":[1,[2,3]],\"b\":\"x\\u00e9\",\"c\":18446744073709551615,\"d\":18446744073709551616}";
  const CoopJsonValue *v = coop_json_parse (json, text, strlen (text), &why);
  const CoopJsonValue *a = coop_json_member (v, "a");
  guint64 n;
  g_assert_cmpuint (a->n, ==, 2);
  const CoopJsonValue *list = coop_json_next (coop_json_first (a));
  g_assert_cmpuint (coop_json_next (coop_json_first (list))->u, ==, 3);
  g_assert_cmpstr (coop_json_text (v, "b"), ==, "x\xc3\xa9");
  g_assert_true (coop_json_whole (v, "c", &n));
  g_assert_cmpuint (n, ==, G_MAXUINT64);
  g_assert_false (coop_json_whole (v, "d", &n));
  g_assert_null (coop_json_member (v, "e"));
  coop_json_free (json);
}

/* ---- what is refused ---- */

static void
refuse (const char *text, int code, const char *says)
{
  g_autoptr (GError) error = NULL;
  char *path = make_file ("bad.jsonl", text, -1);
  g_test_message ("%s", text);
  g_assert_null (coop_program_load (path, &error));
  g_assert_error (error, COOP_PROGRAM_ERROR, code);
  if (strstr (error->message, says) == NULL)
    g_error ("\"%s\" does not say \"%s\"", error->message, says);
  drop_file (path);
}

static void
test_refused (void)
{
  static const struct { const char *line, *says; } bad[] = {
    { "{\"op\":\"B\",\"in\":[9],\"out\":[],\"mut\":[],\"cost\":1}", ":2: storage 9 was never made" },
    { "{\"op\":\"B\",\"in\":[1],\"out\":[[1,5]],\"mut\":[],\"cost\":1}", "storage 1 is there already" },
    { "{\"op\":\"B\",\"in\":[],\"out\":[],\"mut\":[1],\"cost\":1}", "which \"in\" does not" },
    { "{\"op\":\"B\",\"in\":[1],\"out\":[],\"mut\":[]}", "no \"cost\"" },
    { "{\"op\":\"B\",\"in\":[1],\"out\":[],\"mut\":[],\"cost\":-1}", "no \"cost\"" },
    { "{\"op\":\"\",\"in\":[1],\"out\":[],\"mut\":[],\"cost\":1}", "without a name" },
    { "{\"op\":\"B\",\"in\":[1]", "not JSON: the line is cut short" },
    { "{\"rel\":2}", "storage 2 was never made" },
    { "{\"rel\":1}\n{\"rel\":1}", ":3: storage 1 was released before" },
    { "{\"const\":[3]}", "no [id,bytes]" },
    { "{\"const\":[3,99999999999999999]}", "99999999999999999 bytes" },
    { "{\"hello\":1}", "neither meta, const, op nor rel" },
    { "{\"free\":1}", "block 1 is not there" },
    { "{\"set\":[\"bugdet\",\"1\",\"flag\"]}", "unknown parameter \"bugdet\"" },
    { "{\"op\":\"B\",\"in\":[],\"out\":[[2,1]],\"mut\":[],\"cost\":1,\"do\":[]}", "does not make output 0" },
    { "{\"op\":\"B\",\"in\":[],\"out\":[],\"mut\":[],\"cost\":1,\"phase\":\"sideways\"}", "unknown phase" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autofree char *text = g_strconcat (OP_A, bad[i].line, "\n", NULL);
      refuse (text, COOP_PROGRAM_ERROR_DAMAGED, bad[i].says);
    }
  refuse ("", COOP_PROGRAM_ERROR_DAMAGED, "empty");
  refuse ("{\"const\":[1,5]}\n", COOP_PROGRAM_ERROR_DAMAGED, "no operator");
  refuse ("hello\n", COOP_PROGRAM_ERROR_FOREIGN, "neither a trace");
}

static void
test_files (void)
{
  g_autoptr (GError) error = NULL;
  g_assert_null (coop_program_load ("/no/such/file.jsonl", &error));
  g_assert_error (error, COOP_PROGRAM_ERROR, COOP_PROGRAM_ERROR_IO);
  g_clear_error (&error);
  /* cut in the middle of the compressed data */
  g_autofree char *from = g_strdup_printf ("%s/oracle/unet.jsonl.gz", g_getenv ("COOP_FIXTURES")), *bytes = NULL;
  gsize n;
  g_assert_true (g_file_get_contents (from, &bytes, &n, NULL));
  char *path = make_file ("cut.jsonl.gz", bytes, (gssize) n / 2);
  g_assert_null (coop_program_load (path, &error));
  g_assert_error (error, COOP_PROGRAM_ERROR, COOP_PROGRAM_ERROR_DAMAGED);
  drop_file (path);
}

/* Any line cut anywhere, any byte changed: refused or read, never a crash; what was read can be played. */
static void
test_nonsense (void)
{
  static const char text[] = "{\"meta\":{\"name\":\"n\",\"peak\":4096}}\n{\"const\":[7,512]}\n" OP_A
                             "{\"op\":\"B\",\"in\":[1,7],\"out\":[[2,2048]],\"mut\":[1],\"cost\":3,"
                             "\"do\":[[\"tmp\",4,99],[\"out\",0],[\"free\",4]]}\n{\"touch\":[2,\"keep\"]}\n{\"rel\":1}\n";
  char *path = make_file ("x.jsonl", text, -1);
  GRand *rand = g_rand_new_with_seed (7);
  guint read = 0;
  for (guint i = 0; i < 3000; i++)
    {
      g_autofree char *copy = g_strdup (text);
      guint at = (guint) g_rand_int_range (rand, 0, (gint32) strlen (text));
      if (i % 2 == 0)
        copy[at] = (char) g_rand_int_range (rand, 32, 127);
      else
        copy[at] = 0;
      g_assert_true (g_file_set_contents_full (path, copy, -1, G_FILE_SET_CONTENTS_NONE, 0600, NULL));
      g_autoptr (CoopProgram) p = coop_program_load (path, NULL);
      if (p == NULL)
        continue;
      CoopPlayOptions o;
      CoopPlayOutcome out;
      plain_policy (&o, COOP_EVICTOR_COOP, 4096);
      coop_play (p, &o, &out);
      g_assert_cmpstr (out.fault, ==, NULL);
      read++;
    }
  g_assert_cmpuint (read, >, 100);
  g_rand_free (rand);
  drop_file (path);
}

/* ---- writing ---- */

static char *
log_of (const CoopProgram *p, guint64 budget)
{
  CoopPlayOptions o;
  CoopPlayOutcome out;
  plain_policy (&o, COOP_EVICTOR_COOP, budget);
  return play_log (p, &o, &out);
}

static void
test_round_trip (void)
{
  g_autofree char *from = g_strdup_printf ("%s/oracle/resnet50.jsonl.gz", g_getenv ("COOP_FIXTURES"));
  g_autoptr (CoopProgram) p = coop_program_load (from, NULL);
  static const char *const names[] = { "p.jsonl.gz", "p.jsonl" };
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GError) error = NULL;
      char *path = make_file (names[i], "", 0);
      g_assert_true (coop_program_save (p, path, &error));
      g_autoptr (CoopProgram) again = coop_program_load (path, &error);
      g_assert_no_error (error);
      g_assert_cmpstr (again->name, ==, p->name);
      g_assert_cmpuint (again->ops, ==, p->ops);
      g_assert_cmpuint (again->total_ns, ==, p->total_ns);
      g_assert_cmpuint (again->stated_peak, ==, p->stated_peak);
      g_autofree char *one = log_of (p, p->stated_peak / 2), *two = log_of (again, p->stated_peak / 2);
      g_assert_cmpstr (one, ==, two);
      drop_file (path);
    }
}

/* ---- DTR's logs ---- */

#define DTR(text) "{\"INSTRUCTION\":" text "}\n"

/* Before START all is forgotten. w is a constant; y = f(w); v, a view of y, is no operator; z = g(v) reads
 * y's storage; y is mutated; then names go: v keeps y's storage until it goes too. */
static void
test_dtr (void)
{
  static const char text[]
      = DTR ("\"CONSTANT\",\"NAME\":\"old\"") DTR ("\"MEMORY\",\"MEMORY\":\"999\",\"NAME\":\"old\"")
        DTR ("\"ANNOTATE\",\"ANNOTATION\":\"START\"") DTR ("\"RELEASE\",\"NAME\":\"old\"")
        DTR ("\"CONSTANT\",\"NAME\":\"w\"") DTR ("\"MEMORY\",\"MEMORY\":\"4096\",\"NAME\":\"w\"")
        DTR ("\"CALL\",\"ARGS\":[\"w\"],\"NAME\":\"f\",\"RESULT\":[\"y\"],\"TIME\":\"100\"")
        DTR ("\"MEMORY\",\"MEMORY\":\"1024\",\"NAME\":\"y\"") DTR ("\"ALIAS\",\"ALIAS\":\"-1\",\"NAME\":\"y\"")
        DTR ("\"CALL\",\"ARGS\":[\"y\"],\"NAME\":\"view\",\"RESULT\":[\"v\"],\"TIME\":\"3\"")
        DTR ("\"MEMORY\",\"MEMORY\":\"0\",\"NAME\":\"v\"") DTR ("\"ALIAS\",\"ALIAS\":\"0\",\"NAME\":\"v\"")
        DTR ("\"CALL\",\"ARGS\":[\"v\",\"w\"],\"NAME\":\"g\",\"RESULT\":[\"z\"],\"TIME\":\"50\"")
        DTR ("\"MEMORY\",\"MEMORY\":\"512\",\"NAME\":\"z\"") DTR ("\"ALIAS\",\"ALIAS\":\"-1\",\"NAME\":\"z\"")
        DTR ("\"MUTATE\",\"ARGS\":[\"y\"],\"MUTATE\":[0],\"NAME\":\"h_\",\"TIME\":\"7\"")
        DTR ("\"COPY\",\"DST\":\"u\",\"SRC\":\"z\"") DTR ("\"RELEASE\",\"NAME\":\"y\"") DTR ("\"RELEASE\",\"NAME\":\"z\"")
        DTR ("\"RELEASE\",\"NAME\":\"v\"") DTR ("\"RELEASE\",\"NAME\":\"u\"");
  static const CoopDoKind kinds[] = { COOP_DO_CONST, COOP_DO_OP, COOP_DO_OP, COOP_DO_OP, COOP_DO_RELEASE, COOP_DO_RELEASE };
  static const guint32 slots[] = { 0, 0, 0, 0, 1, 2 };   /* of releases: y's storage, then z's */
  g_autoptr (CoopProgram) p = program_of (text);
  g_assert_cmpuint (p->lines->len, ==, G_N_ELEMENTS (kinds));
  for (guint i = 0; i < p->lines->len; i++)
    {
      const CoopProgramLine *line = &g_array_index (p->lines, CoopProgramLine, i);
      g_assert_cmpint (line->kind, ==, kinds[i]);
      if (line->kind == COOP_DO_RELEASE)
        g_assert_cmpuint (line->slot, ==, slots[i]);
    }
  const CoopProgramOp *g = g_array_index (p->lines, CoopProgramLine, 2).op, *h = g_array_index (p->lines, CoopProgramLine, 3).op;
  g_assert_cmpuint (g->n_inputs, ==, 2);
  g_assert_cmpuint (g->inputs[0].slot, ==, 1);
  g_assert_cmpuint (h->inputs[0].use, ==, COOP_USE_WRITE);
  g_assert_cmpuint (p->total_ns, ==, 157);
  g_assert_cmpuint (p->constant, ==, 4096);
  g_assert_cmpuint (coop_play_peak (p), ==, 4096 + 1024 + 512);
}

static void
test_dtr_refused (void)
{
  refuse (DTR ("\"JUMP\",\"NAME\":\"x\""), COOP_PROGRAM_ERROR_DAMAGED, ":1: unknown instruction JUMP");
  refuse (DTR ("\"CALL\",\"ARGS\":[\"x\"],\"NAME\":\"f\",\"RESULT\":[],\"TIME\":\"1\""), COOP_PROGRAM_ERROR_DAMAGED,
          "x is not known here");
  refuse (DTR ("\"CALL\",\"ARGS\":[],\"NAME\":\"f\",\"RESULT\":[\"y\"],\"TIME\":\"1\""), COOP_PROGRAM_ERROR_DAMAGED,
          "cut short");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/replay/program/json", test_json);
  g_test_add_func ("/replay/program/json-values", test_json_values);
  g_test_add_func ("/replay/program/refused", test_refused);
  g_test_add_func ("/replay/program/files", test_files);
  g_test_add_func ("/replay/program/nonsense", test_nonsense);
  g_test_add_func ("/replay/program/round-trip", test_round_trip);
  g_test_add_func ("/replay/program/dtr", test_dtr);
  g_test_add_func ("/replay/program/dtr-refused", test_dtr_refused);
  return g_test_run ();
}
