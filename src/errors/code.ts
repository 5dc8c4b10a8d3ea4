import { NODE_CODES } from './node.ts';
import { sensesOf, type NamesBySense, type Sense } from './text/sense.ts';

/** Codes and types that services and their clients put in a field. Exact: a code is a name, not a text. */
const CODES_OF: NamesBySense = {
  unauthorized: [
    // Anthropic, OpenAI, Google
    'authentication_error',
    'permission_error',
    'permission_denied_error',
    'invalid_api_key',
    'invalid_authentication',
    'token_expired',
    'account_deactivated',
    'unsupported_country_region_territory',
    'request_forbidden',
    'API_KEY_INVALID',
    'UNAUTHENTICATED',
    'PERMISSION_DENIED',
    'MODEL_AUTHENTICATION',
    'unauthorized',
    'forbidden',
    'access_denied',
    'invalid_token',
    'invalid_client',
    'invalid_grant',
    'insufficient_scope',
    // AWS
    'AccessDenied',
    'AccessDeniedException',
    'ExpiredToken',
    'ExpiredTokenException',
    'UnrecognizedClientException',
    'InvalidClientTokenId',
    'InvalidAccessKeyId',
    'SignatureDoesNotMatch',
    'InvalidSignatureException',
    'MissingAuthenticationToken',
    'NotAuthorizedException',
    'UnauthorizedException',
    'AuthFailure',
    'CredentialsProviderError',
    'CredentialsError',
    // Databases
    'ER_ACCESS_DENIED_ERROR',
    'ER_DBACCESS_DENIED_ERROR',
    'ER_TABLEACCESS_DENIED_ERROR',
    'P1000',
    'P1010',
    'NOAUTH',
    'WRONGPASS',
    'NOPERM',
  ],
  quota_exhausted: [
    'insufficient_quota',
    'billing_hard_limit_reached',
    'billing_not_active',
    'billing_error',
    'quota_exceeded',
    'exceeded_current_quota_error',
    'insufficient_balance',
    'insufficient_credits',
    'credit_balance_too_low',
    'access_terminated',
    'card_declined',
    'insufficient_funds',
    'ServiceQuotaExceededException',
    'QuotaExceeded',
    'PaymentRequired',
    'payment_required',
  ],
  rate_limited: [
    'rate_limit_error',
    'rate_limit_exceeded',
    'rate_limit',
    'rate_limited',
    'RATE_LIMITED',
    'ratelimited',
    'too_many_requests',
    'overloaded_error',
    'engine_overloaded',
    'slow_down',
    'RESOURCE_EXHAUSTED',
    'MODEL_RATE_LIMIT',
    'RATE_LIMIT_EXCEEDED',
    'TooManyRequests',
    'lock_timeout',
    'Throttling',
    'ThrottlingException',
    'ThrottledException',
    'RequestThrottled',
    'RequestThrottledException',
    'TooManyRequestsException',
    'RequestLimitExceeded',
    'BandwidthLimitExceeded',
    'PriorRequestNotComplete',
    'SlowDown',
    'ProvisionedThroughputExceededException',
    'TransactionInProgressException',
    'EC2ThrottledException',
    'ModelNotReadyException',
  ],
  timed_out: [
    'timeout_error',
    'DEADLINE_EXCEEDED',
    'RequestTimeout',
    'RequestTimeoutException',
    'ModelTimeoutException',
    'request-timeout',
    'body-timeout',
    'PROTOCOL_SEQUENCE_TIMEOUT',
    'P1002',
    'P1008',
    'P2024',
  ],
  unreachable: [
    'P1001',
    'ERR_CONNECTION_REFUSED',
    'ERR_NAME_NOT_RESOLVED',
    'ERR_INTERNET_DISCONNECTED',
    'ERR_ADDRESS_UNREACHABLE',
  ],
  lost: [
    'UNAVAILABLE',
    'ERR_NETWORK',
    'ERR_READING_RESPONSE_STREAM',
    'ERR_CONNECTION_RESET',
    'ERR_CONNECTION_CLOSED',
    'PROTOCOL_CONNECTION_LOST',
    'ER_SERVER_SHUTDOWN',
    'P1017',
    'NR_CLOSED',
    'StripeConnectionError',
    'api_connection_error',
  ],
  unavailable: [
    'api_error',
    'server_error',
    'internal_error',
    'internal_server_error',
    'service_unavailable',
    'INTERNAL',
    'InternalServerException',
    'InternalServerError',
    'InternalFailure',
    'InternalError',
    'ServiceUnavailable',
    'ServiceUnavailableException',
    'ModelStreamErrorException',
    'ER_LOCK_DEADLOCK',
    'ER_LOCK_WAIT_TIMEOUT',
    'ER_CON_COUNT_ERROR',
    'ER_TOO_MANY_USER_CONNECTIONS',
    'SQLITE_BUSY',
    'SQLITE_LOCKED',
    'P2034',
    'LOADING',
    'BUSY',
    'CLUSTERDOWN',
    'MASTERDOWN',
    'TRYAGAIN',
    'READONLY',
    'NOREPLICAS',
    'MISCONF',
  ],
  rejected: [
    'invalid_request_error',
    'invalid_request',
    'not_found_error',
    'model_not_found',
    'unsupported_model',
    'unsupported_operation',
    'unsupported_parameter',
    'unsupported_value',
    'invalid_prompt',
    'context_length_exceeded',
    'string_above_max_length',
    'content_filter',
    'content_policy_violation',
    'request_too_large',
    'conflict_error',
    'DeploymentNotFound',
    'MODEL_NOT_FOUND',
    'INVALID_ARGUMENT',
    'NOT_FOUND',
    'ALREADY_EXISTS',
    'FAILED_PRECONDITION',
    'OUT_OF_RANGE',
    'UNIMPLEMENTED',
    'ValidationException',
    'ValidationError',
    'ResourceNotFoundException',
    'ResourceNotFound',
    'NoSuchKey',
    'NoSuchBucket',
    'NotFound',
    'InvalidParameterException',
    'InvalidParameterValue',
    'MissingParameter',
    'ConditionalCheckFailedException',
    'EntityTooLarge',
    'BucketAlreadyExists',
    'resource_missing',
    'parameter_missing',
    'parameter_invalid_empty',
    'idempotency_key_in_use',
    'missing_field',
    'ERR_BAD_OPTION',
    'ERR_BAD_OPTION_VALUE',
    'ERR_FR_TOO_MANY_REDIRECTS',
    'ERR_TOO_MANY_REDIRECTS',
    'ERR_UNSUPPORTED_PROTOCOL',
    'ERR_NOT_SUPPORT',
    'unsupported-redirect',
    'max-redirect',
    'max-size',
    'SQLITE_CONSTRAINT',
    'SQLITE_MISMATCH',
    'SQLITE_READONLY',
    'SQLITE_ERROR',
    'ER_DUP_ENTRY',
    'ER_PARSE_ERROR',
    'ER_NO_SUCH_TABLE',
    'ER_BAD_FIELD_ERROR',
    'ER_BAD_DB_ERROR',
    'ER_BAD_NULL_ERROR',
    'ER_DATA_TOO_LONG',
    'ER_ROW_IS_REFERENCED_2',
    'ER_NO_REFERENCED_ROW_2',
    '11000',
    'P1003',
    'P2002',
    'P2003',
    'P2025',
    'E11000',
    'WRONGTYPE',
    'ERR_BODY_PARSE_FAILURE',
    '-32600',
    '-32601',
    '-32602',
    '-32700',
  ],
  canceled: ['ERR_CANCELED', 'ERR_ABORTED', 'CANCELLED', 'aborted', 'RequestAbortedException'],
};

