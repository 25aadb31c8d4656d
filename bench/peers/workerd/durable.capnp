# The durable counter of the benches: a Durable Object whose storage is a SQLite file per object, in the folder that
# `durable.sh` gives, as it gives the address.

using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "counters", worker = .counters),
    (name = "objects", disk = (writable = true)),
  ],
  sockets = [ (name = "http", http = (), service = "counters") ],
);

const counters :Workerd.Worker = (
  modules = [ (name = "worker.js", esModule = embed "durable.js") ],
  compatibilityDate = "2025-09-01",
  durableObjectNamespaces = [
    (className = "Counter", uniqueKey = "pinned-bench-durable-counter", enableSql = true),
  ],
  durableObjectStorage = (localDisk = "objects"),
  bindings = [ (name = "COUNTER", durableObjectNamespace = "Counter") ],
);
