import { deadColumns, deathColumns, keptColumns } from './dead-columns.ts'
import { amongRecords, type Fence } from './fence.ts'
import type { Names } from './names.ts'
import { isAnyNoted, noteDeath } from './note-death.ts'
import type { Statement } from './statement.ts'

export interface Burial extends Fence {
  readonly reason: string
  readonly error: string | null
  /** Runs that failed: what the dead letter will say. */
  readonly attempts: number
  /** It was the first of its key, in an ordered queue: that is noted on the next. @default false */
  readonly isNoted?: boolean
}

/** The burials as rows, of $1. */
export const burialRows =
  'jsonb_to_recordset($1::text::jsonb) as s(seq bigint, token uuid, reason text, error text, attempts int, "isNoted" boolean)'

const made = { ...deadColumns, ...deathColumns }
const columns = [...keptColumns, ...Object.keys(made)].join(', ')
const values = [
  // What never joined its key, since its queue gave its order up, had it for later.
  ...keptColumns.map((column) => (column === 'key' ? 'coalesce(m.key, m.later_key) as key' : `m.${column}`)),
  ...Object.entries(made).map(([column, value]) => `${value} as ${column}`),
].join(',\n            ')

/**
 * Moves messages to the dead letters: one statement, so a message is in exactly one of the tables whatever dies. Fenced: only the holder of
 * the lease may write.
 * Returns the seqs moved; one that is missing had lost its lease.
 */
export function buryDead(
  names: Names,
  burials: readonly Burial[],
): Statement<{ readonly seq: string }, readonly Burial[]> {
  const isNoted = isAnyNoted(burials)
  return {
    name: 'bury_dead',
    text: `
with gone as (
  delete from ${names.messages} as m
   using ${burialRows}
   where m.seq = s.seq
     and m.lease_token = s.token
     and ${amongRecords}
  returning ${values}${isNoted ? ',\n            s."isNoted" as is_noted' : ''}
), buried as (
  insert into ${names.dead} (${columns})
  select ${columns}
    from gone
  returning original_seq
)${isNoted ? noteDeath(names) : ''}
select original_seq::text as seq
  from buried`,
    values: [JSON.stringify(burials)],
    input: burials,
  }
}
