/** Where the headers of an answer are. */
export const HEADERS = [
  ['headers'],
  ['responseHeaders'],
  ['response', 'headers'],
  ['$response', 'headers'],
  ['metadata'],
] as const;
/** Where its status is, the likeliest first. */
export const STATUSES = [
  ['status'],
  ['statusCode'],
  ['status_code'],
  ['httpStatus'],
  ['http_status'],
  ['httpStatusCode'],
  ['httpCode'],
  ['response', 'status'],
  ['response', 'statusCode'],
  ['res', 'status'],
  ['res', 'statusCode'],
  ['$metadata', 'httpStatusCode'],
  ['output', 'statusCode'],
  ['meta', 'statusCode'],
  ['data', 'httpStatus'],
  ['extensions', 'http', 'status'],
  ['body', 'statusCode'],
  ['error', 'status'],
  ['error', 'statusCode'],
  ['code'],
  ['error', 'code'],
] as const;
/** Where a code is, the likeliest first. */
export const CODES = [
  ['code'],
  ['error', 'code'],
  ['errorCode'],
  ['error_code'],
  ['codeName'],
  ['type'],
  ['error', 'type'],
  ['error', 'error', 'type'],
  ['error', 'error', 'code'],
  ['error', 'status'],
  ['lc_error_code'],
  ['Code'],
  ['extensions', 'code'],
  ['data', 'code'],
  ['data', 'error', 'code'],
  ['data', 'error', 'type'],
  ['response', 'data', 'code'],
  ['response', 'data', 'error', 'code'],
  ['response', 'data', 'error', 'type'],
  ['response', 'data', 'error'],
  ['body', 'error', 'code'],
  ['body', 'error', 'type'],
] as const;

/** Where an error's name is, and its class's. */
export const NAMES = [['name'], ['constructor', 'name']] as const;
