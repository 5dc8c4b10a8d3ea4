// `npm run api`: writes the report of the public API, which is reviewed with every change of it, and what quotes it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readApi } from './api-report.ts';
import { llmsText } from './llms-text.ts';

const { report, entries } = readApi();
writeFileSync(join(import.meta.dirname, '../src/api.md'), report);
writeFileSync(join(import.meta.dirname, '../src/llms.txt'), llmsText(entries));
