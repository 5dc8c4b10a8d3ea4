import type { Row } from './corpus.ts';
import { error, named } from './thrown.ts';

/** A function's bare words, traps among them: a word of one kind in a sentence of another. */
export const TOOL_CORPUS: readonly Row[] = [
  ['timeout', 'transient', new Error('Connection timeout after 30s')], ['execution_error', 'permanent', new Error('Invalid airport code: XYZ')], ['execution_error', 'transient', new Error('Rate limit exceeded (429)')],
  ['execution_error', 'permanent', new Error('Authentication failed (401)')], ['execution_error', 'transient', new Error('Service unavailable (503)')],
  ['execution_error', 'permanent', 'User not found'], ['execution_error', 'permanent', 'Item already exists'], ['execution_error', 'permanent', 'Insufficient funds'], ['execution_error', 'permanent', 'Card declined'],
  ['execution_error', 'permanent', 'Email is required'], ['execution_error', 'permanent', 'date must be in the future'], ['execution_error', 'permanent', 'Expected number, received string'], ['execution_error', 'permanent', 'Missing required field: city'],
  ['execution_error', 'permanent', 'Permission denied'], ['execution_error', 'permanent', 'You do not have permission to view this document'], ['execution_error', 'permanent', 'Not authorized'], ['execution_error', 'permanent', 'Login required'],
  ['execution_error', 'permanent', 'Token expired'], ['execution_error', 'permanent', 'jwt malformed'], ['execution_error', 'permanent', 'Session expired, please log in again'], ['execution_error', 'permanent', 'API key missing'], ['execution_error', 'permanent', 'Bad credentials'],
  ['execution_error', 'permanent', 'Unsupported currency: XAU'], ['execution_error', 'permanent', 'Operation not supported on this platform'], ['execution_error', 'permanent', 'Method not implemented'], ['execution_error', 'permanent', 'Feature disabled for this account'],
  ['execution_error', 'permanent', 'File too large'], ['execution_error', 'permanent', 'Payload too large'], ['execution_error', 'permanent', 'Value out of range'], ['execution_error', 'permanent', 'Cannot divide by zero; invalid input'],
  ['execution_error', 'permanent', 'Monthly quota exceeded'], ['execution_error', 'permanent', 'Your subscription has expired'], ['execution_error', 'permanent', 'Account suspended'], ['execution_error', 'permanent', 'Out of credits'],
  ['execution_error', 'permanent', 'Response does not match the schema'], ['execution_error', 'permanent', 'Deprecated API version'],
  ['execution_error', 'transient', 'Too many requests, slow down'], ['execution_error', 'transient', 'Throttled'], ['execution_error', 'transient', 'The service is temporarily unavailable'], ['execution_error', 'transient', 'Please try again later'],
  ['execution_error', 'transient', 'Internal Server Error'], ['execution_error', 'transient', 'Bad gateway'], ['execution_error', 'transient', 'Server is busy'], ['execution_error', 'transient', 'Database is locked'], ['execution_error', 'transient', 'Deadlock detected'],
  ['execution_error', 'transient', 'Something went wrong'], ['execution_error', 'transient', 'Under maintenance'], ['execution_error', 'transient', 'Out of memory'], ['execution_error', 'transient', 'worker crashed'],
  ['timeout', 'transient', 'Operation timed out after 5000 ms'], ['timeout', 'transient', 'Timed out waiting for lock'], ['timeout', 'transient', 'TimeoutError: Navigation timeout of 30000 ms exceeded'], ['timeout', 'transient', 'deadline exceeded'], ['timeout', 'transient', '504 Gateway Time-out'],
  ['transport_error', 'transient', 'read ECONNRESET'], ['transport_error', 'transient', 'getaddrinfo ENOTFOUND api.example.com'], ['transport_error', 'transient', 'Connection refused'], ['transport_error', 'transient', 'Connection reset by peer'],
  ['transport_error', 'transient', 'net::ERR_CONNECTION_REFUSED at https://x'], ['transport_error', 'transient', 'net::ERR_NAME_NOT_RESOLVED at https://x'], ['transport_error', 'transient', 'network is unreachable'], ['transport_error', 'transient', 'No route to host'],
  ['transport_error', 'transient', 'WebSocket closed unexpectedly'], ['transport_error', 'transient', 'Could not connect to server'], ['transport_error', 'transient', 'upstream connect error or disconnect/reset before headers'],
  ['transport_error', 'permanent', 'certificate has expired'], ['transport_error', 'permanent', 'self-signed certificate in certificate chain'],
  ['canceled', 'permanent', named('AbortError', 'The user aborted a request.')], ['canceled', 'permanent', named('CanceledError', 'canceled', { code: 'ERR_CANCELED' })],
  // Statuses in texts
  ['execution_error', 'permanent', 'HTTP 404'], ['execution_error', 'permanent', 'HTTP error! status: 403'], ['execution_error', 'transient', 'HTTP error! status: 500'], ['execution_error', 'permanent', 'Request failed with status code 400'], ['execution_error', 'transient', 'upstream returned 502'],
  ['execution_error', 'transient', 'Error 503: Service Unavailable'], ['execution_error', 'permanent', 'Server responded with status 409 (Conflict)'], ['execution_error', 'transient', 'Error: Request failed: 429 Too Many Requests'], ['execution_error', 'permanent', 'GET https://x 401 (Unauthorized)'],
  ['timeout', 'transient', 'HTTP 408 Request Timeout'], ['execution_error', 'permanent', 'Got HTTP status 422 from the booking service'], ['execution_error', 'transient', 'Unexpected server response: 503'],
  // Traps
  ['execution_error', 'permanent', 'Invalid timeout value: -5'], ['execution_error', 'permanent', 'timeout must be a positive integer'], ['execution_error', 'permanent', "Unknown option 'timeout'"], ['execution_error', 'permanent', 'Missing required parameter: timeoutMs'],
  ['execution_error', 'permanent', 'Network "prod-vpc" not found'], ['execution_error', 'permanent', 'DNS record not found'], ['execution_error', 'permanent', 'Rate limit policy "gold" does not exist'], ['execution_error', 'permanent', 'No overload matches this call'],
  ['execution_error', 'permanent', 'Invalid airport code: 503'], ['execution_error', 'permanent', 'Unsupported country code 429'], ['execution_error', 'permanent', 'Flight 504 not found'], ['execution_error', 'permanent', 'Room 500 does not exist'],
  ['execution_error', 'permanent', 'Invalid value "try again" for field action'], ['execution_error', 'permanent', 'Validation failed: rate_limit must be between 1 and 100'], ['execution_error', 'permanent', "Property 'network' is missing in type"],
  ['execution_error', 'transient', 'hassle with titles'], ['execution_error', 'transient', 'The dnsmasq box said something'], ['execution_error', 'transient', 'boom'], ['execution_error', 'transient', 7], ['execution_error', 'transient', undefined],
  ['execution_error', 'transient', new TypeError("Cannot read properties of undefined (reading 'price')")], ['execution_error', 'transient', new SyntaxError('Unexpected end of JSON input')],
  // Structure beats text, and a cause says what its wrapper does not
  ['execution_error', 'permanent', error('Rate limit exceeded', { status: 400 })], ['transport_error', 'transient', error('Invalid input', { code: 'ECONNRESET' })], ['execution_error', 'transient', error('not found', { status: 503 })],
  ['execution_error', 'transient', new Error('Search failed', { cause: error('x', { status: 429 }) })], ['execution_error', 'permanent', new Error('Search failed', { cause: new Error('Invalid API key') })], ['timeout', 'transient', new Error('Search failed', { cause: new DOMException('late', 'TimeoutError') })],
  ['execution_error', 'permanent', named('ZodError', '[{"code":"invalid_type","expected":"string","path":["city"],"message":"Required"}]', { issues: [] })], ['execution_error', 'permanent', named('ValidationError', '"city" is not allowed to be empty', { isJoi: true, details: [] })],
  ['execution_error', 'permanent', error('quota', { code: 'insufficient_quota', status: 429 })],
];
