import { createBreaker } from '../src/index.ts';
import { sideBySide, type Question } from './measure.ts';

const PAIRS = 100_000;
const ROUNDS = 25;

/** Decisions of a live breaker: each admission is one, and each outcome. */
export async function benchmarkBreaker(): Promise<Question> {
  const breaker = createBreaker({ windowSize: 20 });
  const decide = async (): Promise<void> => {
    for (let pair = 0; pair < PAIRS; pair++) {
      const permit = breaker.admit();
      if (!permit.admitted) throw new Error('the breaker did not admit');
      permit.success();
    }
    if (breaker.state.measured !== 20) throw new Error('the outcomes were not counted');
  };
  const way = 'a decision, admission or outcome';
  const { figures, us } = await sideBySide({ [way]: decide }, PAIRS * 2, ROUNDS);
  return {
    question: 'How many decisions does a live breaker make?',
    figures,
    ratios: {},
    targets: [
      {
        name: 'breaker decisions through the live scan, millions a second',
        value: 1 / us(way),
        limit: 5,
        atLeast: true,
        unit: 'M/s',
      },
    ],
  };
}
