# SPDX-License-Identifier: Apache-2.0
"""Runs real PyTorch programs twice, plain and under Coopscope, and compares their bits.

A case is a function of a Context. It runs in a forked child for each *profile*: `plain` without
Coopscope; `none` with it but never evicting; `stress`, where all that is not pinned is evicted after
every operator; `budget`, a part of the peak that `none` measured. What it gives to Context.out is
compared bit by bit with the plain run, and so is the state of the random generator at the end.

torch is imported once, by the parent, which never runs an operator: so a child costs milliseconds,
and a child that crashes takes nothing with it.
"""
import collections
import hashlib
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback

CASES = []
PROFILES = ("plain", "none", "stress", "budget")
ALL_PROFILES = ("plain", "none", "stress", "moving", "budget")
MOVING = 7   # operators from one clearing and moving of the pool to the next
TIMEOUT = 240.0


class Case:
    def __init__(self, function, rule, budget, stress, evicts, timeout, profiles, needs, params, ranks=1, before=None):
        self.name = function.__name__
        self.doc = (function.__doc__ or "").strip().split("\n")[0]
        self.function, self.rule, self.budget, self.stress = function, rule, budget, stress
        self.evicts, self.timeout, self.profiles, self.needs = evicts, timeout, profiles, needs
        self.params, self.ranks, self.before = params, ranks, before


def case(rule, budget=0.6, stress=1, evicts=True, timeout=TIMEOUT, profiles=PROFILES, needs=None, ranks=1,
         before=None, **params):
    """rule: number of the rule it tests, 0 for none. ranks: processes that run it at once, see Context. budget: part of the
    peak; None leaves that profile out, as stress=None does. evicts: whether evictions and replays must have happened.
    needs: function of torch that says whether this PyTorch has what the case uses. before: called in the child before
    the adapter is there."""
    chosen = tuple(p for p in profiles if not (p == "budget" and budget is None)
                   and not (p == "stress" and stress is None))

    def add(function):
        CASES.append(Case(function, rule, budget, stress, evicts, timeout, chosen, needs, params, ranks, before))
        return function
    return add


class Context:
    """What a case sees of the harness."""

    def __init__(self, torch, profile, budget):
        self.torch, self.profile, self.budget = torch, profile, budget
        self.managed = profile != "plain"
        self.evicting = profile not in ("plain", "none")
        self.values, self.late, self.notes = {}, [], {}

    def out(self, name, value):
        """To be compared. A tensor is read when the case has ended, so it may be evicted until then."""
        assert name not in self.values, name
        if isinstance(value, self.torch.Tensor):
            self.values[name] = None
            self.late.append((name, value.detach()))
        else:
            self.values[name] = repr(value)

    def now(self, name, tensor):
        """As out, but read at once."""
        assert name not in self.values, name
        self.values[name] = digest(self.torch, tensor)

    def grads(self, name, module):
        for key, p in module.named_parameters():
            if p.grad is not None:
                self.out("%s.%s.grad" % (name, key), p.grad)

    def model(self, name, module):
        for key, value in list(module.named_parameters()) + list(module.named_buffers()):
            self.out("%s.%s" % (name, key), value)
        self.grads(name, module)

    def optimizer(self, name, optimizer):
        for number, state in enumerate(optimizer.state.values()):
            for key, value in sorted(state.items()):
                if isinstance(value, self.torch.Tensor):
                    self.out("%s.%d.%s" % (name, number, key), value)

    def note(self, name, value):
        """A number for this profile's own check, not compared."""
        self.notes[name] = value

    def stats(self):
        return stats() if self.managed else collections.defaultdict(int)

    def set(self, **params):
        """Turns parameters while the program runs; does nothing in a plain run, or where nothing is
        to be evicted."""
        if self.evicting:
            self.stress = params.get("stress", self.stress)
            set_policy(params)

    def check(self, condition, text):
        """Only where tensors may be evicted."""
        if self.evicting and not condition:
            raise AssertionError(text)

    def evict_all(self):
        """Every tensor that may go is gone afterwards. Returns how many went."""
        before = self.stats().get("evictions", 0)
        if self.evicting:
            set_policy({"stress": 1})
        self.torch.zeros(1).add_(1)
        if self.evicting:
            set_policy({"stress": self.stress})
        return self.stats().get("evictions", 0) - before

    stress = 0
    rank = 0         # of Case.ranks
    meeting = None   # a file's name that all ranks have


