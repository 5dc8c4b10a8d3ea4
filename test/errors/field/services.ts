import { aws, axios, error, fetchFailed, grpc, mysql, named, postgres, redis, system } from '../thrown.ts';
import { because, of, type Item } from './item.ts';

const mongo = (message: string, code: number, codeName: string): Error => named('MongoServerError', message, { code, codeName });
const prisma = (code: string, message: string): Error => named('PrismaClientKnownRequestError', message, { code, clientVersion: '7.0.0', meta: {} });
const ky = (status: number): Error => named('HTTPError', `Request failed with status code ${status}: GET https://a.example/x`, { response: new Response('', { status }) });
const refused = system('ECONNREFUSED', 'connect', ' 10.0.0.1:443');

/** What databases, queues, RPC and the clients of well-known services throw. */
export const services: readonly Item[] = [
  ...of('tool', ['execution_error'], 'permanent',
    postgres('23505', 'duplicate key value violates unique constraint "users_email_key"'), postgres('23502', 'null value in column "rate" violates not-null constraint'), postgres('22P02', 'invalid input syntax for type uuid: "abc"'),
    postgres('42P01', 'relation "timeouts" does not exist'), postgres('28P01', 'password authentication failed for user "app"'), postgres('42501', 'permission denied for table secrets'),
    mysql('ER_DUP_ENTRY', 1062, "Duplicate entry '429' for key 'PRIMARY'"), mysql('ER_BAD_FIELD_ERROR', 1054, "Unknown column 'timeout' in 'field list'"), mysql('ER_ACCESS_DENIED_ERROR', 1045, "Access denied for user 'x'@'y'"),
    mongo('E11000 duplicate key error collection: a.b index: x_1 dup key: { x: 503 }', 11_000, 'DuplicateKey'), mongo('Authentication failed.', 18, 'AuthenticationFailed'), mongo('Document failed validation', 121, 'DocumentValidationFailure'),
    prisma('P2002', 'Unique constraint failed on the fields: (`email`)'), prisma('P2025', 'Record to update not found.'), named('SqliteError', 'UNIQUE constraint failed: a.b', { code: 'SQLITE_CONSTRAINT_UNIQUE' }),
    redis('WRONGTYPE Operation against a key holding the wrong kind of value'), redis('NOAUTH Authentication required.'), redis("ERR unknown command 'FOO'"),
    named('SequelizeUniqueConstraintError', 'x', { parent: error('dup', { code: '23505' }) }), named('QueryFailedError', 'x', { driverError: error('dup', { code: '23505' }) }), named('CastError', 'x', { kind: 'ObjectId' }),
    grpc(3, 'INVALID_ARGUMENT', 'page_size must be positive'), grpc(5, 'NOT_FOUND', 'book 429 not found'), grpc(9, 'FAILED_PRECONDITION', 'not empty'), grpc(16, 'UNAUTHENTICATED', 'no token'),
    aws('ConditionalCheckFailedException', 400, 'The conditional request failed'), aws('NoSuchKey', 404, 'The specified key does not exist.'), aws('AccessDenied', 403, 'Access Denied'),
    error('No such customer: cus_503', { type: 'StripeInvalidRequestError', code: 'resource_missing', statusCode: 404 }), error('An API error occurred: channel_not_found', { code: 'slack_webapi_platform_error', data: { ok: false, error: 'channel_not_found' } }),
    error('GraphQL Error (Code: 401)', { response: { status: 401, errors: [{ message: 'Unauthorized' }] } }), { errors: [{ message: 'Cannot query field "x" on type "Y".', extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }] },
    named('JWSSignatureVerificationFailed', 'signature verification failed', { code: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' }), named('JsonWebTokenError', 'jwt malformed'), because('could not load weather', error('Unauthorized', { status: 401 })),
    named('EntityNotFoundError', 'x'), named('PermissionError', 'x'), named('UnrecoverableError', 'give up'), error('x', { code: 'ERR_ASSERTION' }), error('x', { code: 'auth/user-not-found' }), error('x', { code: 'failed-precondition' }), { error: { code: 'PRECONDITION_FAILED', message: 'x' } },
    // A field that says whether to ask again says more than words do.
    error('Something went wrong', { retryable: false }), error('try again later', { isRetryable: false }), { ok: false, retryable: false, message: 'upstream failed' },
  ),
  ...of('tool', ['execution_error', 'transport_error'], 'transient',
    postgres('40001', 'could not serialize access due to concurrent update'), postgres('40P01', 'deadlock detected'), postgres('53300', 'sorry, too many clients already'), postgres('57P01', 'terminating connection due to administrator command'),
    mysql('ER_LOCK_DEADLOCK', 1213, 'Deadlock found when trying to get lock; try restarting transaction'), mongo('WriteConflict error: this operation conflicted with another operation. Please retry', 112, 'WriteConflict'), mongo('not primary', 10_107, 'NotWritablePrimary'),
    prisma('P2034', 'Transaction failed due to a write conflict or a deadlock. Please retry your transaction'), named('SqliteError', 'database is locked', { code: 'SQLITE_BUSY' }), redis('LOADING Redis is loading the dataset in memory'), redis('CLUSTERDOWN The cluster is down'),
    grpc(14, 'UNAVAILABLE', 'No connection established'), grpc(8, 'RESOURCE_EXHAUSTED', 'per-minute rate limit'), grpc(10, 'ABORTED', 'transaction too contended'),
    aws('ProvisionedThroughputExceededException', 400, 'The level of configured provisioned throughput for the table was exceeded.'), aws('SlowDown', 503, 'Please reduce your request rate.'), error('The server is busy.', { statusCode: 503, code: 'ServerBusy' }),
    error('A rate-limit has been reached', { code: 'slack_webapi_rate_limited_error', retryAfter: 30 }), error('You are being limited.', { retry_after: 1.2, global: false }), error('Throttled', { errors: [{ message: 'Throttled', extensions: { code: 'THROTTLED' } }] }),
    error('not valid any more', { retryable: true }), named('TransientError', 'flaky'), error('x', { code: 'resource-exhausted' }), error('x', { code: 'unavailable' }), { status: 429, code: 'too_many_requests', message: 'slow down' },
  ),
  ...of('tool', ['timeout'], 'transient',
    grpc(4, 'DEADLINE_EXCEEDED', 'Deadline exceeded after 1.0s'), named('TimeoutError', 'page.goto: Timeout 30000ms exceeded.'), prisma('P1008', 'Operations timed out after 5000ms'), aws('RequestTimeout', 400, 'Your socket connection to the server was not read from or written to within the timeout period.'),
    because('Tool failed', because('request failed', system('ETIMEDOUT', 'connect'))), new AggregateError([system('ETIMEDOUT', 'connect'), system('ETIMEDOUT', 'connect')]), error('x', { code: 'deadline-exceeded' }), { ok: false, error: { code: 'TIMEOUT', message: 'x' } },
  ),
  ...of('tool', ['transport_error'], 'transient',
    mysql('PROTOCOL_CONNECTION_LOST', 0, 'Connection lost: The server closed the connection.'), named('MongoNetworkError', 'connection 1 to 127.0.0.1:27017 closed'), named('MaxRetriesPerRequestError', 'Reached the max retries per request limit (which is 20).'),
    because('could not load weather', fetchFailed('ECONNRESET', 'read ECONNRESET')), error('Unable to load', { originalError: refused }), named('SequelizeConnectionRefusedError', 'x', { parent: refused }), error('invalid response from db: not found', { code: 'ECONNRESET' }),
  ),
  ...of('tool', ['canceled'], 'permanent', grpc(1, 'CANCELLED', 'Call cancelled'), named('TaskCancelledError', 'Operation cancelled')),
  ...of('http', ['execution_error'], 'permanent',
    ...[400, 401, 404, 422].flatMap((status) => [ky(status), axios('ERR_BAD_REQUEST', `Request failed with status code ${status}`, status), new Response('', { status })]), named('ResponseError', 'index_not_found_exception: no such index [timeouts]', { meta: { statusCode: 404, body: {} } }),
    named('TRPCClientError', 'x', { data: { code: 'NOT_FOUND', httpStatus: 404 } }), error('gone missing', { res: { statusCode: 404 } }), named('DiscordAPIError', 'Missing Access', { status: 403, code: 50_001 }), error('ApolloError', { networkError: error('Received status code 400', { statusCode: 400 }) }),
    error('Service unavailable in your country', { status: 451 }), error('timeout', { status: 400 }), error('try again later', { status: 403 }), error('The gateway timeout setting is wrong', { status: 400 }),
  ),
  ...of('http', ['execution_error'], 'transient',
    ...[429, 500, 503].flatMap((status) => [ky(status), axios('ERR_BAD_RESPONSE', `Request failed with status code ${status}`, status), new Response('', { status })]), named('GaxiosError', 'Backend Error', { code: 503, errors: [{ reason: 'backendError' }] }),
    error('unauthorized cache node', { status: 503 }), error('invalid upstream response', { status: 502 }), error('not found in pool', { status: 500 }), named('TRPCClientError', 'x', { data: { code: 'INTERNAL_SERVER_ERROR', httpStatus: 500 } }),
  ),
  ...of('http', ['transport_error'], 'transient', axios('ERR_BAD_RESPONSE', 'stream has been aborted'), named('ReadError', 'Content-Length mismatch: expected 100 bytes, received 4 bytes', { code: 'ERR_HTTP_CONTENT_LENGTH_MISMATCH' }), new TypeError('Failed to fetch'), new TypeError('NetworkError when attempting to fetch resource.')),
];
