import { createHash } from 'node:crypto';
import { canonicalJson } from '../src/policy/key/canonical-json.ts';
import { callKey } from '../src/policy/key/call-key.ts';
import { portableSha256, sha256 } from '../src/policy/key/sha256.ts';
import { median, type Figure, type Question } from './measure.ts';

const ROUNDS = 60;

const mail = {
  to: 'ada@example.com',
  subject: 'Quarterly report',
  body: 'Please find the numbers attached.',
  priority: 2,
  urgent: false,
  attachments: ['q3.pdf', 'q3.xlsx'],
  labels: { team: 'finance', year: 2026 },
};
const mails = (count: number): unknown => ({
  batch: Array.from({ length: count }, (_, id) => ({ ...mail, id, share: id * 0.37 })),
});

const PLAIN = 'JSON.stringify + sha256 of node:crypto';

const ways = (params: unknown): Readonly<Record<string, () => string>> => ({
  'JSON.stringify': () => JSON.stringify(params),
  canonicalJson: () => canonicalJson(params),
  [PLAIN]: () => createHash('sha256').update(JSON.stringify(params)).digest('hex'),
  'canonicalJson + sha256': () => sha256(canonicalJson(params)),
  'canonicalJson + portable sha256': () => portableSha256(canonicalJson(params)),
  'callKey, params digest included': () =>
    callKey({
      namespace: 'agents.tools.mail',
      toolName: 'send_mail',
      params,
      sessionKey: 'session-1',
      actorId: 'actor-1',
      tenantId: 'tenant-1',
    }).key,
});

/** The ways take turns, so that what else the machine does falls on all of them alike. */
const compare = (size: string, params: unknown, units: number): Figure[] => {
  const times = new Map<string, number[]>();
  for (let round = -2; round < ROUNDS; round++) {
    for (const [name, make] of Object.entries(ways(params))) {
      let chars = 0;
      const startedAtMs = performance.now();
      for (let unit = 0; unit < units; unit++) chars += make().length;
      const usPerUnit = ((performance.now() - startedAtMs) * 1000) / units;
      if (chars < units) throw new Error(`${name} made nothing`);
      if (round >= 0) times.set(name, [...(times.get(name) ?? []), usPerUnit]);
    }
  }
  return [...times].map(([name, of]) => ({ name: `${name}, ${size}`, usPerUnit: median(of), runs: ROUNDS }));
};

/** What the key of a call costs, against the hash of a text that is not canonical. */
export async function benchmarkKey(): Promise<Question> {
  const figures = [
    ...compare('200 B', mail, 2_000),
    ...compare('1.6 kB', mails(7), 300),
    ...compare('50 kB', mails(220), 10),
  ];
  const us = (name: string): number => figures.find((figure) => figure.name === name)?.usPerUnit ?? Number.NaN;
  const ratios: Record<string, number> = {};
  for (const size of ['200 B', '1.6 kB', '50 kB']) {
    for (const name of ['canonicalJson + sha256', 'callKey, params digest included'])
      ratios[`speed against ${PLAIN}: ${name}, ${size}`] = us(`${PLAIN}, ${size}`) / us(`${name}, ${size}`);
  }
  return { question: 'What does the idempotency key of a call cost?', figures, ratios };
}