const CODES: ReadonlyMap<string, Sense> = new Map([NODE_CODES, CODES_OF].flatMap(sensesOf));

/** Status codes of gRPC, where a number is one: https://grpc.io/docs/guides/status-codes. */
const RPC: ReadonlyArray<Sense | undefined> = [
  undefined,
  'canceled',
  undefined,
  'rejected',
  'timed_out',
  'rejected',
  'rejected',
  'unauthorized',
  'rate_limited',
  'rejected',
  'unavailable',
  'rejected',
  'rejected',
  'unavailable',
  'lost',
  undefined,
  'unauthorized',
];

/** SQLSTATE: five characters, the first two of which are a class. Longer beginnings are exceptions to their class. */
const SQL_STATES: ReadonlyMap<string, Sense> = new Map<string, Sense>([
  ['57014', 'timed_out'],
  ['57P01', 'lost'],
  ['57P02', 'lost'],
  ['42501', 'unauthorized'],
  ['08001', 'unreachable'],
  ['08004', 'unreachable'],
  ['08', 'lost'],
  ['28', 'unauthorized'],
  ...['40', '53', '55', '57', '58', 'XX'].map((state) => [state, 'unavailable'] as const),
  ...['0A', '21', '22', '23', '25', '26', '2F', '3D', '3F', '42', '44', 'P0'].map(
    (state) => [state, 'rejected'] as const,
  ),
]);

/** What a code means, where the tables hold it. */
export function senseOfCode(code: string): Sense | undefined {
  const known = CODES.get(code);
  if (known !== undefined) return known;
  if (/^HPE_[A-Z_]{1,40}$/.test(code)) return 'lost';
  // PostgREST's groups: connection, request, schema, sign-in.
  const group = /^PGRST([0-3])\d\d$/.exec(code)?.[1];
  if (group !== undefined) return (['unreachable', 'rejected', 'rejected', 'unauthorized'] as const)[Number(group)];
  if (code.startsWith('SQLITE_')) return CODES.get(code.split('_', 2).join('_'));
  return /^[\dA-Z]{5}$/.test(code) ? (SQL_STATES.get(code) ?? SQL_STATES.get(code.slice(0, 2))) : undefined;
}

/**
 * Codes by which a service says that it failed, without saying whether it had done what it was asked. SQLSTATE:
 * completion unknown, system and internal errors.
 */
const OWN_FAULTS =
  /^(?:internal|server|api)_?(?:server)?_?(?:error|exception|failure|fault)?$|^ModelStreamErrorException$|^40003$|^(?:58|XX)[\dA-Z]{3}$/i;
const RPC_INTERNAL = 13;

/** Whether a code, or a number of gRPC, is as much as a status of 500. */
export function isOwnFault(code: string | number | undefined): boolean {
  return typeof code === 'number' ? code === RPC_INTERNAL : code !== undefined && OWN_FAULTS.test(code);
}

/** A code at the head of a sentence: `ENOENT: no such file`, `NOAUTH Authentication required`. */
const AT_THE_HEAD = /^(?:Error: )?-?([A-Z][A-Z\d_]{3,40})(?=[: ])/;

/**
 * What the code says that a text begins with, if it is one that is known: the words behind it are its own explanation.
 */
export function senseOfCodeInText(text: string): Sense | undefined {
  const code = AT_THE_HEAD.exec(text)?.[1];
  return code === undefined ? undefined : CODES.get(code);
}

/** What a gRPC status code means. */
export function senseOfRpc(code: number): Sense | undefined {
  return RPC[code];
}
