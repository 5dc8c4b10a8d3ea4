// A REST API as tools: the manifest says what there is, the layer retries what only reads.
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createSpillway } from 'spillway';
import { readRestManifest, restProvider } from 'spillway/providers/rest';

// The API, for this example on this machine. It is busy the first time.
let asked = 0;
const api = createServer((request, response) => {
  asked += 1;
  if (asked === 1) response.writeHead(503, { 'retry-after': '0' }).end();
  else if (request.url?.startsWith('/cities/Oslo/') === true)
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ data: { sky: 'clear', path: request.url } }));
  else response.writeHead(404).end();
}).listen(0, '127.0.0.1');
await once(api, 'listening');
const { port } = api.address() as AddressInfo;

const manifest = readRestManifest(`
name: weather
base_url: http://127.0.0.1:${port}
headers: { x-api-key: "\${env:WEATHER_KEY}" }
tools:
  - id: forecast
    url: /cities/{city}/forecast{?days}
    timeout_ms: 2000
    response: { at: data }
`);
// Private addresses are refused unless they are named.
const weather = restProvider(manifest, { env: { WEATHER_KEY: 'a secret' }, allow: [`127.0.0.1:${port}`] });
const spillway = createSpillway({ providers: [weather] });

const oslo = await spillway.execute({ toolName: 'weather.forecast', input: { city: 'Oslo', days: 3 } });
console.log(oslo.status, oslo.output?.content, `in ${oslo.attempts} attempts`);
const nowhere = await spillway.execute({ toolName: 'weather.forecast', input: { city: '../admin' } });
console.log(nowhere.status, nowhere.error?.code, nowhere.error?.modelText);
await spillway.close();
api.close();
