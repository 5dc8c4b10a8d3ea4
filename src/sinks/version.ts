/**
 * The package's version, as `spillway_build_info` and the scope of OpenTelemetry tell it. A test holds it to
 * `package.json`.
 */
export const PACKAGE_VERSION = '0.1.0';
