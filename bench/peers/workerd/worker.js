import { DurableObject } from "cloudflare:workers";

export class Counter extends DurableObject {
  count = 0;

  async fetch() {
    this.count += 1;
    return Response.json(this.count);
  }
}

export default {
  async fetch(request, env) {
    const path = /^\/counters\/([^/]+)\/increment$/.exec(new URL(request.url).pathname);
    if (path === null || request.method !== "POST") {
      return new Response("not found", { status: 404 });
    }
    return env.COUNTER.get(env.COUNTER.idFromName(path[1])).fetch(request);
  },
};
