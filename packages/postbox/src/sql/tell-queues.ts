import { literal, type Names } from './names.ts'
import type { Statement } from './statement.ts'

/** Tells whoever listens to look at these queues. A half-full notification queue silences us: they poll. */
export function tellQueues(
  names: Names,
  queues: readonly string[],
): Statement<{ readonly told: number }, readonly string[]> {
  return {
    name: 'tell_queues',
    text: `
select count(pg_notify(${literal(names.channel)}, q.queue))::int as told
  from jsonb_array_elements_text($1::text::jsonb) as q(queue)
 where pg_notification_queue_usage() < 0.5`,
    values: [JSON.stringify(queues)],
    input: queues,
  }
}
