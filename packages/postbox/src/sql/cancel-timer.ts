import type { Names } from './names.ts'
import type { Statement } from './statement.ts'
import { whereMarked } from './where-marked.ts'

export interface WaitingTimer {
  readonly queue: string
  readonly timerId: string
  readonly mark: string | null
}

/**
 * Deletes a waiting timer in the caller's transaction, only while nobody holds its lease: a running handler is never
 * undercut. A claim that is under way is waited for and then seen: it takes the name off the row (a process of an earlier version does
 * not, so the lease is asked for, too). Returns the seq deleted, if it was.
 */
export function cancelTimer(
  names: Names,
  timer: WaitingTimer,
): Statement<{ readonly seq: string }, WaitingTimer> {
  return {
    name: 'cancel_timer',
    text: `
delete from ${names.messages}
 where queue = $1::text
   and timer_id = $2::text
   and lease_token is null
   and failed_at is null
   and ${whereMarked('$3')}
returning seq::text as seq`,
    values: [timer.queue, timer.timerId, timer.mark],
    input: timer,
  }
}
