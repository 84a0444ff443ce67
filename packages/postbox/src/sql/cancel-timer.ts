import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

/**
 * Deletes a waiting timer in the caller's transaction, only while nobody holds its lease: a running handler is never
 * undercut. A claim that is under way is waited for and then seen. Returns the seq deleted, if it was.
 */
export function cancelTimer(
  names: Names,
  queue: string,
  timerId: string,
): Statement<{ readonly seq: string }> {
  return {
    name: 'cancel_timer',
    text: `
delete from ${names.messages}
 where queue = $1::text
   and timer_id = $2::text
   and lease_token is null
   and failed_at is null
returning seq::text as seq`,
    values: [queue, timerId],
  }
}
