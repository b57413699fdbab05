/* SPDX-License-Identifier: Apache-2.0 */
/* One session's inside, and who may touch what.
 *
 * The collector thread owns the store, the reader and the model: only it changes the model, and it
 * does so under `lock`. Others may read the model (its const functions) under the same lock, so that
 * they wait for one event at most, never for the disk. The collector itself reads without it. */
#ifndef COOP_SESSION_PRIVATE_H
#define COOP_SESSION_PRIVATE_H

#include <pthread.h>

#include "preflight.h"
#include "session.h"
#include "usage.h"
#include "wire/wire.h"

#define COOP_RECENT_EVENTS 1024

typedef struct _CoopRehearsing CoopRehearsing;

typedef enum { COOP_SIGNAL_STATE, COOP_SIGNAL_OUTPUT, COOP_SIGNAL_MESSAGE } CoopSessionSignal;

/* One captured stream of the child: a memfd that the child appends to and we read behind it. A pipe
 * would break the script's print when this process dies. */
typedef struct {
  int fd;              /* -1: not captured */
  goffset read;
  GString *partial;    /* an unfinished line */
} CoopCapture;

struct _CoopSession {
  GObject parent;
  GMainContext *context;
  CoopWire *wire;
  GSubprocess *child;      /* NULL: attached or collecting */
  CoopPythonLine line;     /* of argv, which lives as long */
  char **argv;
  char *trace;             /* absolute; NULL: untraced */
  int pid;                 /* followed when there is no child; 0: whoever claims the wire */
  int stops;               /* asked to stop so often */
  gboolean terminal;       /* shared with the target, which says there what it has to say */
  gboolean attached;       /* follows a trace written by another */
  GThread *thread;

  gint quit;               /* atomic: the collector is to finish */
  gint state;              /* atomic CoopSessionState */
  gint exit;               /* atomic */
  gint frame_wanted;       /* atomic */

  pthread_mutex_t lock;        /* not GMutex: the thread sanitizer must see it */
  CoopModel *model;
  CoopUsageLog *usage;
  CoopEvent *recent[COOP_RECENT_EVENTS];   /* header and body in one piece */
  guint64 n_recent;        /* ever added */

  pthread_mutex_t frame_lock;
  CoopFrame *frame;
  CoopSessionHealth health;

  /* the collector's own */
  CoopStore *store;
  CoopReader *reader;
  guint64 generation, frame_seq, next_seq;
  guint64 dropped_told, faults;
  guint turned_away_told;
  gboolean trim_told, lost_told, hello, hello_told, end_seen;
  gint64 started, ring_empty, rate_since;
  guint64 rate_events, events;
  guint messages;
  CoopRehearsing *rehearsing;   /* NULL: not asked for */
  CoopCapture output[2];   /* stdout, stderr */
};

/* From any thread: the signal is emitted on the session's context. text may be NULL. */
void coop_session_post (CoopSession *self, CoopSessionSignal signal, const char *text, gboolean flag);
void coop_session_say (CoopSession *self, const char *format, ...) G_GNUC_PRINTF (2, 3);
void coop_session_put_state (CoopSession *self, CoopSessionState state, int code);

/* launch.c */
gboolean coop_session_launch (CoopSession *self, const CoopRunOptions *options, GError **error);
/* output.c */
gboolean coop_session_capture (CoopSession *self, GSubprocessLauncher *launcher, GError **error);
void coop_session_read_output (CoopSession *self, gboolean last);
void coop_session_close_output (CoopSession *self);
/* record.c: what both ways of following do with an event and between events */
void coop_session_apply (CoopSession *self, const CoopEvent *ev, const void *body);
void coop_session_remember (CoopSession *self, const CoopEvent *ev, const void *body);   /* under lock */
void coop_session_publish (CoopSession *self, gboolean always);
void coop_session_measure (CoopSession *self, gboolean empty);
/* rehearsal.c: the collector's, but for a thread of its own */
CoopRehearsing *coop_rehearsing_new (double share);
void coop_rehearsing_free (CoopRehearsing *rehearsing);   /* waits for its thread: some ms */
void coop_rehearsing_apply (CoopSession *self, CoopRehearsing *rehearsing, const CoopEvent *ev);
/* collector.c, attach.c: thread functions */
gpointer coop_session_collector (gpointer session);
gpointer coop_session_follower (gpointer session);

/* A wire of process pid or of who started it; -1 with error. */
int coop_find_wire (int pid, GError **error);
gboolean coop_process_alive (int pid);
/* Of a process that runs; "unknown" where the system does not tell. In a fresh string. */
char *coop_process_command (int pid);
char *coop_process_cwd (int pid);
/* A command line as one would type it. */
char *coop_command_text (char *const *argv);

#endif
