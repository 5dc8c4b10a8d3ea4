/** The package's version, for what leaves the process: it must say who wrote it. A test holds it to package.json. */
export const VERSION = '0.1.0';
