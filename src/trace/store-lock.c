/* SPDX-License-Identifier: Apache-2.0 */
/* Store: who writes a trace, and whether a file is one. */
#include "trace/reader-private.h"
#include "trace/store-private.h"
#include "trace/sweep-store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES 100
#define BALLAST_BYTES 262144 /* kept in the lock file, given up to say on a full disk that it is full */

static char *
lock_path (const char *path)
{
  return g_strconcat (path, "-lock", NULL);
}

/* The file that was locked may have been removed by its last owner in between. */
static gboolean
still_there (int fd, const char *path)
{
  struct stat mine, theirs;
  return fstat (fd, &mine) == 0 && stat (path, &theirs) == 0 && mine.st_ino == theirs.st_ino
         && mine.st_dev == theirs.st_dev;
}

int
coop_store_lock (const char *path, GError **error)
{
  g_autofree char *name = lock_path (path);
  /* Some rounds, since a reader that asks whether we live holds it for an instant. */
  for (guint round = 0; round < 20; round++)
    {
      int fd = open (name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
      if (fd < 0)
        {
          g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: %s", path, g_strerror (errno));
          return -1;
        }
      if (flock (fd, LOCK_EX | LOCK_NB) == 0 && still_there (fd, name))
        {
          if (posix_fallocate (fd, 0, BALLAST_BYTES) != 0)
            g_debug ("%s: no room kept", path);
          return fd;
        }
      close (fd);
      g_usleep (5000);
    }
  g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_BUSY, "%s: another run writes it", path);
  return -1;
}

void
coop_store_unlock (const char *path, int fd)
{
  g_autofree char *name = lock_path (path);
  if (fd < 0)
    return;
  unlink (name); /* while it is ours */
  close (fd);
}

gboolean
coop_store_locked (const char *path)
{
  g_autofree char *name = lock_path (path);
  int fd = open (name, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return FALSE;
  gboolean locked = flock (fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close (fd);
  return locked;
}

static guint32
big_endian (const guint8 *at)
{
  return (guint32) at[0] << 24 | (guint32) at[1] << 16 | (guint32) at[2] << 8 | at[3];
}

/* Reads the header by SQLite's own hands: closing a descriptor of ours would drop the locks of a store
 * that this very process writes. Returns the bytes read, -1 with errno. */
static gint64
read_header (const char *path, guint8 header[HEADER_BYTES])
{
  sqlite3 *db = NULL;
  sqlite3_file *file = NULL;
  sqlite3_int64 size = 0;
  gint64 n = -1;
  if (access (path, R_OK) != 0)
    return -1;
  errno = EIO;
  if (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK
      && sqlite3_file_control (db, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK
      && file != NULL && file->pMethods != NULL && file->pMethods->xFileSize (file, &size) == SQLITE_OK)
    {
      n = MIN (size, HEADER_BYTES);
      if (n > 0 && file->pMethods->xRead (file, header, (int) n, 0) != SQLITE_OK)
        n = -1;
    }
  sqlite3_close (db);
  return n;
}

gboolean
coop_trace_identify (const char *path, GError **error)
{
  guint8 header[HEADER_BYTES];
  struct stat st;
  gboolean found = stat (path, &st) == 0, regular = found && S_ISREG (st.st_mode);
  gint64 n = regular ? read_header (path, header) : 0;
  if (!found || n < 0)
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_IO, "%s: %s", path, g_strerror (errno));
      return FALSE;
    }
  if (n == HEADER_BYTES && big_endian (header + 68) == COOP_SWEEP_APPLICATION_ID)
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_FOREIGN,
                   "%s: not a trace but a sweep; `coop report %s -o DIR` shows it", path, path);
      return FALSE;
    }
  if (n < HEADER_BYTES || memcmp (header, "SQLite format 3", 16) != 0
      || big_endian (header + 68) != COOP_APPLICATION_ID)
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_FOREIGN, "%s: not a trace (%s)", path,
                   !regular ? "not a regular file" : n == 0 ? "it is empty"
                   : n < HEADER_BYTES ? "too short" : "no application id of Coopscope's");
      return FALSE;
    }
  guint32 version = big_endian (header + 60);
  if (version > COOP_SCHEMA_VERSION)
    {
      g_set_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_NEWER,
                   "%s: its schema is version %u, this Coopscope knows up to version %d; a newer one reads it",
                   path, version, COOP_SCHEMA_VERSION);
      return FALSE;
    }
  return TRUE;
}
