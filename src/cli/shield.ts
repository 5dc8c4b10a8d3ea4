import { shieldEnvironment } from './environment.ts';

// The command imports this first: modules are run in the order of their imports.
shieldEnvironment();
