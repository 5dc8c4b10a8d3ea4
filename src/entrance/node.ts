import type { ToolErrorKind } from '../contract/error-kind.ts';
import type { ToolExecutionErrorOptions } from '../contract/tool-error.ts';

export interface Meaning {
  readonly kind: ToolErrorKind;
  readonly options: ToolExecutionErrorOptions;
}

const neverConnected: Meaning = { kind: 'transport_error', options: { executed: false } };
const lostMidCall: Meaning = { kind: 'transport_error', options: { uncertain: true } };
const timedOut: Meaning = { kind: 'timeout', options: { uncertain: true } };
const permanent: Meaning = { kind: 'execution_error', options: { classification: 'permanent' } };
const badCertificate: Meaning = { kind: 'transport_error', options: { executed: false, classification: 'permanent' } };

/** Node's and undici's codes. `c-ares` has its own names for a failed look-up: docs of `node:dns`, "Error codes". */
const CODES: ReadonlyMap<string, Meaning> = new Map<string, Meaning>([
  ...['ECONNREFUSED', 'EAI_AGAIN', 'EAI_FAIL', 'EAI_NODATA', 'EAI_NONAME', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN'].map((code) => [code, neverConnected] as const),
  ...['ENOTFOUND', 'ENODATA', 'ESERVFAIL', 'EREFUSED', 'EBADRESP', 'ENONAME'].map((code) => [code, neverConnected] as const),
  ...['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'UND_ERR_SOCKET', 'UND_ERR_CLOSED', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_SOCKET_CLOSED'].map((code) => [code, lostMidCall] as const),
  ...['ETIMEDOUT', 'ESOCKETTIMEDOUT', 'ETIMEOUT', 'ERR_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'].map((code) => [code, timedOut] as const),
  ['UND_ERR_CONNECT_TIMEOUT', { kind: 'timeout', options: { executed: false } }],
  ...['ENOENT', 'EACCES', 'EPERM', 'EEXIST', 'EISDIR', 'ENOTDIR', 'ENOTEMPTY', 'EROFS', 'ELOOP', 'ENAMETOOLONG', 'ENOTSUP', 'EINVAL'].map((code) => [code, permanent] as const),
  ...['ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_VALUE', 'ERR_INVALID_URL', 'ERR_UNSUPPORTED_OPERATION', 'ERR_METHOD_NOT_IMPLEMENTED'].map((code) => [code, permanent] as const),
  ...['CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ERR_TLS_CERT_ALTNAME_INVALID'].map((code) => [code, badCertificate] as const),
  ['ABORT_ERR', { kind: 'canceled', options: { executed: true, uncertain: true } }],
]);

/** What a Node or undici error code means, if it is one. */
export function nodeMeaning(code: string | undefined): Meaning | undefined {
  return code === undefined ? undefined : CODES.get(code);
}
