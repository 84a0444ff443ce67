// How the next message of a key comes to say that the one before it died (docs/decisions/0037): by the very statement that buries, or who dies in between is never told of.
import { ofKey } from './first-rows.ts'
import type { Names } from './names.ts'

/** Whether one of them goes by the order of keys. If none does, nothing of this is in the text, and nothing is paid for it. */
export function isAnyNoted(burials: readonly { readonly isNoted?: boolean }[]): boolean {
  return burials.some(({ isNoted }) => isNoted)
}

/** What `noteDeath` reads of a row of `gone`, made of the message `m` and the burial `s`. */
export const notedColumns = 'm.id, m.queue, m.key, m.seq as original_seq, s."isNoted" as is_noted'

/** The next message of the key of a row `g` that was at `seq`, as far as it is seen. By key from both sides: by `=` the rows of all other keys are walked through where none waits (300,000 of them: 128 ms). */
export function nextOfKey({ messages }: Names, seq: string, columns = 'm.seq'): string {
  return `select ${columns}
           from ${messages} as m
          where ${ofKey('m.', { queue: 'g.queue', key: 'g.key', side: '>', seq })}
          order by m.queue, m.key, m.seq
          limit 1`
}

/**
 * Common table expressions behind `gone`, those that are buried: the next of each key that waits by now says who died. None that comes later does.
 * What has a timer's name may be cancelled or replaced by a transaction of anybody, and no burial may wait for that, nor deadlock with it: such a row is stepped over, and
 * the one behind it is told. What never had one is locked by our own statements at most (a lease that is renewed), and they are soon done.
 * Given to the update as rows that were read, so that what was written meanwhile can be looked at again without asking `gone` again.
 */
export function noteDeath(names: Names): string {
  return `, next as materialized (
  select g.id,
         case when n.is_named
              then (${nextOfKey(names, 'g.original_seq')}
            for update of m skip locked)
              else n.seq
         end as seq
    from gone as g
   cross join lateral (
         ${nextOfKey(names, 'g.original_seq', 'm.seq, coalesce(m.timer_id, m.fired_timer_id) is not null as is_named')}) as n
   where g.is_noted
), noted as (
  update ${names.messages} as n
     set after_dead = next.id
    from next
   where n.seq = any(array(select seq from next))
     and n.seq = next.seq
)`
}
