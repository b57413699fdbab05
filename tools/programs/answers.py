#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""data/answers.md and its figures, out of sweeps of the programs in data/programs.

    answers.py COOP [FOLDER] [--only-write]

COOP is the program. The sweeps go into FOLDER (build/answers) and go on where they were; on two cores they take a
few minutes. Every number of the page is computed here, and its sentences say only what the numbers they hold say.
"""
import argparse
import json
import math
import os
import sqlite3
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PROGRAMS = os.path.join(ROOT, "data", "programs")
NAMES = ("gpt3", "bert_large", "swin_t", "resnet50", "unet", "inception_v3", "bilstm", "spos", "gpt2", "resnet152",
         "densenet121")
FAILED = 3.0
# What the papers have not: compaction before memory is refused, moves, gradients priced by the backward pass.
OFF = "compact=false copy_rate=0 descent=false"
KEEPING = ["coop", "coop-class", "dtr-eq"]   # tried where chunks never go back
PAGES = (4096, 65536, 2097152, 20971520)
BANDS = ((98, 80), (78, 60), (58, 40), (38, 20))
GRID = tuple(range(100, 19, -2))
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#777777", "#b2a800")
# For pages on a GPU a figure of others, second-hand; run `coop probe --device cuda` for your own.
CUDA_US, CUDA_SOURCE = 40, "about 40 us to map a page and set its access, as vAttention (arXiv 2405.04437) is quoted"


def settings(*extra):
    return " ".join(sorted([*OFF.split(), *extra]))


def sweeps(plus):
    """(evictors, allocators, settings) that are needed."""
    four = ["coop", "dtr-eq", "dte", "lru"]
    yield four, ["merge"], OFF.split()
    yield ["coop"], ["merge"], [*OFF.split(), "size_exponent=1"]
    yield four + plus, ["merge"], []
    yield four, ["page"], [*OFF.split(), "page=2097152", "page_cost=1"]
    yield ["coop", "coop-class", "dtr-eq", "dte"], ["class", "caching"], OFF.split()
    yield KEEPING, ["class"], [*OFF.split(), "give_back=false"]
    for page in PAGES:
        if page != 2097152:
            yield ["coop", "dtr-eq", "dte"], ["page"], [*OFF.split(), f"page={page}", "page_cost=1"]


def time_searches(coop, database):
    """A sweep of its own, as it is timed: few ratios, one at a time."""
    files = [os.path.join(PROGRAMS, name + ".jsonl.gz") for name in NAMES]
    for allocators in (["--allocators", "merge"], ["--allocators", "page", "--set", "page=2097152"]):
        command = [coop, "sweep", *files, "-o", database, "--evictors", "coop,dtr-eq,dte,lru", "--ratios", "0.9,0.7,0.5",
                   "--measure", "-j", "1", *allocators]
        for setting in OFF.split():
            command += ["--set", setting]
        if subprocess.run(command).returncode != 0:
            sys.exit("a sweep failed")


def search_table(database):
    """Median over programs and ratios of us a search, and us of searching a ms of the step's own operators."""
    db = sqlite3.connect(database)
    found = {}
    for evictor, allocator, searches, ns, plain in db.execute(
            "SELECT evictor, allocator, searches, search_ns, plain_ns FROM run WHERE result = 'ok' AND searches > 0"):
        found.setdefault((evictor, allocator), []).append((ns / 1e3 / searches, ns / 1e3 / (plain / 1e6)))
    db.close()
    middle = lambda values: sorted(values)[len(values) // 2]
    ours, theirs = (middle([v[1] for v in found[e, "merge"]]) for e in ("coop", "dtr-eq"))
    words = (f"\nOn the merging pool `coop` searches {ours:.1f} us a ms and `dtr-eq` {theirs:.1f}: its search is "
             + ("the cheaper one.\n" if ours < theirs else "not cheaper in this engine.\n"))
    return table(["policy", "us a search", "us a ms of operators"],
                 [[f"{e} on {a}", f"{middle([v[0] for v in values]):.1f}", f"{middle([v[1] for v in values]):.1f}"]
                  for (e, a), values in sorted(found.items(), key=lambda i: (i[0][1], i[0][0]))]) + words


def sweep(coop, database, plus):
    files = [os.path.join(PROGRAMS, name + ".jsonl.gz") for name in NAMES]
    for evictors, allocators, sets in sweeps(plus):
        command = [coop, "sweep", *files, "-o", database, "--evictors", ",".join(evictors),
                   "--allocators", ",".join(allocators)]
        for setting in sets:
            command += ["--set", setting]
        if subprocess.run(command).returncode != 0:
            sys.exit("a sweep failed")


# ---- reading ----


class Run:
    def __init__(self, row):
        self.ok = row["result"] == "ok"
        self.overhead = row["overhead"] if self.ok else None
        self.result, self.searches, self.fragmentation = row["result"], row["searches"], row["fragmentation"]
        self.plain, self.cost = row["plain_ns"], row["cost_ns"]

    def free(self):
        """Overhead without the time of the device: what page tables would give for nothing."""
        return self.cost / self.plain if self.ok else None

    def pages(self):
        """Pages moved, where each was counted with 1 us."""
        return (self.overhead * self.plain - self.cost) / 1000 if self.ok else math.nan


def load(database):
    db = sqlite3.connect(database)
    db.row_factory = sqlite3.Row
    runs = {}
    for row in db.execute("SELECT * FROM run"):
        key = row["evictor"], row["allocator"], row["settings"]
        runs.setdefault(key, {})[row["program"], round(row["ratio_ppm"] / 1e4)] = Run(row)
    db.close()
    return runs


def mean(runs, band, value=lambda run: run.overhead):
    """Geometric mean over programs and ratios of the band; what fails counts as FAILED. And the share that ends."""
    total, n, ended = 0.0, 0, 0
    for (_, ratio), run in runs.items():
        if band[1] <= ratio <= band[0]:
            overhead = value(run)
            total += math.log(FAILED if overhead is None else min(overhead, FAILED))
            n, ended = n + 1, ended + (overhead is not None)
    return (math.exp(total / n), ended / n) if n else (math.nan, 0)


def minimum(runs, name):
    ended = [ratio for (program, ratio), run in runs.items() if program == name and run.ok]
    return min(ended) / 100 if ended else math.nan


def mean_minimum(runs):
    return sum(minimum(runs, name) for name in NAMES) / len(NAMES)


# ---- writing ----


def table(header, rows):
    out = ["| " + " | ".join(header) + " |", "|---" + "|--:" * (len(header) - 1) + "|"]
    return "\n".join(out + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def cell(runs, band, value=lambda run: run.overhead):
    overhead, share = mean(runs, band, value)
    return f"{overhead:.3f}" + (f" ({100 * share:.0f})" if share < 1 else "")


def bands_table(rows):
    """rows: (name, runs, value)"""
    header = ["policy", *(f".{low}-.{high}" for high, low in BANDS), "mean minimum"]
    return table(header, [[name, *(cell(runs, band, value) for band in BANDS), f"{mean_minimum(runs):.3f}".replace("nan", "none")]
                          for name, runs, value in rows])


def figure(path, title, rows):
    """Mean overhead over the ratio, one line a row."""
    width, height, left, top, right = 800, 360, 60, 34, 210
    x = lambda r: left + (width - left - right) * (100 - r) / 80
    y = lambda o: top + (height - top - 40) * (3 - o) / 2
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
           f'font-size="12"><rect width="{width}" height="{height}" fill="#fff"/>'
           f'<text x="{left}" y="20" font-size="14">{title}</text>']
    for o in (1, 1.5, 2, 2.5, 3):
        out.append(f'<path d="M{left} {y(o):.1f}H{width - right}" stroke="#ddd"/><text x="{left - 8}" y="{y(o) + 4:.1f}" '
                   f'text-anchor="end">{o:g}</text>')
    for r in range(100, 19, -10):
        out.append(f'<text x="{x(r):.1f}" y="{height - 22}" text-anchor="middle">{r / 100:g}</text>')
    out.append(f'<text x="{left}" y="{height - 5}">budget / peak; overhead, mean over programs, a failure counts as 3</text>')
    for i, (name, runs, value) in enumerate(rows):
        points = [f"{x(r):.1f} {y(mean(runs, (r, r), value)[0]):.1f}" for r in GRID if r < 100]
        dash = ("", ' stroke-dasharray="6 3"', ' stroke-dasharray="2 2"')[i % 3]
        out.append(f'<path d="M{"L".join(points)}" fill="none" stroke="{COLOURS[i % 8]}" stroke-width="2"{dash}/>')
        out.append(f'<path d="M{width - right + 12} {top + 20 * i + 10}h24" stroke="{COLOURS[i % 8]}" stroke-width="2"{dash}/>'
                   f'<text x="{width - right + 42}" y="{top + 20 * i + 14}">{name}</text>')
    with open(path, "w") as file:
        file.write("\n".join(out) + "\n</svg>\n")


def per_program(runs, policies):
    """One row a program and policy."""
    ratios = (90, 80, 70, 60, 50, 40, 30, 20)
    rows = []
    for name in NAMES:
        for label, key in policies:
            cells = [runs[key].get((name, r)) for r in ratios]
            rows.append([name, label, f"{minimum(runs[key], name):.2f}".replace("nan", "none"),
                         *("-" if c is None or not c.ok else f"{c.overhead:.3f}" for c in cells)])
    return table(["program", "policy", "minimum", *(f".{r}" for r in ratios)], rows)


def losses(runs, ours, theirs):
    """Where another is better than coop by more than 1 %: per program, (cells, lost, who)."""
    rows = []
    for name in NAMES:
        lost, cells, by = 0, 0, {}
        for ratio in GRID[1:]:
            mine = runs[ours].get((name, ratio))
            best = min(((runs[k][name, ratio].overhead or FAILED, k[0]) for k in theirs), default=None)
            if mine is None or best is None or (not mine.ok and best[0] == FAILED):
                continue
            cells += 1
            if (mine.overhead or FAILED) > 1.01 * best[0]:
                lost += 1
                by[best[1]] = by.get(best[1], 0) + 1
        rows.append((name, cells, lost, ", ".join(f"{k} {n}" for k, n in sorted(by.items(), key=lambda i: -i[1]))))
    return rows


def reasons(runs):
    """Of the runs that fail: how many for want of one run of memory, how many for bytes, how many for time."""
    count = {}
    for run in runs.values():
        if not run.ok:
            count[run.result] = count.get(run.result, 0) + 1
    words = {"no-room": "enough bytes, but in pieces", "no-bytes": "too few bytes", "too-slow": "over three times the time",
             "constants": "state alone does not fit"}
    return "; ".join(f"{n} {words.get(k, k)}" for k, n in sorted(count.items(), key=lambda i: -i[1])) or "none"


def probe(coop):
    """Us to map one page on this machine, by size."""
    out = subprocess.run([coop, "probe", "--variant", "map", "--json"], capture_output=True, text=True).stdout
    return {step["page"]: step["us"] for step in map(json.loads, out.splitlines())}


def verdicts(coop):
    out = subprocess.run([coop, "probe", "--json"], capture_output=True, text=True).stdout
    rows = {}
    for step in map(json.loads, out.splitlines()):
        rows.setdefault(step["variant"], {})[step["step"]] = step
    rows.pop("map", None)
    return [[name, "yes" if v["verdict"]["p4"] else "no", f"{v['free p3'].get('free', 0) >> 20} MiB" if "free" in v.get("free p3", {}) else "",
             f"{v['free p3'].get('largest', 0) >> 20} MiB" if "largest" in v.get("free p3", {}) else "",
             f"{v['verdict']['bytes_copied'] >> 20} MiB", f"{v['p4']['ms']:.2f} ms"] for name, v in rows.items() if "p4" in v]


def size(page):
    return f"{page >> 20} MiB" if page >= 1 << 20 else f"{page >> 10} KiB"


def break_even(paged, merged, band):
    """us a page at which dtr-eq on page tables costs as much as `merged` does; None: it never does."""
    pages = gain = 0.0
    for key, run in paged.items():
        other = merged.get(key)
        if band[1] <= key[1] <= band[0] and run.ok and other is not None and other.ok:
            pages += run.pages() / run.plain
            gain += other.overhead - run.free()
    return gain * 1e-3 / pages if pages > 0 else math.inf


def better(a, b, tolerance=0.005):
    return "better than" if a < b - tolerance else "worse than" if a > b + tolerance else "as good as"


def compose(runs, coop, plus, searches):
    key = lambda evictor, allocator="merge", *extra: (evictor, allocator, settings(*extra))
    off = lambda evictor, allocator="merge", *extra: runs[key(evictor, allocator, *extra)]
    now = lambda evictor: runs[evictor, "merge", ""]
    page = lambda evictor, bytes_: off(evictor, "page", f"page={bytes_}", "page_cost=1")
    bound = page("dtr-eq", 4096)
    value, free = (lambda run: run.overhead), (lambda run: run.free())
    four = ("coop", "dtr-eq", "dte", "lru")
    figures = os.path.join(ROOT, "data", "answers")
    os.makedirs(figures, exist_ok=True)
    main_rows = [(name, off(name), value) for name in four]
    main_rows += [("coop, by the byte", off("coop", "merge", "size_exponent=1"), value)]
    main_rows += [(f"{name}, as it is here", now(name), value) for name in ("coop", *plus)]
    main_rows += [("bytes alone", bound, free)]
    figure(os.path.join(figures, "merge.svg"), "On a pool that merges", main_rows)
    kinds = [("merge", "merge", ()), ("class, gives back", "class", ()), ("class, keeps", "class", ("give_back=false",)),
             ("caching", "caching", ())]
    alloc_rows = [(f"{e} on {label}", off(e, a, *x), value) for label, a, x in kinds
                  for e in (four if a == "merge" else KEEPING if x else ("coop", "coop-class", "dtr-eq", "dte"))]
    figure(os.path.join(figures, "allocators.svg"), "Allocators that do not merge",
           [r for r in alloc_rows if r[0].split(" on ")[0] in ("coop", "dtr-eq")])
    page_rows = [("coop on merge", off("coop"), value)] + [(f"dtr-eq, {size(p)}, free", page("dtr-eq", p), free) for p in PAGES]
    at = lambda us: (lambda run: None if not run.ok else (run.cost + 1000 * us * run.pages()) / run.plain)
    page_rows += [(f"dtr-eq, 2 MiB, {us} us", page("dtr-eq", 2097152), at(us)) for us in (10, CUDA_US)]
    figure(os.path.join(figures, "pages.svg"), "Page tables", page_rows)

    times = probe(coop)
    mid = BANDS[2]
    c, d = mean(off("coop"), mid)[0], mean(off("dtr-eq"), mid)[0]
    text = [f"""<!-- Written by tools/programs/answers.py; change that. -->
# What the paper leaves open

{len(NAMES)} training steps recorded at full scale (`data/programs`), replayed at budgets of 100 to 20 % of their peak in steps
of 2 %, by the same engine that runs PyTorch. **No number here was measured on a GPU**: costs of operators are a roofline
(A100: 19.5 TFLOP/s, 2 TB/s, 5 us a launch), copies and pages are priced, searching is not counted. One step each,
so nothing is said of what many steps do to a pool. Kernel workspaces are unknown to the programs.

A cell is the geometric mean of (time / time without limit) over programs and ratios; a run that fails or takes more than
{FAILED:g} times as long counts as {FAILED:g}; in brackets the share of runs that finished, in per cent, if not all. *Mean minimum*: the smallest
ratio at which a program finished, mean over programs ("none" if one never did); whether one finishes is not monotonic in the ratio.

The published methods are run as published: nothing is moved, nothing compacted (`--set {' --set '.join(OFF.split())}`).

## The comparison

![overhead over ratio](answers/merge.svg)

{bands_table(main_rows)}
*Bytes alone* is `dtr-eq` where any free 4 KiB make any block at no cost: no policy that drops tensors can lose less to
fragmentation. *As it is here* adds what Coopscope has beyond the paper: moves instead of failures, and where they are cheaper than
recomputation.
"""]
    fails = "\n".join(f"- `{e}`: {reasons(off(e))}" for e in four)
    text.append(f"Why runs fail, of {len(off('coop'))} each:\n\n{fails}\n")
    text.append("Where another of the four is better than `coop` by more than 1 %, of the ratios at which any of them finishes:\n\n"
                + table(["program", "ratios", "coop loses", "to"], [[n, str(k), str(l), w or "-"] for n, k, l, w in
                                                                   losses(runs, key("coop"), [key(e) for e in four[1:]])]))
    text.append(why(off, losses(runs, key("coop"), [key(e) for e in four[1:]]),
                    losses(runs, key("coop", "merge", "size_exponent=1"), [key(e) for e in four[1:]])))
    text.append("<details><summary>Each program</summary>\n\n" + per_program(runs, [(e, key(e)) for e in four]
                + [(f"{e}, as it is here", (e, "merge", "")) for e in ("coop", *plus)]) + "\n</details>\n")
    text.append(question_1(off, alloc_rows, mid, c, d))
    text.append(question_2(off, now, page, page_rows, times, plus, bound, free))
    text.append("Searching, which no overhead above has in it (processor time of this machine; medians over programs at ratios .9, .7 "
                "and .5;\nothers were at work on it, so compare the rows, not the figures with elsewhere):\n\n" + search_table(searches))
    text.append("## The reviewer's program\n\nThree blocks fill the memory, the first and the third are freed, and their sum is asked for "
                "(`coop probe`, in this machine's\nmemory; `--device cuda` asks a GPU):\n\n"
                + table(["allocator", "fits", "free", "largest run", "copied", "took"], verdicts(coop)))
    return "\n".join(text)


def why(off, plain, by_byte):
    lost, less = sum(row[2] for row in plain), sum(row[2] for row in by_byte)
    a, b = ([mean(off("coop", "merge", *extra), band)[0] for band in BANDS[:3]] for extra in ((), ("size_exponent=1",)))
    verdict = ("so that is the reason for most of them" if less < 0.5 * lost else
               "which explains a part of them" if less < 0.9 * lost else "which does not explain them")
    return f"""Why: Coop's score of a tensor has no size in it, DTR's and DTE's are by the byte. Where memory is loose and tensors differ much in
size, cost by the byte is the better choice of victims. With it (`--set size_exponent=1`) `coop` loses {less} cells for {lost}, {verdict}.
Over all programs it has {", ".join(f"{x:.3f}" for x in b)} for {", ".join(f"{x:.3f}" for x in a)} in the first three bands.
"""


def question_1(off, rows, mid, c, d):
    on_class, classic = mean(off("coop", "class"), mid)[0], mean(off("dtr-eq", "class"), mid)[0]
    aware = mean(off("coop-class", "class"), mid)[0]
    keeps = mean(off("coop", "class", "give_back=false"), BANDS[0])
    best_keep = max((mean(off(e, "class", "give_back=false"), BANDS[0])[1], e) for e in KEEPING)
    caching, caching_d = mean(off("coop", "caching"), mid)[0], mean(off("dtr-eq", "caching"), mid)[0]
    return f"""## 1. Does Coop need an allocator that merges?

![allocators](answers/allocators.svg)

{bands_table(rows)}
- On a pool that merges, `coop` is {better(c, d)} `dtr-eq` (at .40 to .58: {c:.3f} and {d:.3f}).
- With one list a size whose chunks go back to the device when they are wanted (at no cost here: an optimistic assumption, as
  giving back waits for the GPU), `coop` has {on_class:.3f} and `dtr-eq` {classic:.3f}: `coop` is {better(on_class, classic)} it there. `coop-class`, which weighs
  single victims against whole chunks, has {aware:.3f}.
- If chunks never go back, at .80 to .98 {100 * keeps[1]:.0f} % of the runs of `coop` finish, and {100 * best_keep[0]:.0f} % at best with any of the three: no order of evictions
  helps where memory of one size cannot serve another.
- With PyTorch's rules for CUDA: {caching:.3f} and {caching_d:.3f}; `coop` is {better(caching, caching_d)} `dtr-eq` there.

So the *window* needs neighbours that become one block. Where they do not, what is left of it is the choice among victims.
"""


def question_2(off, now, page, rows, times, plus, bound, free):
    header = ["page", *(f"{e}, free" for e in ("coop", "dtr-eq", "dte")), "pages moved a step", "this machine, us", "break-even, us: .78-.60", ".58-.40"]
    lines = []
    for p in PAGES:
        moved = [run.pages() for (_, r), run in page("dtr-eq", p).items() if run.ok and BANDS[2][1] <= r <= BANDS[2][0]]
        even = [break_even(page("dtr-eq", p), off("coop"), band) for band in BANDS[1:3]]
        lines.append([size(p), *(cell(page(e, p), BANDS[2], free) for e in ("coop", "dtr-eq", "dte")),
                      f"{sum(moved) / max(1, len(moved)):.0f}", f"{times.get(p, math.nan):.1f}", *(f"{e:.2g}" if e > 0 else "never" for e in even)])
    paged, c, n = mean(page("dtr-eq", 2097152), BANDS[2], free)[0], mean(off("coop"), BANDS[2])[0], mean(now("coop"), BANDS[2])[0]
    own = mean(page("coop", 2097152), BANDS[2], free)[0]
    b = mean(bound, BANDS[2], free)[0]
    even = break_even(page("dtr-eq", 2097152), off("coop"), BANDS[2])
    moves = "\n".join(f"- `{e}` on the merging pool, moves and all, copies paid: {m:.3f}; free page tables of 4 KiB: {b:.3f}; it is {better(m, b)} "
                      f"them. Of what lies\n  between `coop` as published ({c:.3f}) and them it takes {100 * (c - m) / (c - b):.0f} %."
                      for e, m in ((e, mean(now(e), BANDS[2])[0]) for e in ("coop", *plus)))
    return f"""## 2. With page tables, do the prior methods still fragment?

![pages](answers/pages.svg)

Overhead at .40 to .58, pages for nothing; then how many pages change their address in a step of `dtr-eq`, what one takes on this
machine's page table (`coop probe --variant map`), and the time a page may take before `dtr-eq` on pages costs what `coop` costs on the
merging pool (over the runs that finish with both, so it says nothing of those that fail for want of one run):

{table(header, lines)}
- They do not fragment: any free pages make any block. Rounding to pages is what is lost.
- If it were free, `dtr-eq` with 2 MiB pages would be {better(paged, c)} `coop` on a merging pool ({paged:.3f} and {c:.3f}). It is not free: it breaks even at
  {f'{even:.1f} us a page' if even > 0 else 'no price'}. On a GPU, {CUDA_SOURCE}; we have not measured it ourselves. {"At that price remapping at each eviction costs more than it saves." if even < CUDA_US else "At that price it pays."}
- `coop` itself gains from them too ({own:.3f}): windows then only choose, they need not be one run.
- Where fragmentation is gone, `coop` is {better(own, paged)} `dtr-eq` by its choice of victims ({own:.3f} and {paged:.3f}). What may be left is the
  time of its search: below.

Does moving give what page tables give, without them?

{moves}
"""


def main():
    parser = argparse.ArgumentParser(description="writes data/answers.md")
    parser.add_argument("coop")
    parser.add_argument("folder", nargs="?", default=os.path.join(ROOT, "build", "answers"))
    parser.add_argument("--only-write", action="store_true", help="the sweeps are there")
    flags = parser.parse_args()
    os.makedirs(flags.folder, exist_ok=True)
    database = os.path.join(flags.folder, "answers.db")
    policies = json.loads(subprocess.run([flags.coop, "policy", "--json"], capture_output=True, text=True).stdout)
    plus = [e for p in policies if p["name"] == "evictor" for e in p["labels"] if e == "coop-plus"]
    searches = os.path.join(flags.folder, "searches.db")
    if not flags.only_write:
        sweep(flags.coop, database, plus)
        time_searches(flags.coop, searches)
    text = compose(load(database), flags.coop, plus, searches)
    with open(os.path.join(ROOT, "data", "answers.md"), "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
