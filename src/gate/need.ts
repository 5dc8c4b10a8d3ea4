import { concat, defer, first, map, of, type Observable } from 'rxjs';
import type { NeedsApproval, NeedsApprovalContext } from '../contract/gate/approval.ts';
import type { Runtime } from '../contract/runtime.ts';
import { answerWithin } from '../operators/timing/answer-within.ts';
import { fromOutput } from '../operators/work/output.ts';
import { given } from '../policy/check.ts';
import { neededBy } from '../policy/gate/when.ts';
import type { GateSubject } from '../layer/gate-port.ts';

/** As long as a hook has. */
const RULE_TIMEOUT_MS = 15_000;

const contextOf = ({ context, guarded }: GateSubject): NeedsApprovalContext => {
  const { callId, nodeId, session, actor, tenant } = context.call;
  const { turnId } = context.site;
  const named = { toolName: guarded.tool.name, callId, turnId, nodeId, session, actor, tenant };
  return given(named);
};

const asked = (rule: NeedsApproval, subject: GateSubject, runtime: Runtime): Observable<boolean> => {
  if (typeof rule === 'boolean') return of(rule);
  if (typeof rule === 'object') return of(neededBy(rule, subject.input));
  const answer$ = defer(() => fromOutput<unknown>(rule(subject.input as never, contextOf(subject))));
  return answerWithin(answer$, RULE_TIMEOUT_MS, runtime).pipe(
    // What is no clear no is a yes: nothing runs unapproved because a rule failed.
    map((answer) => !(answer?.kind === 'N' && answer.value === false)),
  );
};

const rulesOf = ({ guarded, context }: GateSubject): readonly NeedsApproval[] =>
  [guarded.needsApproval, context.call.needsApproval].filter((rule) => rule !== undefined && rule !== false);

/** Whether it depends on its input whether a person has to approve it, or does not depend on anything. */
export const canBeNeeded = (subject: GateSubject): boolean => rulesOf(subject).length > 0;

/** Whether a person has to approve what a call is about to do: its tool says so, or its node. */
export const isNeeded = (subject: GateSubject, runtime: Runtime): Observable<boolean> => {
  const rules = rulesOf(subject);
  if (rules.includes(true)) return of(true);
  return concat(...rules.map((rule) => asked(rule, subject, runtime))).pipe(first((needed) => needed, false));
};
