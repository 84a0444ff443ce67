import { literal, type Names } from './names.ts'
import type { Statement } from './statement.ts'
import type { Wake } from './wake.ts'

export interface PauseInput {
  readonly queue: string
  readonly by: string
  readonly wake: Wake
}

/** What is sent on the channel in a queue's place: look at what is paused. No queue has this name, and builds that do not know it ignore it. */
export const pausesChanged = ''

/**
 * Pauses a queue that is not. No row: it is paused already, and whoever did that stays recorded; its row is then locked until the transaction
 * ends, so that who that was can be read. Touches no other column of the row, which may say in which order the queue is delivered.
 */
export function pauseQueue(
  names: Names,
  input: PauseInput,
): Statement<{ readonly queue: string }, PauseInput> {
  return {
    name: 'pause_queue',
    text: `
with changed as (
  insert into ${names.queues} as q (name, paused_at, paused_by)
  values ($1::text, statement_timestamp(), $2::text)
  on conflict (name) do update
     set paused_at = excluded.paused_at,
         paused_by = excluded.paused_by
   where q.paused_at is null
  returning q.name
)${told(names, input.wake)}`,
    values: [input.queue, input.by],
    input,
  }
}

/** Resumes a queue that is paused. No row: it is not. */
export function resumeQueue(
  names: Names,
  input: PauseInput,
): Statement<{ readonly queue: string }, PauseInput> {
  return {
    name: 'resume_queue',
    text: `
with changed as (
  update ${names.queues} as q
     set paused_at = null,
         paused_by = null,
         resumed_at = statement_timestamp(),
         resumed_by = $2::text
   where q.name = $1::text
     and q.paused_at is not null
  returning q.name
)${told(names, input.wake)}`,
    values: [input.queue, input.by],
    input,
  }
}

/** Everybody who listens is told, asleep or not: a process may hold what it has not started. A half-full notification queue silences us, as it does publishers. */
function told(names: Names, wake: Wake): string {
  const word = `pg_notify(${literal(names.channel)}, ${literal(pausesChanged)})`
  const isHeard = wake === 'poll' ? 'false' : 'pg_notification_queue_usage() < 0.5'
  return `, told as materialized (
  select ${word}
    from changed
   where ${isHeard}
)
select c.name as queue, (select count(*) from told)::int as told
  from changed as c`
}
