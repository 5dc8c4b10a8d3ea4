import { delay, of } from 'rxjs';
import { decideRecovery } from '../../src/policy/recovery/decide.ts';
import type { ErrorHandler } from '../../src/layer/error-handler.ts';
import { Dice } from './dice.ts';
import { fires } from './faults.ts';
import { hostDecision } from './host-decision.ts';
import type { World } from './world.ts';

/**
 * The host's error handler: late, or of another mind than the default.
 * @param givenUp gets the calls of which it says at once that no more is to be done
 */
export const hostHandler =
  (world: World, givenUp: Set<string>): ErrorHandler =>
  (failure) => {
    const { scenario, calm, findings } = world;
    const { seed, faults } = scenario;
    const n = world.calls.get(failure.callId)?.place.n ?? 0;
    const dice = new Dice(seed, 2, n, failure.attempt);
    const decision = (calm ? undefined : hostDecision(seed, world.extras, failure, n)) ?? decideRecovery(failure);
    const gaveUp = decision.code === 'guidance' && decision.strategy === 'fail';
    if (decision.code === 'guidance')
      findings.saw(gaveUp ? 'the error handler gives up' : 'the error handler orders something else');
    if (calm || !fires(faults, 'slow_handler', dice)) {
      if (gaveUp) givenUp.add(failure.callId);
      return decision;
    }
    findings.saw('decision comes later');
    // Not the layer's timer: the host's own.
    return of(decision).pipe(delay(dice.pick([0, 5, 10, 25, 30, 40]), world.runtime.scheduler));
  };
