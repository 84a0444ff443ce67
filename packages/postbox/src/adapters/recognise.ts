import { OutboxError } from '../core/errors.ts'
import { show } from '../core/show.ts'
import { drizzle } from './drizzle.ts'
import type { Database, Handle, Recogniser } from './executor.ts'
import { kysely } from './kysely.ts'
import { own } from './own.ts'
import { pg } from './pg.ts'
import { pglite } from './pglite.ts'
import { postgres } from './postgres.ts'

// The most particular first: `{ query, inTransaction }` would fit some clients by accident.
const recognisers: readonly Recogniser[] = [pg, postgres, pglite, drizzle, kysely, own]

/** The caller's handle, told by its own members; anything else is refused before it is touched. */
export function recogniseHandle(candidate: unknown): Handle {
  const found = isTouchable(candidate) ? first((recogniser) => recogniser.handle(candidate)) : null
  if (found !== null) return found
  const given = show(candidate)
  const missing = given === '`Promise` (object)' ? ': an await is missing' : ''
  throw new OutboxError(
    'OUTBOX_UNKNOWN_HANDLE',
    `expected a transaction as the first argument, got ${given}${missing}`,
  )
}

export function recogniseDatabase(candidate: unknown): Database | null {
  return isTouchable(candidate) ? first((recogniser) => recogniser.database(candidate)) : null
}

function first<T>(ask: (recogniser: Recogniser) => T | null): T | null {
  try {
    for (const recogniser of recognisers) {
      const found = ask(recogniser)
      if (found !== null) return found
    }
  } catch {
    // It threw when a member was looked at (a revoked proxy, a hostile getter): nobody's handle.
  }
  return null
}

function isTouchable(candidate: unknown): candidate is object {
  return (typeof candidate === 'object' && candidate !== null) || typeof candidate === 'function'
}
