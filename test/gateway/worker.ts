import { createSpillway, liveRuntime, tool } from 'spillway';
import { anthropicGateway } from 'spillway/gateway/anthropic';
import { ConversationStateDO as Base, type DurableObjectContextLike } from 'spillway/gateway/conversation-do';
import { durableObjectConversationState, type DurableObjectNamespaceLike } from 'spillway/gateway/conversation-remote';
import { z } from 'zod';

interface Env {
  readonly STATE: DurableObjectNamespaceLike;
  readonly UPSTREAM: string;
}

/** The class as it is deployed, with a door by which a test can spoil and count its rows. */
export class ConversationStateDO extends Base {
  readonly #context: DurableObjectContextLike;

  constructor(context: DurableObjectContextLike, env: unknown) {
    super(context, env);
    this.#context = context;
  }

  override async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const { sql } = this.#context.storage;
    if (pathname === '/spoil') sql.exec("UPDATE conversation SET text = substr(text, 1, 20) || '}'");
    else if (pathname !== '/rows') return super.fetch(request);
    return Response.json([...sql.exec('SELECT COUNT(*) AS rows FROM conversation')][0]);
  }
}

const add = tool({
  name: 'math.add',
  input: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => `sum ${a + b}`,
});

/** Timers belong to the request that set them: so does everything that sets some. */
const gatewayOf = ({ STATE, UPSTREAM }: Env): ReturnType<typeof anthropicGateway> => {
  const { background: _, ...runtime } = liveRuntime;
  return anthropicGateway({
    upstream: UPSTREAM,
    tools: [add],
    spillway: createSpillway({ tools: [add], runtime }),
    state: durableObjectConversationState(STATE),
    runtime,
  });
};

export const worker: { fetch(request: Request, env: Env): Promise<Response> } = {
  fetch: async (request, env) => {
    const { pathname } = new URL(request.url);
    const [, direct, name = '', ...path] = pathname.split('/');
    if (direct !== 'state') return gatewayOf(env).fetch(request);
    const stub = env.STATE.get(env.STATE.idFromName(name)) as unknown as { fetch(request: Request): Promise<Response> };
    return stub.fetch(new Request(`https://state/${path.join('/')}`, request));
  },
};
