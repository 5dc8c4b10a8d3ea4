import {
  tool,
  type Spillway,
  type SpillwayOptions,
  type Tool,
  type ToolEvent,
  type ToolPolicy,
  type TurnEvent,
} from 'spillway';

/** What must not come out: as a text around it, and as a name that it stands in. */
export interface Secret {
  readonly text: string;
  readonly name: string;
  /** What is looked for wherever text comes out. */
  readonly needles: readonly string[];
}

/** The same value, named by the host in `redact.secrets`. */
export const NAMED = 'C4naryV4lue';

/** What is known by its form, and what is known since it was named. */
export const SECRETS: Readonly<Record<string, Secret>> = {
  'by its form': {
    text:
      'password=marzipan, Authorization: Bearer qW3eR5tY7uI9\nat https://ann:marzipan@db.example with ' +
      '{"client_secret":"marzipan"} and sk-ant-api03-Zq9xK7vB2mN4pL6tR8wY_cD3f',
    name: 'sk-ant-api03-Zq9xK7vB2mN4pL6tR8wY_cD3f',
    needles: ['Zq9xK7vB', 'Zq9xk7vb', 'marzipan', 'qW3eR5tY7u'],
  },
  'by its name': { text: `it is ${NAMED} there`, name: `x-${NAMED}-y`, needles: ['C4nary', 'c4nary'] },
};

export type Layer = Spillway;

/** Where a host, a tool or a service can put text. */
export interface Place {
  /** Whether the trace tells of it: with something in its place. */
  readonly told: boolean;
  readonly layer: (secret: Secret) => SpillwayOptions;
  readonly run?: (layer: Layer, secret: Secret) => Promise<unknown>;
}

export const once: ToolPolicy = { effects: 'read', retry: { maxAttempts: 1 }, breaker: false };
export const again: ToolPolicy = { effects: 'read', retry: { maxAttempts: 2, initialDelayMs: 1 } };

export const giving = (name: string, policy: ToolPolicy = once): Tool => tool({ name, policy, execute: () => 1 });
export const failing = (thrown: () => unknown, policy: ToolPolicy = again, name = 'a'): Tool =>
  tool({
    name,
    policy,
    execute: (): never => {
      throw thrown();
    },
  });

/** A call, its events heard by its caller. */
export const called = (layer: Layer, request: Parameters<Layer['call']>[0]): Promise<ToolEvent[]> =>
  new Promise((resolve, reject) => {
    const heard: ToolEvent[] = [];
    layer
      .call(request)
      .subscribe({ next: (event) => heard.push(event), error: reject, complete: () => resolve(heard) });
  });

export const turned = (layer: Layer, ...args: Parameters<Layer['turn']>): Promise<TurnEvent[]> =>
  new Promise((resolve, reject) => {
    const heard: TurnEvent[] = [];
    layer
      .turn(...args)
      .subscribe({ next: (event) => heard.push(event), error: reject, complete: () => resolve(heard) });
  });

export const failure = (make: (secret: Secret) => unknown, told = true): Place => ({
  told,
  layer: (secret) => ({ tools: [failing(() => make(secret))] }),
});
/** Of calls made for somebody, one of which fails. */
export const request = (
  more: (secret: Secret) => object,
  told = true,
  options: (secret: Secret) => SpillwayOptions = () => ({}),
): Place => ({
  told,
  layer: (secret) => ({ tools: [giving('a')], ...options(secret) }),
  run: (layer, secret) => called(layer, { toolName: 'a', input: { n: 1 }, ...more(secret) }),
});

export const defaultRun = (layer: Layer): Promise<unknown> => called(layer, { toolName: 'a' });
