import { reduce, type Observable } from 'rxjs';

/**
 * The last value of a stream, or `undefined` of one without any: `last(null, undefined)`, which is two operators, in
 * one. A call that waits holds each of its operators.
 *
 * ```
 * source              -a--b--|
 * source, lastValue   -------(b|)
 * ```
 */
export const lastValue = <T>(source: Observable<T>): Observable<T | undefined> =>
  source.pipe(reduce<T, T | undefined>((_, value) => value, undefined));
