// What the statements about keys share: which message is the first of one, and how a key goes on without it.
import { ofKey } from './first-rows.ts'
import type { Names } from './names.ts'
import { nextOfKey } from './note-death.ts'

/** A key of an ordered queue. */
export interface KeyOfQueue {
  readonly queue: string
  readonly key: string
}

/**
 * A common table expression, `head`: the first message of a key, if it is parked. Expressions. Seen without a lock: who writes it asks again.
 * Both by way of a row, and from both sides, so that a key that many have, or none, is not looked for from the first row of the table on (504 rows where this is one, and all of them).
 */
export function parkedHead(names: Names, { queue, key }: KeyOfQueue): string {
  return `head as materialized (
  select seq
    from (select ${queue} as queue, ${key} as key offset 0) as w
   cross join lateral (
     select m.seq, m.parked_at
       from ${names.messages} as m
      where ${ofKey('m.', { queue: 'w.queue', key: 'w.key', side: '>', seq: '0' })}
      order by m.queue, m.key, m.seq
      limit 1) as first
   where parked_at is not null
)`
}

/**
 * Common table expressions by which a key goes on without its first message, for `gone` of one row at most (queue, key, seq, id): `noted`, the next that waits by then,
 * says who died before it, and is in the due lane, since its seq lies below every cursor; and `inserted`, for whoever is woken. Nobody has the next: the
 * first held it back. Who is cancelling or replacing it is waited for, and then the one behind it is looked at: it is only an operator who waits, and if it were stepped over and then not
 * cancelled, its key would wait for a sweep. Looked up by values, so that a table that was never analysed is not read as a whole.
 */
export function goingOn(names: Names, gone: string): string {
  return `noted as (
  update ${names.messages} as n
     set after_dead = (select id from ${gone}),
         due_at = coalesce(n.due_at, statement_timestamp())
   where n.seq = (select next.seq
                    from ${gone} as g
                   cross join lateral (
         ${nextOfKey(names, 'g.seq')}
            for update of m) as next)
  returning n.queue, n.due_at
), inserted as (
  select queue, due_at from noted
)`
}
