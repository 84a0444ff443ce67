import { type Burial, burialRows } from './bury-dead.ts'
import { deathColumns } from './dead-columns.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

const assignments = Object.entries(deathColumns)
  .map(([column, value]) => `${column} = ${value}`)
  .join(',\n       ')

/**
 * Marks messages dead where they are, because that is where they are kept, or because the dead letters refuse them: due never, so that
 * nobody claims them, and with the name of their timer given up. Fenced: only the holder of the lease may write.
 * Returns the seqs written; one that is missing had lost its lease.
 */
export function quarantineDead(
  names: Names,
  burials: readonly Burial[],
): Statement<{ readonly seq: string }, readonly Burial[]> {
  return {
    name: 'quarantine_dead',
    text: `
update ${names.messages} as m
   set due_at = 'infinity',
       ${assignments},
       lease_token = null,
       leased_until = null
  from ${burialRows}
 where m.seq = s.seq
   and m.lease_token = s.token
returning m.seq::text as seq`,
    values: [JSON.stringify(burials)],
    input: burials,
  }
}
