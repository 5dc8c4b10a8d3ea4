// Was: of a server's `args`, a secret in a line for a shell, in JSON beside `,`, in a cookie or behind `--user` was
// printed. Now: it is known.
import { describe, expect, it } from 'vitest';
import { withoutSecrets } from '../../src/policy/redact/known.ts';
import { secretsInWords } from '../../src/policy/redact/named.ts';

const SECRET = 'Zq9xK7vB2mN4pL6tR8wY';
const ODD = 'p@ss;w0rd,r!';

describe('R-11.4 secrets in the args of a server', () => {
  it.each([
    [SECRET, ['sh', '-c', `API_KEY=${SECRET} node server.js`]],
    [SECRET, ['bash', '-c', `export TOKEN='${SECRET}' && exec npx server`]],
    [SECRET, ['-c', `server --api-key ${SECRET} --port 80`]],
    [SECRET, ['--bearer', SECRET]],
    [SECRET, ['--user', `ann:${SECRET}`]],
    [SECRET, ['--cookie', `lang=en; sid=${SECRET}`]],
    [SECRET, ['--header', `Cookie: sid=${SECRET}`]],
    [SECRET, [`/password:${SECRET}`]],
    [`-${SECRET}`, ['--api-key', `-${SECRET}`]],
    [ODD, [`{"apiKey":"${ODD}"}`]],
    [ODD, ['--config', JSON.stringify({ servers: [{ auth: { secret: ODD } }] })]],
    [ODD, [`https://h.example/x?api_key=${ODD}&n=1`]],
  ])('R-11.4 %s of %j is known', (secret, args) => {
    expect(withoutSecrets(secretsInWords(args))(`argv ${secret} end`)).toBe('argv [redacted] end');
  });

  it.each([
    [['run', '-u', 'node:docker-users', 'image']],
    [['--bearer', 'disabled']],
    [['bash', '-c', 'API_KEY="$(pass show key)" node server.js']],
    [['sh', '-c', 'cd /srv && npx -y server@latest --port 3000']],
    [['--api-key', '--verbose-2024-logging']],
    [['{"where":{"token":"createdAt"},"password":true}']],
  ])('R-11.4 %j holds none', (args) => {
    const said = `said: ${args.join(' ').split(' ').join(', ')}`;
    expect(withoutSecrets(secretsInWords(args))(said)).toBe(said);
  });

  it('R-15.1 a long line takes linear time', () => {
    const started = performance.now();
    for (const bit of [`a="`, `'"`, `x=y `, '-', '{"a":[', 'key=', '://a:b@', 'cookie: a; '])
      secretsInWords(['sh', '-c', bit.repeat(20_000)]);
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});
