import type { Conflict } from '../core/message.ts'
import { unreachable } from '../core/unreachable.ts'

/**
 * A plain insert has no such clause: a speculative insertion costs an extra WAL record per row. A replaced timer becomes a
 * new message in the old one's place; its seq lies below every claimer's cursor by now, so it must be in the due lane. In an ordered queue
 * that one may have waited for its key, or behind one that died: one without a key must inherit neither (it is `isOrdered` nevertheless).
 */
export function onConflict(conflict: Conflict, isOrdered = false): string {
  const arbiter = `
  on conflict (queue, timer_id) where timer_id is not null and failed_at is null`
  switch (conflict) {
    case 'none':
      return ''
    case 'keep':
      return `${arbiter} do nothing`
    case 'replace':
      return `${arbiter} do update
     set id = excluded.id, key = excluded.key,${isOrdered ? ' later_key = excluded.later_key, after_dead = null,' : ''} body = excluded.body, headers = excluded.headers,
         due_at = coalesce(excluded.due_at, statement_timestamp()), generation = excluded.generation,
         created_at = now(), attempts = 0, deliveries = 0, first_attempt_at = null, last_attempt_at = null, last_error = null,
         failure_history = null
   where m.lease_token is null`
    default:
      return unreachable(conflict)
  }
}
