import type { PolicyFile } from '../../contract/formats/policy-file.ts';
import type { QueueServerEntry, RowServerEntry, ScenarioFile } from '../../contract/formats/scenario-entry.ts';
import type { BreakerStateName } from '../../contract/breaker-state.ts';
import { SimulatedTime } from '../time.ts';
import { streamOf } from './chance.ts';
import { startClients } from './clients.ts';
import type { Ended, Engine } from './engine.ts';
import { FidelityEngine } from './fidelity.ts';
import { StormEngine } from './fleet/engine.ts';
import { QueueServer, RowServer, Weather, type Server } from './server.ts';
import { CALLS_MAX, checkCalls } from './scenario/size.ts';
import { StormTally } from './tally.ts';

/** A change of a breaker: of which tool, of which process, when, and to what. */
export interface StormBreakerChange {
  readonly toolName: string;
  readonly process: number;
  readonly atMs: number;
  readonly state: BreakerStateName;
}

/** What came of one run: a policy, under one seed. */
export interface StormRun {
  readonly tally: StormTally;
  readonly breakers: readonly StormBreakerChange[];
}

/** Which machinery carries calls out: the layer itself, or its pure policies alone. */
export type EngineName = 'fidelity' | 'fleet';

const serversOf = (scenario: ScenarioFile, time: SimulatedTime, seed: number): Map<string, Server> => {
  const weathers = new Map(
    Object.entries(scenario.weather ?? {}).map(([name, entry]) => [
      name,
      new Weather(entry, scenario.duration_s, streamOf(seed, `weather ${name}`)),
    ]),
  );
  const serverOf = (name: string, entry: QueueServerEntry | RowServerEntry): Server => {
    const random = streamOf(seed, `server ${name}`);
    if ('row' in entry) return new RowServer(time, entry, random);
    return new QueueServer(time, entry, random, entry.weather === undefined ? undefined : weathers.get(entry.weather));
  };
  return new Map(Object.entries(scenario.servers).map(([name, entry]) => [name, serverOf(name, entry)]));
};

/** Runs a scenario once, under one policy and seed, until all that was asked for has ended. */
export function runStorm(
  scenario: ScenarioFile,
  policy: PolicyFile,
  seed: number,
  name: EngineName,
  callsMax: number = CALLS_MAX,
): StormRun {
  const time = new SimulatedTime(0);
  const tally = new StormTally(scenario.bucket_ms ?? 1_000);
  const servers = serversOf(scenario, time, seed);
  const breakers: StormBreakerChange[] = [];
  const engines = Array.from({ length: scenario.processes ?? 1 }, (_, process): Engine => {
    const breakerChanged = (toolName: string, state: BreakerStateName): void =>
      void breakers.push({ toolName, process, atMs: time.now(), state });
    const parts = { scenario, policy, time, servers, tally, process, breakerChanged };
    return name === 'fidelity' ? new FidelityEngine(parts, seed) : new StormEngine(parts, seed);
  });
  let next = 0;
  for (const [index, clients] of scenario.clients.entries()) {
    const { tool, plan } = clients;
    const begin = (ended: () => void): void => {
      const engine = engines[next++ % engines.length] as Engine;
      const beganMs = time.now();
      tally.began(beganMs);
      checkCalls(tally.calls, callsMax);
      const end = ({ succeeded, refused }: Ended): void => {
        tally.ended(beganMs, time.now(), succeeded, refused);
        ended();
      };
      if (plan !== undefined) engine.turn(plan, end);
      else engine.call(tool ?? Object.keys(scenario.tools)[0] ?? '', end);
    };
    startClients(clients, time, scenario.duration_s * 1_000, streamOf(seed, `clients ${index}`), begin);
  }
  time.run();
  return { tally, breakers };
}
