import * as z from 'zod';
import { COUNT_MAX, count, durationMs, positiveMs } from './policy-entry.ts';
import { policyFileSchema } from './policy-file.ts';
import type {
  ClientsEntry,
  ExpectEntry,
  LatencyEntry,
  QueueServerEntry,
  RowServerEntry,
  ScenarioFile,
} from './scenario-entry.ts';

const name = z.string().min(1).max(256);
const seconds = z.number().nonnegative().max(1_000_000);
const share = z.number().min(0).max(1);
const span = { from_s: seconds, to_s: seconds };

const latency: z.ZodType<LatencyEntry> = z
  .union([
    z.strictObject({ constant_ms: durationMs }),
    z.strictObject({ median_ms: positiveMs, p99_ms: positiveMs }),
    z.strictObject({ values_ms: z.array(durationMs).min(1).max(100_000) }),
    z.strictObject({ trace: name, tool: name }),
  ])
  .describe('Of one piece of work: constant, lognormal by median and p99, drawn from values, or from a trace.');

const queueServer: z.ZodType<QueueServerEntry> = z.strictObject({
  latency,
  workers: count(1, COUNT_MAX).exactOptional().describe('How much it does at a time. Default: no limit.'),
  queue: count(0, COUNT_MAX)
    .exactOptional()
    .describe('How much may wait; more is refused with 503. Default: no limit.'),
  errors: z
    .strictObject({
      rate: share,
      status: z.number().int().min(400).max(599).exactOptional(),
      retry_after_ms: durationMs.exactOptional(),
    })
    .exactOptional()
    .describe('The share of work that fails, by default with status 503.'),
  bursts: z
    .array(z.strictObject({ ...span, rate: share }))
    .max(1_000)
    .exactOptional()
    .describe('Spans with another share of errors.'),
  weather: name.exactOptional().describe('Bad weather that it shares with other servers.'),
  weather_rate: share.exactOptional().describe('The share of errors in bad weather. Default 1.'),
  dips: z
    .array(z.strictObject({ ...span, factor: z.number().min(0).max(1) }))
    .max(1_000)
    .exactOptional()
    .describe('Spans in which it works at a part of its speed; at 0 all waits.'),
  outages: z.array(z.strictObject(span)).max(1_000).exactOptional().describe('Spans in which requests are lost.'),
  lost_answers: share.exactOptional().describe('The share of work that is done and whose answer is lost. Default 0.'),
  on_abandon: z
    .enum(['finish', 'drop'])
    .exactOptional()
    .describe('What becomes of work that nobody waits for: it is done all the same (finish, the default), or dropped.'),
});

const rowServer: z.ZodType<RowServerEntry> = z.strictObject({
  row: z.strictObject({ network_ms: z.strictObject({ mean: durationMs, sd: durationMs }) }),
});

const clients: z.ZodType<ClientsEntry> = z.union([
  z.strictObject({
    tool: name.exactOptional(),
    plan: name.exactOptional(),
    poisson: z.strictObject({
      rate_per_s: z.number().positive().max(1_000_000),
      surges: z
        .array(z.strictObject({ ...span, factor: z.number().min(0).max(1_000) }))
        .max(1_000)
        .exactOptional(),
    }),
  }),
  z.strictObject({
    tool: name.exactOptional(),
    plan: name.exactOptional(),
    closed: z.strictObject({ users: count(1, COUNT_MAX), think_ms: positiveMs }),
  }),
  z.strictObject({
    tool: name.exactOptional(),
    plan: name.exactOptional(),
    burst: z.strictObject({
      count: count(1, COUNT_MAX),
      at_s: seconds.exactOptional(),
      every_s: seconds.exactOptional(),
    }),
  }),
]);

const EXPECTS = 'must be numbers by figure, such as success: 0.99, or by policy and figure';
const EXPECTS_NOTHING =
  'expects nothing; name at least one of success, load, recovery_s, effects, p99_ms and attempts, or leave it out';
/** Whether there is a figure in it, and in each of its parts: without one it would hold whatever happens. */
const namesFigures = (expect: object): boolean => {
  const parts: unknown[] = Object.values(expect);
  return parts.length > 0 && parts.every((part) => typeof part !== 'object' || part === null || namesFigures(part));
};

const expectation: z.ZodType<ExpectEntry> = z.strictObject({
  success: share.exactOptional().describe('The least share of successes.'),
  load: z.number().positive().exactOptional().describe('The most load at its peak, in times of the calls at theirs.'),
  recovery_s: seconds
    .exactOptional()
    .describe('The most seconds from the end of the trouble until calls succeed again.'),
  effects: z.number().nonnegative().exactOptional().describe('How often one call may take effect at the most.'),
  p99_ms: durationMs.exactOptional().describe('The longest that 99 % of the calls may take.'),
  attempts: z.number().positive().exactOptional().describe('The most attempts a call, on average.'),
});

/** Checks a scenario file; the package's `schemas/scenario.schema.json` is made from it. */
export const scenarioFileSchema: z.ZodType<ScenarioFile> = z
  .strictObject({
    name: z.string().min(1).max(100),
    about: z.string().max(2_000).exactOptional(),
    duration_s: z.number().positive().max(100_000).describe('How long clients ask; what they asked for then ends.'),
    bucket_ms: count(10, 3_600_000).exactOptional().describe('The grain of charts and of recovery. Default 1000.'),
    seed: z
      .number()
      .int()
      .min(0)
      .max(2 ** 31)
      .exactOptional()
      .describe('The first seed. Default 1.'),
    seeds: count(1, 10_000).exactOptional().describe('How many seeds. Default 20.'),
    engine: z.enum(['fidelity', 'fleet']).exactOptional(),
    processes: count(1, 10_000)
      .exactOptional()
      .describe('Processes, each with breakers and a budget of its own, that share the clients. Default 1.'),
    weather: z
      .record(name, z.strictObject({ every_s: z.number().positive(), for_s: z.number().positive() }))
      .exactOptional()
      .describe('Weather that is bad every so many seconds, for so many, both on average.'),
    servers: z.record(name, z.union([queueServer, rowServer])),
    tools: z.record(
      name,
      z.strictObject({
        server: name,
        effects: z.enum(['read', 'mutating']).exactOptional().describe('What it really does. Default read.'),
        keeps_keys: z
          .boolean()
          .exactOptional()
          .describe(
            'Its resource acts once for a key, or refuses an old fence, where the policy’s enforces_key hands it over.',
          ),
      }),
    ),
    plans: z
      .record(
        name,
        z.strictObject({
          timeout_ms: positiveMs.exactOptional(),
          nodes: z
            .array(
              z.strictObject({
                id: name,
                tool: name,
                needs: z.array(name).max(100).exactOptional(),
                optional: z.boolean().exactOptional(),
              }),
            )
            .min(1)
            .max(100),
        }),
      )
      .exactOptional(),
    clients: z.array(clients).min(1).max(100),
    policies: z.record(name, policyFileSchema).exactOptional(),
    expect: z
      .union([expectation, z.record(name, expectation)], { error: EXPECTS })
      .refine(namesFigures, EXPECTS_NOTHING)
      .exactOptional(),
  })
  .meta({ title: 'spillway scenario', description: 'Clients and servers in trouble, for `spillway simulate`.' });
