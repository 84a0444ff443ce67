import { type Burial, burialRows } from './bury-dead.ts'
import { deathColumns } from './dead-columns.ts'
import { amongRecords } from './fence.ts'
import type { Names } from './names.ts'
import { isAnyNoted, noteDeath, notedColumns } from './note-death.ts'
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
  return deadInPlace(names, burials, {
    name: 'quarantine_dead',
    parkedAt: 'null',
    isNoted: isAnyNoted(burials),
  })
}

/** The same for the first messages of keys that wait until somebody decides: they go on holding the keys of their ordered queues, so nobody comes after them. */
export function parkDead(
  names: Names,
  burials: readonly Burial[],
): Statement<{ readonly seq: string }, readonly Burial[]> {
  return deadInPlace(names, burials, { name: 'park_dead', parkedAt: 'now()', isNoted: false })
}

interface Dying {
  readonly name: string
  readonly parkedAt: string
  /** The next of their keys says who died. */
  readonly isNoted: boolean
}

function deadInPlace(
  names: Names,
  burials: readonly Burial[],
  { name, parkedAt, isNoted }: Dying,
): Statement<{ readonly seq: string }, readonly Burial[]> {
  const dying = `update ${names.messages} as m
   set due_at = 'infinity',
       parked_at = ${parkedAt},
       key = coalesce(m.key, m.later_key),
       later_key = null,
       ${assignments},
       lease_token = null,
       leased_until = null
  from ${burialRows}
 where m.seq = s.seq
   and m.lease_token = s.token
   and ${amongRecords}`
  const noting = `with gone as (
${dying}
returning ${notedColumns}
)${noteDeath(names)}
select original_seq::text as seq
  from gone`
  return {
    name,
    text: isNoted ? `\n${noting}` : `\n${dying}\nreturning m.seq::text as seq`,
    values: [JSON.stringify(burials)],
    input: burials,
  }
}