def digest(torch, tensor):
    """Of a copy: the pointer of the tensor itself must not escape by being looked at."""
    t = tensor.detach()
    if t.layout != torch.strided:
        t = t.to_dense()
    t = t.resolve_conj().resolve_neg().contiguous()
    head = "%s%s" % (str(t.dtype).replace("torch.", ""), list(t.shape))
    t = t.clone()
    if t.dtype == torch.bfloat16:
        t = t.view(torch.int16)
    return head + " " + hashlib.sha256(t.numpy().tobytes()).hexdigest()[:24]


# ---- the adapter, in one place ---------------------------------------------------------------

def install(torch, params, trace=None):
    if trace is not None:
        import coopscope
        coopscope.start(trace=trace, **params)
        return
    from coopscope import _adapter
    _adapter.install(torch, None, {k: as_text(v) for k, v in params.items()})


def as_text(value):
    return str(int(value)) if isinstance(value, bool) else str(value)


def set_policy(params):
    from coopscope import _coopscope
    _coopscope.policy_set({k: as_text(v) for k, v in params.items()})


def stats():
    from coopscope import _coopscope
    return _coopscope.stats()


def engine_fault():
    """None, or the invariant of the engine that does not hold."""
    from coopscope import _coopscope
    return _coopscope.check()


# ---- children --------------------------------------------------------------------------------

def params_of(c, profile, budget):
    params = {"cost": "model"}
    if profile == "none":
        params["evictor"] = "none"
    elif profile == "stress":
        params.update(stress=c.stress, compact=False)
    elif profile == "moving":
        params.update(stress=MOVING, compact=True)
    elif profile == "budget":
        params["budget"] = budget
    if profile != "none":
        params.update(c.params)
    return params


def count_mark(count):
    """libcount-alloc, where it is loaded, notes what it has counted up to here."""
    if count:
        os.environ["COUNT_ALLOC_FILE"] = count
        os.write(1, b"step counted")


def fork_ranks(context, ranks):
    """One more process a rank, before anything was done. Returns what the others are, for join_ranks."""
    if ranks == 1:
        return []
    folder = tempfile.mkdtemp(prefix="coop-ranks-")
    context.meeting = os.path.join(folder, "meeting")
    others = []
    for rank in range(1, ranks):
        file = os.path.join(folder, str(rank))
        pid = os.fork()
        if pid == 0:
            context.rank, context.report_to = rank, file
            return []
        others.append((rank, pid, file))
    return others


def join_ranks(others, result):
    """Values of the other ranks beside this one's, under the rank's name."""
    for rank, pid, file in others:
        status = os.waitpid(pid, 0)[1]
        try:
            with open(file) as text:
                found = json.load(text)
        except (OSError, ValueError):
            found = {"error": "rank %d died, wait status %d" % (rank, status), "values": {}}
        for name, value in found["values"].items():
            result["values"]["rank %d: %s" % (rank, name)] = value
        for key in ("error", "wrong"):
            if found.get(key):
                result[key] = "rank %d: %s" % (rank, found[key])


