// Where the first rows of keys are looked for: the parts of claim-in-order.ts that name them.
import { inOrder } from './migrations/0009-order.ts'

/** So many fresh rows, so many due ones, and so many keys, one claim looks at: most of them may wait for others of their key, or for their place in it. */
export const mostRowLooks = 1_000
export const mostDueLooks = 2_000
export const mostKeyLooks = 2_000
/** So many first rows more than there is room for are offered of what is due, and of what is fresh: somebody may have locked those in front. */
export const spareLooks = 50
/** What the statement is made of. */
export interface Parts {
  readonly messages: string
  /** A condition on a row, for its prefix: it is not of a newer generation. */
  readonly isOurs: (row: string) => string
  /** Some queue asks for what comes behind settled rows, or for first rows of keys. */
  readonly settles: boolean
  readonly hops: boolean
}

export function oursOf(generation: number | null): Parts['isOurs'] {
  return (row) =>
    generation === null ? '' : ` and (${row}generation is null or ${row}generation <= $5::bigint)`
}

export function isFree(row: string): string {
  return `(${row}lease_token is null or ${row}leased_until < now())`
}

/**
 * Of what is due, a row that may have to join its key: nobody holds it. Whatever its generation, since its place is that of its time; but what is to be tried again by newer code
 * only is not looked at: it stays due for long, and enough of it would hide all others. `generation`: an expression; null: whatever there is.
 */
export function mayJoin(row: string, generation: string | null): string {
  const isOurs = `${row}later_key is not null or ${row}generation is null or ${row}generation <= ${generation}`
  return `${isFree(row)}${generation === null ? '' : ` and (${isOurs})`}`
}

/** A first row that can be had now: nobody has it, it is not parked, and its time has come. */
function canGo(row: string, isOurs: Parts['isOurs']): string {
  return `(${isFree(row)} and ${row}failed_at is null and (${row}due_at is null or ${row}due_at <= now())${isOurs(row)})`
}

/** The rows of a key in order, on one side of a seq: behind it (`>`), or before it (`<`). */
export function ofKey(row: string, { queue, key, side, seq }: Bound): string {
  return `${row}queue = ${queue}
            and (${row}key, ${row}seq) ${side} (${key}, ${seq})
            and ${row}key ${side === '>' ? '<=' : '>='} ${key}
            and ${inOrder(row)}`
}

interface Bound {
  readonly queue: string
  readonly key: string
  readonly side: '>' | '<'
  readonly seq: string
}

/** What has yet to join its key stands in the same index: no more of it is passed over than a claim may look at. What is of a newer generation is not counted: it may lie there until this process is gone. */
export function due({ messages, isOurs }: Parts): string {
  return `(select 1 as lane, d.seq, d.seen, d.due_at
        from (select m.seq, m.seen, m.due_at
                from (select r.*, r.ctid as seen
                        from ${messages} as r, generate_series(w.room, w.room) as once
                       where r.queue = w.queue
                         and r.due_at >= w.due_from
                         and r.due_at <= now()${isOurs('r.')}
                       order by r.due_at, r.seq
                       limit ${mostDueLooks}) as m
               where m.later_key is null
                 and ${isFree('m.')}
                 and ${isFirst(messages, 'm.')}
               limit w.room + ${spareLooks}) as d
       limit $3::int + ${spareLooks})`
}

/** What comes behind a settled row is the first of its key now: nothing lies before it. */
export function next({ messages, isOurs }: Parts): string {
  return `, settled as materialized (
  select w.ord, w.queue, k.key, k.after
    from wanted as w
   cross join lateral rows from (jsonb_array_elements_text(w.keys), unnest(w.afters)) as k(key, after)
   where not w.paused
), nexts as materialized (
  select k.ord, k.key, n.seq, n.seen
    from settled as k
   cross join lateral (
         select m.seq, m.ctid as seen, ${canGo('m.', isOurs)} as is_free
           from ${messages} as m
          where ${ofKey('m.', { queue: 'k.queue', key: 'k.key', side: '>', seq: 'k.after' })}
          order by m.queue, m.key, m.seq
          limit 1) as n
   where n.is_free
)`
}

