import { expect, it } from 'vitest';
import { GatewayReport, type GatewayLogger } from '../../src/gateway/anthropic/report.ts';
import { virtualRuntime } from '../../src/testing/virtual-runtime.ts';

it('R-11.4 the gateway logs the code of what failed, and no secret that stands in its place', () => {
  const lines: object[] = [];
  const write = (fields: object): void => void lines.push(fields);
  const logger: GatewayLogger = { debug: write, info: write, warn: write, error: write };
  const report = new GatewayReport(logger, virtualRuntime());
  const failed = (code: string): Error => Object.assign(new Error('it is sk-ant-api03-Zq9xK7vB2mN4pL6tR8wY'), { code });
  report.error('upstream_unreachable', 'r1', {}, failed('ECONNREFUSED'));
  report.error('upstream_unreachable', 'r2', {}, failed('sk-ant-api03-Zq9xK7vB2mN4pL6tR8wY'));
  expect(lines).toMatchObject([{ code: 'ECONNREFUSED' }, { code: '[redacted]' }]);
  expect(JSON.stringify(lines)).not.toContain('Zq9xK7vB');
});
