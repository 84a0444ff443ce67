import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

interface Buried {
  readonly seq: string
  readonly id: string
}

/** Which messages lie among the dead letters already, told by id and place: a look, at what a burial may have written before its answer was lost. */
export function findBuried(
  names: Names,
  messages: readonly Buried[],
): Statement<{ readonly seq: string }, readonly Buried[]> {
  return {
    name: 'find_buried',
    text: `
select d.original_seq::text as seq
  from jsonb_to_recordset($1::text::jsonb) as s(seq bigint, id uuid)
  join ${names.dead} as d
    on d.id = s.id
   and d.original_seq = s.seq`,
    values: [JSON.stringify(messages.map(({ seq, id }) => ({ seq, id })))],
    input: messages,
  }
}
