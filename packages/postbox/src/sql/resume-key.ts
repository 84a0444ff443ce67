import { columnsOf } from './dead-letters.ts'
import { isNameFree, lifeAgain } from './landing.ts'
import type { Names } from './names.ts'
import { type KeyOfQueue, parkedHead } from './parked-keys.ts'
import { historyAfter } from './replay-dead-letter.ts'
import type { Statement } from './statement.ts'
import { type Wake, wakeQueuesClause } from './wake.ts'

export interface KeyResume extends KeyOfQueue {
  readonly by: string
  /** Cycles that are kept; older ones are dropped, and counted. */
  readonly historyLimit: number
  readonly wake: Wake
}

/**
 * Lets the message that holds a key be tried again, in its place, as a replay of it does. Who comes second waits for the first one, and finds that it is
 * parked no more: for read committed transactions only. Its timer takes its name again, if that is free; somebody who is arming one of that
 * name is waited for, and if he commits that ends in 23505, after which the same statement finds it. No row: nothing is parked there.
 */
export function resumeKey(names: Names, resume: KeyResume): Statement<{ readonly id: string }, KeyResume> {
  const { queue, key, by, historyLimit, wake } = resume
  const terms = {
    by: '$3::text',
    generation: 'null::bigint',
    historyLimit: '$4::int',
    operation: 'null::text',
  }
  return {
    name: 'resume_key',
    text: `
with ${parkedHead(names, { queue: '$1::text', key: '$2::text' })}, taken as materialized (
  select ${columnsOf.quarantined}
    from ${names.messages}
   where seq = (select seq from head)
     and parked_at is not null
     for update
), resumed as materialized (
  select taken.*,
         generation as generation_after,
         ${historyAfter(terms)} as history_after,
         ${isNameFree(names)} as is_named,
         statement_timestamp() as due
    from taken
), freed as (
  update ${names.messages} as m
     set ${lifeAgain}
    from resumed as r
   where m.seq = r.seq
  returning m.id, m.queue, m.due_at
), inserted as (
  select queue, due_at from freed
)${wakeQueuesClause(names, wake)}
select id::text as id, (select count(*) from woken)::int as woken
  from freed`,
    values: [queue, key, by, historyLimit],
    input: resume,
  }
}
