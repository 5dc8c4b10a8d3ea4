// Was: secrets given to commands, in SQL, forms, netrc, Redis, Python's bytes and escaped HTML were shown.
// Now: none is, and a port, a prompt or a sentence in the same place still is.
import { describe, expect, it } from 'vitest';
import { textRedactor } from '../../src/policy/redact/text.ts';

const redact = textRedactor();

/** Texts with a secret in them, the secret, and what must still be readable. */
const SECRETS: ReadonlyArray<readonly [text: string, secret: string, kept: string]> = [
  ['redis> AUTH default hunter2x\nOK', 'hunter2x', 'AUTH default '],
  ['"AUTH" "hunter2x"', 'hunter2x', '"AUTH"'],
  ['ERR AUTH default hunter2x failed', 'hunter2x', ' failed'],
  ['data; name="password"\r\n\r\nletmein\r\n--b\r\n', 'letmein', '\r\n--b'],
  ['name="api_key"\r\nContent-Type: text/plain\r\n\r\nq w e\r\n--b', 'q w e', 'Content-Type: text/plain'],
  [JSON.stringify({ body: 'name="password"\r\n\r\nletmein\r\n--b' }), 'letmein', '--b'],
  ['mariadb -h db.example -u root -phunter2x shop', 'hunter2x', ' shop'],
  ['sshpass -v -p letmein ssh ann@a.example', 'letmein', ' ssh ann@a.example'],
  ['docker login -u ann -p letmein registry.example', 'letmein', ' registry.example'],
  ['helm registry login -p letmein -u ann registry.example', 'letmein', ' -u ann'],
  ['mongosh -u ann -p letmein shop', 'letmein', ' shop'],
  ['machine a.example login ann password letmein', 'letmein', 'login ann'],
  ['machine a.example\n  login ann\n  password letmein\nmachine b', 'letmein', 'machine b'],
  ['default login ann password letmein', 'letmein', 'login ann'],
  ["CREATE USER 'ann'@'%' IDENTIFIED BY 'letmein' REQUIRE SSL", 'letmein', 'REQUIRE SSL'],
  ["IDENTIFIED WITH mysql_native_password BY 'q w e'", 'q w e', 'mysql_native_password'],
  ["alter user ann identified by 'hunter2x'", 'hunter2x', 'alter user ann'],
  ["CREATE ROLE ann LOGIN PASSWORD 'letmein' VALID", 'letmein', 'VALID'],
  ["SET PASSWORD FOR 'ann'@'%' = 'letmein'", 'letmein', "'ann'@'%'"],
  ["{'password': b'q w e', 'user': b'ann'}", 'q w e', "'user': b'ann'"],
  ["[(b'x-api-key', b'hunter2x'), (b'accept', b'text')]", 'hunter2x', "b'accept'"],
  ['{&quot;password&quot;:&quot;q w e&quot;,&quot;n&quot;:1}', 'q w e', ':1'],
  ['{&#34;token&#34;: &#34;qwe&#34;, &#34;n&#34;: 1}', 'qwe', ': 1'],
  ['{&#039;password&#039;: &#039;q w e&#039;, &#039;n&#039;: 1}', 'q w e', ': 1'],
  ['password=&#X0022;q w e&#x0022; there', 'q w e', ' there'],
  ['&amp;quot;password&amp;quot;:&amp;quot;q w e&amp;quot; there', 'q w e', 'there'],
  ['&lt;password&gt;q w e&lt;/password&gt;', 'q w e', 'password'],
  ['valkey-cli -a hunter2x ping; redis-cli -ahunter3y ping', 'hunter', ' ping'],
  ['redis-cli -ahunter2x ping', 'hunter2x', ' ping'],
  ['PGPASSWORD=letmein psql -h db', 'letmein', ' psql -h db'],
  ['ldapsearch -x -D cn=admin -w letmein -b dc=a', 'letmein', ' -b dc=a'],
  ['ipmitool -H a.example -U ann -P letmein power status', 'letmein', 'power status'],
  ['ipmitool -p 623 -P letmein power', 'letmein', '-p 623'],
  ['keytool -list -storepass letmein -alias a', 'letmein', '-alias a'],
  ['keytool -keypass letmein -alias a', 'letmein', '-alias a'],
  ['openssl rsa -passin pass:letmein -in a.pem', 'letmein', '-in a.pem'],
  ['{"pass\\u0077ord":"hun\\u200bter2x","city":"Oulu"}', 'ter2x', 'Oulu'],
];

const HARMLESS = [
  '{"auth":"basicAuth2"}',
  'AUTH token2 expired; AUTH failed: no such user; NOAUTH Authentication required; 250-AUTH PLAIN CRAM-MD5',
  'AUTH method scram-sha-256, AUTH via OAuth2 failed',
  'mysql -P 3306 -h db; mariadb -u root -p shop; mongosh --port 27017; ipmitool -p 623 power',
  'docker login -u ann --password-stdin; docker run -p 8080:80 node; docker login -u ann && mkdir -p some/folder',
  'docker login a.example; docker run -p 127.0.0.1:8080:80 node:20',
  'psql -U ann -p 5432; ssh -p 2222 ann@a.example; sshpass -f file ssh -p 2222 a.example',
  'sudo -u postgres mkdir -p some/folder; cp -p a b; unzip -p a.zip; tar -xpf a.tar; ls -a some/folder',
  'each row is identified by \'id\', each user by name; the field password "confirm" is missing',
  'the login with password failed; login and password required; the machine has no login; default login page',
  'ldapsearch -x -W -b dc=a; curl -w time https://a.example',
  'Content-Disposition: form-data; name="city"\r\n\r\nOulu\r\n--b',
  '&quot;city&quot;:&quot;Oulu&quot; &amp; &lt;b&gt; &nbsp; &copy; &toString;',
  'at f (some/file.ts:10:5) at 2024-01-01T10:00:00Z: 12 passed, 1 failed, exit code 1',
  'db.example:5432: connection refused, tried 3 times',
];

describe('R-11.4 what a command, a form or a statement is given', () => {
  it.each(SECRETS)('R-11.4 %s', (text, secret, kept) => {
    const clean = redact(text);
    expect(clean).not.toContain(secret);
    expect(clean).toContain('[redacted]');
    expect(clean).toContain(kept);
  });

  it.each(HARMLESS)('R-11.4 leaves alone: %s', (text) => {
    expect(redact(text)).toBe(text);
  });
});
