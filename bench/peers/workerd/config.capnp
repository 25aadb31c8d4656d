# The counter of the benches, as a Durable Object kept in memory. `run.sh` gives the address.

using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [ (name = "counters", worker = .counters) ],
  sockets = [ (name = "http", http = (), service = "counters") ],
);

const counters :Workerd.Worker = (
  modules = [ (name = "worker.js", esModule = embed "worker.js") ],
  compatibilityDate = "2025-09-01",
  durableObjectNamespaces = [ (className = "Counter", uniqueKey = "pinned-bench-counter") ],
  durableObjectStorage = (inMemory = void),
  bindings = [ (name = "COUNTER", durableObjectNamespace = "Counter") ],
);