export const nexted = `
   union all
  select n.ord, 2, n.seq, n.seen, null
    from nexts as n`

/** So many fresh ones are offered at most: what is behind settled ones gets half of the room, or as much of it as it needs. */
export function mostFresh({ settles }: Parts): string {
  const theirs = 'least(w.room / 2, (select count(*) from nexts as n where n.ord = w.ord))'
  return `w.room${settles ? ` - ${theirs}` : ''} + ${spareLooks}`
}

export function fresh(parts: Parts): string {
  const { messages, isOurs, settles } = parts
  return `(select 3, f.seq, f.seen, null
        from (select v.seq, v.seen
                from (select u.*
                        from sight as u
                       where u.ord = w.ord
                       order by u.seq) as v
               where (v.key is null or v.seq in (select min(u.seq) from sight as u group by u.ord, u.key))
                 and ${isFree('v.')}${isOurs('v.')}${settles ? '\n                 and (v.key is null or (v.ord, v.key) not in (select k.ord, k.key from settled as k))' : ''}
                 and ${isFirst(messages, 'v.')}
               limit ${mostFresh(parts)}) as f
       limit $3::int + ${spareLooks})`
}

/** Nothing of its key lies before it. */
function isFirst(messages: string, row: string): string {
  return `(${row}key is null
                      or (select e.seq
                            from ${messages} as e
                           where ${ofKey('e.', { queue: 'w.queue', key: `${row}key`, side: '<', seq: `${row}seq` })}
                           order by e.queue desc, e.key desc, e.seq desc
                           limit 1) is null)`
}

/** The fresh rows that one claim looks at. */
export function inSight({ messages }: Parts): string {
  return `
     select m.seq, m.ctid as seen, m.key, m.lease_token, m.leased_until, m.generation
       from ${messages} as m, generate_series(w.room, w.room) as once
      where (m.queue, m.seq) > (w.queue, w.after)
        and (m.queue, m.seq) <= (w.queue, 9223372036854775807)
        and m.due_at is null
      order by m.queue, m.seq
      limit ${mostRowLooks}`
}

export function hopping({ messages, isOurs }: Parts): string {
  const hop = (queue: string, key: string): string => `
     select m.key, m.seq, m.ctid as seen,
            ${canGo('m.', isOurs)} as is_free
       from ${messages} as m
      where m.queue = ${queue}
        and m.key > ${key}
        and ${inOrder('m.')}
      order by m.queue, m.key, m.seq
      limit 1`
  return `, hops as (
  (select w.ord, w.queue, h.key, h.seq, h.seen, h.is_free, 1 as nth
     from wanted as w
    cross join lateral (${hop('w.queue', 'w.keys_from')}) as h
    where not w.paused
    limit $2::int)
   union all
  select h.ord, h.queue, n.key, n.seq, n.seen, n.is_free, h.nth + 1
    from hops as h
   cross join lateral (${hop('h.queue', 'h.key')}) as n
   where h.nth < ${mostKeyLooks}
)`
}

export const hopped = `
   union all
  select h.ord, 4, h.seq, h.seen, null
    from hops as h
   where h.is_free`

/** Each row by one way: what comes behind a settled row may be due, and keys are hopped to whatever lies there. Fresh rows are not due, nor of a settled key. */
export function once({ settles, hops }: Parts): string {
  const isNot = (lane: number, others: string): string =>
    `(lane <> ${lane} or seq not in (select seq from firsts where ${others}))`
  const each = [settles ? isNot(2, 'lane = 1') : '', hops ? isNot(4, 'lane <> 4') : '']
  return each.filter((condition) => condition !== '').join('\n     and ') || 'true'
}
