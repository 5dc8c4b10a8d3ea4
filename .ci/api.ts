// `npm run api`: writes the report of the public API, which is reviewed with every change of it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readApi } from './api-report.ts';

writeFileSync(join(import.meta.dirname, '../src/api.md'), readApi().report);
