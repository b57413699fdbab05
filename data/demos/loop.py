# SPDX-License-Identifier: Apache-2.0
"""What the three demos share: arguments, the training loop, and what is printed.

Plain PyTorch. All that a run computes follows from --seed, so two runs that print the same lines did
the same arithmetic: each loss with all its digits, and at the end a hash of every parameter and
buffer, of every gradient, and of the random generator.
"""
import argparse
import hashlib
import time

import torch


def arguments(description, sizes, **defaults):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=defaults.get("steps", 10), help="training steps")
    parser.add_argument("--size", choices=sorted(sizes), default="normal", help="size of net and batch")
    parser.add_argument("--batch", type=int, help="samples a batch, instead of the size's own")
    parser.add_argument("--threads", type=int, default=1, help="threads of one operator")
    parser.add_argument("--seed", type=int, default=1, help="seed of weights, data and dropout")
    parser.add_argument("--report", action="store_true", help="print time and resident memory of each step")
    args = parser.parse_args()
    args.shape = dict(sizes[args.size])
    if args.batch:
        args.shape["batch"] = args.batch
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    return args


def resident():
    """Bytes of anonymous memory this process has in RAM."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


def fingerprint(tensors):
    """SHA-256 of names, shapes and bits."""
    digest = hashlib.sha256()
    for name, tensor in tensors:
        digest.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def train(args, model, optimizer, batches, loss_of):
    """`batches` yields (input, target) without end; loss_of (output, target) is a scalar."""
    model.train()
    for step in range(1, args.steps + 1):
        start = time.perf_counter()
        inputs, target = next(batches)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(inputs), target)
        loss.backward()
        optimizer.step()
        value = loss.item()
        del inputs, target, loss
        print("step %d loss %r %s" % (step, value, value.hex()), flush=True)
        if args.report:
            seconds = time.perf_counter() - start
            print("report %d seconds %.6f resident %d" % (step, seconds, resident()), flush=True)
    print("params sha256", fingerprint(list(model.named_parameters()) + list(model.named_buffers())))
    print("grads sha256", fingerprint((name, p.grad) for name, p in model.named_parameters()
                                      if p.grad is not None))
    print("random sha256", fingerprint([("default", torch.get_rng_state())]), flush=True)
