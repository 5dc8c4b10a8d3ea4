/** What has to happen before a call that was answered with this status can succeed. */
export type Remedy = 'input' | 'state' | 'credentials' | 'access' | 'payment' | 'later' | 'none';

/** A status as a model reads it. */
export interface StatusWords {
  /** What it means, as the end of a sentence. */
  readonly words: string;
  /** What would have to change first. Asked only where the failure is permanent: what is transient passes with time. */
  readonly remedy: Remedy;
}

const words = (remedy: Remedy, said: string): StatusWords => ({ words: said, remedy });

/** RFC 9110, 15.5 and 15.6, RFC 4918, 6585 and 7725, and what services use beside them: 529. */
const STATUS_WORDS: ReadonlyMap<number, StatusWords> = new Map([
  [400, words('input', 'the request is not valid')],
  [401, words('credentials', 'the credentials are missing or have expired')],
  [402, words('payment', 'it has to be paid for first')],
  [403, words('access', 'access is not allowed')],
  [404, words('input', 'what was asked for was not found')],
  [405, words('input', 'this is not possible there')],
  [406, words('input', 'no answer of the wanted form exists')],
  [407, words('credentials', 'a proxy wants credentials')],
  [408, words('later', 'the request took too long')],
  [409, words('state', 'it conflicts with the present state')],
  [410, words('input', 'what was asked for is gone for good')],
  [411, words('none', 'the request was not made as it wants it')],
  [412, words('state', 'a condition of the request does not hold')],
  [413, words('input', 'the input is too large')],
  [414, words('input', 'the address is too long')],
  [415, words('input', 'this format is not supported')],
  [416, words('input', 'the range does not exist')],
  [422, words('input', 'the input was read and not accepted')],
  [423, words('later', 'what was asked for is locked')],
  [424, words('later', 'something that it depends on failed')],
  [425, words('later', 'the request came too early')],
  [428, words('state', 'it wants a condition in the request')],
  [429, words('later', 'there were too many requests')],
  [451, words('none', 'access is not allowed for legal reasons')],
  [500, words('none', 'it failed by itself')],
  [501, words('none', 'it cannot do this')],
  [502, words('later', 'a server behind it failed')],
  [503, words('later', 'it is unavailable at the moment')],
  [504, words('later', 'a server behind it did not answer in time')],
  [507, words('none', 'it has no room left')],
  [511, words('credentials', 'the network wants a sign-in')],
  [529, words('later', 'it is overloaded at the moment')],
]);

const REFUSED: StatusWords = words('input', 'it refused the request');
const FAILED: StatusWords = words('none', 'it failed by itself');

/** The words for a status from 400 to 599; none for any other, which tells a model nothing. */
export function statusWords(status: number | undefined): StatusWords | undefined {
  if (status === undefined || !(status >= 400 && status <= 599)) return undefined;
  return STATUS_WORDS.get(status) ?? (status < 500 ? REFUSED : FAILED);
}
