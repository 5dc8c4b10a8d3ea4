import type { Observable } from 'rxjs';

/** What `execute` may give: its last value is the call's output. */
export type ToolOutput<O> = O | PromiseLike<O> | Observable<O> | AsyncIterable<O>;
