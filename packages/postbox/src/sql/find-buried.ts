import type { DeadPlace } from '../core/dead-letter-cursor.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

interface Buried {
  readonly seq: string
  readonly id: string
  /** At its last claim: a burial of somebody's who claimed it later is not ours to tell of. */
  readonly deliveries: number
}

interface Search {
  readonly messages: readonly Buried[]
  /** Only there: the other may be what is missing. */
  readonly place: DeadPlace
}

/**
 * Which messages a burial has laid down already, before its answer was lost: a look, by id, place and delivery. None comes back of those
 * that were replayed since.
 */
export function findBuried(
  names: Names,
  messages: readonly Buried[],
  place: DeadPlace,
): Statement<{ readonly seq: string }, Search> {
  const [table, seq, isDead] =
    place === 'moved'
      ? [names.dead, 'original_seq', '']
      : [names.messages, 'seq', '\n   and d.failed_at is not null']
  return {
    name: 'find_buried',
    text: `
select s.seq::text as seq
  from jsonb_to_recordset($1::text::jsonb) as s(seq bigint, id uuid, deliveries int)
  join ${table} as d
    on d.id = s.id
   and d.${seq} = s.seq
   and d.deliveries = s.deliveries${isDead}`,
    values: [JSON.stringify(messages.map(({ seq, id, deliveries }) => ({ seq, id, deliveries })))],
    input: { messages, place },
  }
}
