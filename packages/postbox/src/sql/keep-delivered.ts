import type { Names } from './names.ts'

/** Columns of a delivered message that both tables have. */
const kept = [
  'id',
  'queue',
  'key',
  'body',
  'headers',
  'attempts',
  'deliveries',
  'created_at',
  'generation',
  'failure_history',
]
const shared = kept.join(', ')

/** What a delete of the row `m` returns for `keepDelivered`; a claimed timer keeps its name elsewhere. */
export const deliveredColumns = `m.seq, ${kept.map((column) => `m.${column}`).join(', ')}, coalesce(m.timer_id, m.fired_timer_id) as timer_id`

/**
 * Moves what the delete `gone` returned to the delivered messages, in the same statement: a message is in exactly one of the tables,
 * whatever dies. By the statement's time and not its transaction's, which may be that of a long handler.
 */
export function keepDelivered(names: Names, gone: string): string {
  return `insert into ${names.delivered} (original_seq, timer_id, ${shared}, delivered_at)
  select seq, timer_id, ${shared}, statement_timestamp()
    from ${gone}
   order by seq`
}
