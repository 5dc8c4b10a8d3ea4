import { sensesOf, type Sense } from './sense.ts';

/** What the names of error classes mean, for errors that carry no code. */
const NAMES: ReadonlyMap<string, Sense> = new Map(
  sensesOf({
    canceled: [
      'AbortError',
      'APIUserAbortError',
      'CanceledError',
      'CancelledError',
      'CancelError',
      'RequestAbortedError',
    ],
    timed_out: [
      'TimeoutError',
      'APIConnectionTimeoutError',
      'HeadersTimeoutError',
      'BodyTimeoutError',
      'RequestTimeoutError',
      'ContinuationTimeoutError',
    ],
    connect_timed_out: ['ConnectTimeoutError'],
    lost: [
      'APIConnectionError',
      'NetworkError',
      'SocketError',
      'MongoNetworkError',
      'ConnectionError',
      'MaxRetriesPerRequestError',
    ],
    unauthorized: [
      'AuthenticationError',
      'PermissionDeniedError',
      'UnauthorizedError',
      'AI_LoadAPIKeyError',
      'CredentialsProviderError',
    ],
    rate_limited: ['RateLimitError'],
    unavailable: ['InternalServerError', 'AI_EmptyResponseBodyError'],
    rejected: [
      'FatalError',
      'PermanentError',
      'UnrecoverableError',
      'NonRetriableError',
      'NonRetryableError',
      'ZodError',
      '$ZodError',
      'ValidationError',
      'AjvError',
      'BadRequestError',
      'NotFoundError',
      'UnprocessableEntityError',
      'ConflictError',
      'LengthFinishReasonError',
      'ContentFilterFinishReasonError',
      'PrismaClientValidationError',
      'AI_NoSuchModelError',
      'AI_NoSuchToolError',
      'AI_InvalidToolInputError',
      'AI_InvalidPromptError',
      'AI_InvalidArgumentError',
      'AI_TypeValidationError',
      'AI_UnsupportedFunctionalityError',
      'AI_LoadSettingError',
    ],
  }),
);

/** What the name of an error's class means, if it is one that we know. */
export function senseOfName(name: string): Sense | undefined {
  return NAMES.get(name);
}
