import { DurableObject } from "cloudflare:workers";

// The count is read once and kept in memory; every new one is stored, and confirmed, before it is answered.
export class Counter extends DurableObject {
  count = 0;

  constructor(ctx, env) {
    super(ctx, env);
    ctx.blockConcurrencyWhile(async () => {
      this.count = (await ctx.storage.get("count")) ?? 0;
    });
  }

  async increment() {
    const count = ++this.count;
    await this.ctx.storage.put("count", count);
    return count;
  }
}

export default {
  async fetch(request, env) {
    const path = /^\/counters\/([^/]+)\/increment$/.exec(new URL(request.url).pathname);
    if (path === null || request.method !== "POST") {
      return new Response("not found", { status: 404 });
    }
    const counter = env.COUNTER.get(env.COUNTER.idFromName(path[1]));
    return Response.json(await counter.increment());
  },
};
