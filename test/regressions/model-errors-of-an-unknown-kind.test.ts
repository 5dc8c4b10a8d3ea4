// Was: an LlmError of a kind that is not in the list failed with `Cannot read properties of undefined`.
// Now: it is refused as a ToolExecutionError of such a kind is, with the kinds that there are.
import { LlmError, toLlmError, type LlmErrorKind } from 'spillway';
import { expect, it } from 'vitest';

it.each(['overloaded', 'constructor', '__proto__'])('R-12.1 an LlmError of the kind %s is refused', (kind) => {
  expect(() => new LlmError(kind as LlmErrorKind, 'busy')).toThrow(
    new RangeError(
      'an LlmError’s kind is one of auth_error, quota_exceeded, rate_limit, timeout, network_error, model_error, ' +
        `not ${kind}`,
    ),
  );
  // What another copy of the package has made is read, whatever it calls it.
  const foreign = Object.assign(new LlmError('network_error', 'busy'), { kind });
  expect(toLlmError(foreign)).toMatchObject({ kind: 'network_error', classification: 'transient' });
});
