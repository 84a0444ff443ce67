import type { Names } from './names.ts'

/** What a statement that puts messages back is made of. */
export interface PutBack<Entry> {
  readonly batch: readonly Entry[]
  /** Timers take their names back. */
  readonly takeNames: boolean
}

/** The parts of a statement that puts messages back (rows `m`), by which they take the names of their timers back. */
export interface TakingNames {
  /** A common table expression, to stand before the others. */
  readonly patience: string
  /** More assignments. */
  readonly set: string
  /** One more table, to stand before the others: whoever reads it has become impatient before the first row is written. */
  readonly from: string
}

const unnamed: TakingNames = { patience: '', set: '', from: '' }

/**
 * A claimed timer has given its name up. When it goes back to waiting it takes the name again, unless somebody has armed a timer of
 * that name by then: it goes on without, and keeps the name for its next try. Somebody who is about to arm one, and has not committed, is waited
 * for no longer than a lock may take here: the statement fails (55P03; 23505 if he commits), and the messages do without
 * (`isWanted` false). Nothing else could: settlements of all queues would wait behind his transaction.
 *
 * The look-up is a subquery that cannot be hashed (an `exists` can): that would read every timer there is.
 */
export function takingNames(names: Names, isWanted: boolean): TakingNames {
  if (!isWanted) return unnamed
  return {
    patience: `${patience}, `,
    set: `,
         (timer_id, fired_timer_id) = (
           select case when t.seq is null then m.fired_timer_id end,
                  case when t.seq is not null then m.fired_timer_id end
             from (select 1) as once
             left join ${names.messages} as t
               on t.queue = m.queue
              and t.timer_id = m.fired_timer_id
              and t.failed_at is null)`,
    from: 'patience, ',
  }
}

/** No lock is waited for longer than this, until the end of the transaction. Only where it is read. */
export const patience = `patience as materialized (
  select set_config('lock_timeout', '100ms', true)
)`
