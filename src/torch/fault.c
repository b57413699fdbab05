/* SPDX-License-Identifier: Apache-2.0 */
/* Fault: the address of an evicted tensor was touched by somebody we did not see: a forked child, a
 * C++ thread, an extension. The address names the tensor; the fault then takes its usual course. */
#include "torch/host.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct sigaction before;

static void
say (const char *text)
{
  if (write (STDERR_FILENO, text, strlen (text)) < 0)
    return;
}

static void
say_number (uint64_t n)
{
  char digits[24], *p = digits + sizeof digits - 1;

  *p = 0;
  do
    *--p = (char) ('0' + n % 10);
  while ((n /= 10) > 0);
  say (p);
}

static void
explain (const CoopHost *host)
{
  say ("coopscope: an evicted tensor was read or written where nobody could see it: tensor ");
  say_number (host->tensor ? host->tensor->id : 0);
  say (", made by ");
  say (host->op ? host->op->name : "an unknown operator");
  say (", first called at ");
  say (host->where ? host->where : "an unknown line");
  if (atomic_load (&coop.run) == COOP_RUN_CHILD)
    say ("; this is a forked child: use the tensor before the fork, or coopscope.keep(tensor)\n");
  else
    say ("; coopscope.keep(tensor) keeps it in place for code that holds its pointer\n");
}

static void
on_fault (int signum, siginfo_t *info, void *context)
{
  void *base;
  const CoopHost *host = coop.shadow ? coop_shadow_owner (coop.shadow, info->si_addr, &base) : NULL;

  if (host != NULL)
    explain (host);
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction (signum, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler (signum);
  else
    sigaction (signum, &before, NULL); /* it happens again, and ends the process as ever */
}

void
coop_fault_install (void)
{
  struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
  static bool installed;

  if (installed)
    return;
  installed = true;
  sigemptyset (&action.sa_mask);
  sigaction (SIGSEGV, &action, &before);
}