def child(torch, c, profile, budget, trace=None, count=None):
    """The body of a forked child: runs the case and returns what the parent wants to know."""
    result = {}
    context = Context(torch, profile, budget)
    others = fork_ranks(context, c.ranks)
    try:
        torch.manual_seed(20230)
        torch.set_num_threads(1)   # 1.13 makes its pool anew after a fork, and not thread-safely
        if context.managed:
            if c.before:
                c.before()
            params = params_of(c, profile, budget)
            context.stress = params.get("stress", 0)
            install(torch, params, trace)
        count_mark(count)
        c.function(context)
        count_mark(count)
        for name, tensor in context.late:
            context.values[name] = digest(torch, tensor)
        context.values["random state"] = digest(torch, torch.get_rng_state())
        if context.managed:
            result["stats"] = context.stats()
            result["wrong"] = engine_fault()
        if trace is not None:
            import coopscope
            coopscope.stop()
    except BaseException:
        result["error"] = traceback.format_exc()
    result["values"], result["notes"] = context.values, context.notes
    if context.rank:
        with open(context.report_to, "w") as out:
            json.dump(result, out)
        os._exit(0)
    join_ranks(others, result)
    return result


def run_child(torch, c, profile, budget, trace=None, count=None):
    """Forks, runs, waits. The result has "error" when anything went wrong."""
    read, write = os.pipe()
    with tempfile.TemporaryFile() as errors:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            os.close(read)
            os.dup2(errors.fileno(), 2)
            os.dup2(errors.fileno(), 1)
            status = 1
            try:
                data = json.dumps(child(torch, c, profile, budget, trace, count)).encode()
                while data:
                    data = data[os.write(write, data):]
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        data, deadline, result = b"", time.monotonic() + c.timeout, {}
        while True:
            ready = select.select([read], [], [], max(0, deadline - time.monotonic()))[0]
            chunk = os.read(read, 1 << 16) if ready else None
            if chunk is None:
                result = {"error": "no end after %g s" % c.timeout}
                try:
                    os.killpg(pid, signal.SIGKILL)
                except ProcessLookupError:
                    os.kill(pid, signal.SIGKILL)
            if not chunk:
                break
            data += chunk
        os.close(read)
        _, status = os.waitpid(pid, 0)
        if not result:
            try:
                result = json.loads(data)
            except ValueError:
                result = {"error": "the process died, wait status %d" % status}
        errors.seek(0)
        result["stderr"] = errors.read().decode(errors="replace")
    return result


# ---- comparing -------------------------------------------------------------------------------

def faults_of(c, profile, result, plain, budget):
    if "error" in result:
        return [result["error"]]
    faults = []
    for name in sorted(set(plain["values"]) | set(result["values"])):
        want, got = plain["values"].get(name), result["values"].get(name)
        if want != got:
            faults.append("%s: plain %s, here %s" % (name, want, got))
    if result.get("wrong"):
        faults.append("engine: " + result["wrong"])
    totals = result.get("stats", {})
    if profile == "none" and totals.get("evictions", 0):
        faults.append("evictor none evicted %d times" % totals["evictions"])
    if profile in ("stress", "moving", "budget") and c.evicts:
        for name in ("evictions", "replays"):
            if totals.get(name, 0) <= 0:
                faults.append("no %s, so nothing was tested" % name)
    if profile == "budget" and totals.get("peak", 0) > budget and not result["notes"].get("budget turned"):
        faults.append("peak %d is over the budget %d" % (totals["peak"], budget))
    return faults


def run_case(torch, c):
    """Yields (profile, faults, result)."""
    plain = run_child(torch, c, "plain", 0)
    if "error" in plain:
        yield "plain", [plain["error"]], plain
        return
    again = run_child(torch, c, "plain", 0)
    yield "plain", faults_of(c, "plain", again, plain, 0), again
    peak = None
    for profile in c.profiles[1:]:
        budget = 0
        if profile == "budget":
            if peak is None:
                yield profile, ["no peak was measured"], {}
                continue
            budget = (int(peak * c.budget) + 511) // 512 * 512 if c.budget <= 1 else int(c.budget)
        result = run_child(torch, c, profile, budget)
        if profile == "none" and "stats" in result:
            peak = result["stats"]["peak"]
        yield profile, faults_of(c, profile, result, plain, budget), result
