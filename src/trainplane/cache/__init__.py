"""The distributed data cache on Arrow: training data decoded once, served from near memory, never silently short.

A head plans a dataset once as an immutable `manifest`; workers decode its fragments into `segments` on local disk and
serve blocks of them by Arrow Flight; ranks read blocks in an `order` that depends on seed and epoch alone. It runs in
pods of users. `pyarrow` is imported here and nowhere else.

```
sources/      what can be read: folders of files, Iceberg snapshots, SQL over either; on disk and in S3
manifest      the plan: schema, fragments with exact rows and versions, block size; addressed by its content
blocks        the arithmetic of fragments, blocks and rows
order         the permutation of an epoch, equal slices of it, and a cursor
placement     which workers hold a fragment
roster        what the head knows of its workers: who lives, who holds what, whether all is there
segments      decoded fragments on local disk
tickets       signed permission to read rows
wire          the words that head, worker and client exchange
head, worker  the Flight servers
front         the port that everybody knows: health for the kubelet, Flight relayed; `health`, `meter`: HTTP, figures
reference     what clients of the reference's cache say
written       datasets that clients write; `staging`: their parts on disk, `peers`: copies, `writing`: a client's side
node          one pod of a cache: head, worker or both
opening       a client's way to the head; `fetching`: blocks from workers, with failover; `reading`: batches in order
torch         the same as a dataset for torch's loaders
```
"""
