import { literal, type Names } from './names.ts'
import type { Statement } from './statement.ts'
import { whereMarked } from './where-marked.ts'

/** One message, as one consumer sees it. */
export interface Handled {
  readonly consumer: string
  readonly id: string
  readonly mark: string | null
}

export interface HandledAnswer {
  /** busy: another transaction that is still open has it in hand. */
  readonly answer: 'marked' | 'duplicate' | 'busy'
}

/**
 * Marks a message as handled, in the caller's transaction, unless it is marked. Without the lock, which lasts as long as the transaction, the
 * insert would wait for whoever has inserted the same and has not committed, for as long as that takes, and a time-out would be an error that fails the caller's
 * transaction. With it nobody waits: who does not get the lock is told, and may ask again. Whoever held it before has
 * committed (and the conflict is found, though this statement's snapshot may be older) or has rolled back. A savepoint that is rolled back takes the
 * lock and the row with it, both. Two ids with one hash are busy at worst. No row: the mark of the transaction is gone.
 */
export function markHandled(names: Names, handled: Handled): Statement<HandledAnswer, Handled> {
  return {
    name: 'mark_handled',
    text: `
with locked as materialized (
  select pg_try_advisory_xact_lock(hashtextextended($2::text, hashtextextended(${literal(`${names.channel} handled `)} || $1::text, 0))) as got
   where ${whereMarked('$3')}
), inserted as (
  insert into ${names.handled} (consumer, id)
  select $1::text, $2::text
    from locked
   where got
  on conflict do nothing
  returning 1
)
select case
         when not got then 'busy'
         when exists (select from inserted) then 'marked'
         else 'duplicate'
       end as answer
  from locked`,
    values: [handled.consumer, handled.id, handled.mark],
    input: handled,
  }
}
