// A stream of users' questions, answered by two agents. A user's new question replaces the one before it: its model and
// its tools are stopped. Of the searches that a question needs, two run at a time.
import {
  concatMap,
  delay,
  filter,
  from,
  groupBy,
  map,
  mergeMap,
  of,
  switchMap,
  tap,
  timer,
  type Observable,
} from 'rxjs';
import { createSpillway, tool } from 'spillway';
import { runAgent, type AgentModel, type AgentOptions, type AgentResult } from 'spillway/agent';
import { scriptedModel } from 'spillway/agent/scripted';
import { z } from 'zod';

const ASKED = [
  { user: 'ann', city: 'Oslo', afterMs: 0 },
  { user: 'ann', city: 'Bergen', afterMs: 50 }, // she meant another city
  { user: 'bob', city: 'Turku', afterMs: 50 },
];

const running = new Map<string, number>();
const count = (city: string, change: number): number => {
  running.set(city, (running.get(city) ?? 0) + change);
  return running.get(city) ?? 0;
};
let most = 0;
let stopped = 0;

const search = tool({
  name: 'search',
  input: z.object({ city: z.string(), of: z.string() }),
  policy: { effects: 'read', timeoutMs: 5_000 },
  // A tool may give a stream. Nobody who has gone is worked for: it is unsubscribed. Oslo takes longer than Ann waits.
  execute: ({ city, of: what }) => {
    most = Math.max(most, count(city, 1));
    const complete = (): unknown => count(city, -1);
    const unsubscribe = (): unknown => [complete(), (stopped += 1)];
    return timer(city === 'Oslo' ? 60_000 : 20).pipe(
      map(() => `${what} in ${city}`),
      tap({ complete, unsubscribe }),
    );
  },
});
const spillway = createSpillway({ tools: [search] });

// Two agents. With a real model each is `anthropicModel(...)` or `aiSdkModel(...)` and its own `system`.
const calls = (city: string): object[] => ['hotels', 'trains', 'museums', 'saunas'].map((of) => ({ city, of }));
const researcher = (city: string): AgentModel =>
  scriptedModel([{ calls: calls(city).map((input) => ({ name: 'search', input })) }, { text: 'Found all.' }]);
const editor = (city: string, notes: number): AgentModel =>
  scriptedModel([{ text: `${city}: a weekend, made of ${notes} notes` }]);

const run = (options: Omit<AgentOptions, 'spillway'>): Observable<AgentResult> =>
  runAgent({ ...options, spillway, turn: { concurrency: 2 } }).pipe(
    filter((event) => event.type === 'settled'),
    map(({ result }) => result),
  );
const ask = (content: string): { role: 'user'; content: string } => ({ role: 'user', content });
const answer = (city: string): Observable<string> =>
  run({ model: researcher(city), tools: [search], messages: [ask(city)] }).pipe(
    switchMap(({ executedToolCallIds: found, messages }) =>
      run({ model: editor(city, found.length), messages: [...messages, ask('Write it.')] }),
    ),
    map(({ text }) => text),
  );

from(ASKED)
  .pipe(
    concatMap((question) => of(question).pipe(delay(question.afterMs))),
    groupBy(({ user }) => user),
    mergeMap((asked$) =>
      asked$.pipe(switchMap(({ user, city }) => answer(city).pipe(map((said) => `${user}: ${said}`)))),
    ),
  )
  .subscribe({
    next: (line) => console.log(line),
    complete: () => {
      const left = [...running.values()].reduce((sum, n) => sum + n, 0);
      console.log(`searches at a time: ${most}, stopped: ${stopped}, still running: ${left}`);
      void spillway.close();
    },
  });
