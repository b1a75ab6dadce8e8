"""Two processes train one tiny model together (gloo, CPU), and each records its part of one job.

torchrun --standalone --nproc-per-node 2 docs/examples/train_ddp.py

``carbonlens runs`` then lists one run of two ranks. With CRASH=1 rank 1 raises in the first
attempt; with ``--max-restarts 1`` torchrun starts both again, which is attempt 2 of the job.
"""

import datetime
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import carbonlens
from carbonlens.reporting import format as fmt

torch.set_num_threads(1)
# torchrun's store outlives a restart, with the addresses of ranks that are gone (torch 2.13): each
# attempt writes below a name of its own. What waits for another rank gives up after a minute.
attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
patience = datetime.timedelta(seconds=60)
store, rank, ranks = next(dist.rendezvous("env://", timeout=patience))
store = dist.PrefixStore(f"attempt-{attempt}", store)
dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=patience)

torch.manual_seed(0)
images = torch.randn(400, 1, 28, 28)
data = TensorDataset(images, images.mean((1, 2, 3)).gt(0).long())
sampler = DistributedSampler(data)
batches = DataLoader(data, batch_size=25, sampler=sampler)

# Every rank tracks: it measures its own processes and counts its own samples.
try:
    with carbonlens.track("ddp", study="digits", role="training", unit="image") as run:
        with run.phase("load"):
            model = torch.nn.Sequential(
                torch.nn.Conv2d(1, 16, 5),
                torch.nn.ReLU(),
                torch.nn.Flatten(),
                torch.nn.Linear(16 * 24 * 24, 2),
            )
            model = DistributedDataParallel(model)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(4):
            sampler.set_epoch(epoch)
            run.enter_phase("warm-up" if epoch == 0 else "steady")
            for inputs, labels in batches:
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
                optimizer.step()
                run.step(units=len(inputs))
            if os.environ.get("CRASH") == "1" and attempt == "0" and rank == 1:
                raise RuntimeError("rank 1 fails in its first attempt")
finally:
    # A process group that an exception left open keeps the process from ending.
    dist.destroy_process_group()
energy = fmt.energy(run.run.total_energy)
print(f"rank {rank}: attempt {run.run.attempt}, {run.run.units} images, {energy.text} {energy.interval}")
