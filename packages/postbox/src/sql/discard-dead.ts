import { type Burial, burialRows } from './bury-dead.ts'
import { amongRecords } from './fence.ts'
import type { Names } from './names.ts'
import { noteDeath, notedColumns } from './note-death.ts'
import type { Statement } from './statement.ts'

/**
 * Deletes messages that were given up, where no dead letters are kept, and has the next of their keys say so: what a queue without an order does by
 * `deleteAcked`. Fenced: only the holder of the lease may write.
 * Returns the seqs deleted; one that is missing had lost its lease.
 */
export function discardDead(
  names: Names,
  burials: readonly Burial[],
): Statement<{ readonly seq: string }, readonly Burial[]> {
  return {
    name: 'discard_dead',
    text: `
with gone as (
  delete from ${names.messages} as m
   using ${burialRows}
   where m.seq = s.seq
     and m.lease_token = s.token
     and ${amongRecords}
  returning ${notedColumns}
)${noteDeath(names)}
select original_seq::text as seq
  from gone`,
    values: [JSON.stringify(burials)],
    input: burials,
  }
}
