/* SPDX-License-Identifier: Apache-2.0 */
/* Captured output of the child: memfds that it appends to, read behind its back and handed on line
 * by line (or up to a carriage return, for progress bars). */
#include "session-private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK 65536
#define PARTIAL_MAX 4096

/* A descriptor of the same file that appends, for the child. */
static int
open_append (int fd)
{
  g_autofree char *path = g_strdup_printf ("/proc/self/fd/%d", fd);
  return open (path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

gboolean
coop_session_capture (CoopSession *self, GSubprocessLauncher *launcher, GError **error)
{
  int child[2] = { -1, -1 };
  for (int i = 0; i < 2; i++)
    {
      self->output[i].fd = memfd_create (i == 0 ? "coop-stdout" : "coop-stderr", MFD_CLOEXEC);
      self->output[i].partial = g_string_new (NULL);
      if (self->output[i].fd >= 0)
        child[i] = open_append (self->output[i].fd);
    }
  if (child[0] < 0 || child[1] < 0)
    {
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_SYSTEM,
                   "cannot capture the output: %s", g_strerror (errno));
      for (int i = 0; i < 2; i++)
        if (child[i] >= 0)
          close (child[i]);
      return FALSE;
    }
  g_subprocess_launcher_take_stdout_fd (launcher, child[0]);
  g_subprocess_launcher_take_stderr_fd (launcher, child[1]);
  return TRUE;
}

static void
post_text (CoopSession *self, const char *text, gsize n, gboolean is_stderr)
{
  g_autofree char *valid = g_utf8_make_valid (text, (gssize) n);
  coop_session_post (self, COOP_SIGNAL_OUTPUT, valid, is_stderr);
}

/* Hands on whole lines; what is left waits, unless it is the last or too long. */
static void
hand_on (CoopSession *self, CoopCapture *capture, gboolean is_stderr, gboolean last)
{
  GString *text = capture->partial;
  gsize end = text->len;
  while (end > 0 && text->str[end - 1] != '\n' && text->str[end - 1] != '\r')
    end--;
  if (last || text->len - end > PARTIAL_MAX)
    end = text->len;
  if (end == 0)
    return;
  post_text (self, text->str, end, is_stderr);
  g_string_erase (text, 0, (gssize) end);
}

void
coop_session_read_output (CoopSession *self, gboolean last)
{
  g_autofree char *chunk = NULL;
  for (int i = 0; i < 2; i++)
    {
      CoopCapture *capture = &self->output[i];
      ssize_t n = 0;
      if (capture->fd < 0)
        continue;
      if (chunk == NULL)
        chunk = g_malloc (CHUNK);
      while ((n = pread (capture->fd, chunk, CHUNK, capture->read)) > 0)
        {
          g_string_append_len (capture->partial, chunk, n);
          capture->read += n;
          hand_on (self, capture, i == 1, FALSE);
          /* What was read need not stay in memory. */
          fallocate (capture->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                     capture->read & ~(goffset) (CHUNK - 1));
        }
      if (last)
        hand_on (self, capture, i == 1, TRUE);
    }
}

void
coop_session_close_output (CoopSession *self)
{
  for (int i = 0; i < 2; i++)
    {
      if (self->output[i].fd >= 0)
        close (self->output[i].fd);
      if (self->output[i].partial != NULL)
        g_string_free (self->output[i].partial, TRUE);
    }
}
