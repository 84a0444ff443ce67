import { literal, type Names } from './names.ts'

/** With more keys than this a statement locks all keys of the queue at once: a server has room for so many locks, and no more. */
export const mostKeyLocks = 256

/**
 * The locks that make the order of seq the order of commits, within a key of an ordered queue: whoever publishes to a key holds its lock until
 * he commits, and has it before the sequence is asked. Both are SQL expressions. Not in the key space of the locks of `wake.ts`, which is that of a queue's name alone.
 */
export function keyLock(names: Names, queue: string, key: string): string {
  return `hashtextextended(${literal(`${names.channel} key `)} || ${queue} || chr(31) || ${key}, 0)`
}

/** Every publisher to a key holds it too, shared; one of very many keys has it alone. */
export function keysGate(names: Names, queue: string): string {
  return `hashtextextended(${literal(`${names.channel} keys `)} || ${queue}, 0)`
}

/** A common table expression of one row, `ordered`: whoever reads it has the lock of one key. */
export function lockKey(names: Names, queue: string, key: string): string {
  return `ordered as materialized (
  select pg_advisory_xact_lock(${keyLock(names, queue, key)}) as locks
    from (select pg_advisory_xact_lock_shared(${keysGate(names, queue)}) offset 0) as gate
)`
}

/**
 * The same for the keys of all rows of `from`, a table expression with
 * the columns queue and key, of ordered queues only. Sorted by the lock, and not by the key: two publishers that take the same locks take
 * them in one order.
 */
export function lockKeys(names: Names, from: string, isGated: boolean): string {
  const gate = isGated ? 'pg_advisory_xact_lock' : 'pg_advisory_xact_lock_shared'
  const gates = `select count(${gate}(g.lock)) as gates
    from (select distinct ${keysGate(names, 'd.queue')} as lock from ${from} as d where d.key is not null order by 1 offset 0) as g`
  if (isGated) return `ordered as materialized (\n  ${gates}\n)`
  return `gated as materialized (
  ${gates}
), ordered as materialized (
  select count(pg_advisory_xact_lock(k.lock)) as locks
    from gated,
         (select distinct ${keyLock(names, 'd.queue', 'd.key')} as lock from ${from} as d where d.key is not null order by 1 offset 0) as k
)`
}

/** The same where only the statement will know how many keys there are. */
export function lockCountedKeys(names: Names, from: string): string {
  const locks = `select distinct ${keyLock(names, 'd.queue', 'd.key')} as lock from ${from} as d where d.key is not null order by 1 offset 0`
  const gates = `select distinct ${keysGate(names, 'd.queue')} as lock from ${from} as d where d.key is not null order by 1 offset 0`
  return `locks as materialized (
  ${locks}
), gated as materialized (
  select count(pg_advisory_xact_lock(g.lock)) filter (where n.keys > ${mostKeyLocks}) as alone,
         count(pg_advisory_xact_lock_shared(g.lock)) filter (where n.keys <= ${mostKeyLocks}) as shared
    from (${gates}) as g,
         (select count(*) as keys from locks) as n
), ordered as materialized (
  select count(pg_advisory_xact_lock(k.lock)) as locks
    from gated,
         (select lock from locks order by lock offset 0) as k
   where gated.alone = 0
)`
}
