import type { forgetHandled } from '../../sql/forget-handled.ts'
import type { markHandled } from '../../sql/mark-handled.ts'
import type { purgeHandled } from '../../sql/purge-handled.ts'
import { isMarked } from './inserting.ts'
import type { Operation } from './operation.ts'
import { type Transaction, xidOf } from './transaction.ts'

export const markAsHandled: Operation<typeof markHandled> = ({ tx }, { consumer, id, mark }) => {
  if (!isMarked(tx, mark)) return []
  const key = keyOf(consumer, id)
  const holder = tx.server.locks.handled.get(key)
  if (holder !== undefined && holder !== tx) return [{ answer: 'busy' }]
  tx.server.locks.handled.set(key, tx)
  tx.handling.add(key)
  if (isHandled(tx, key)) return [{ answer: 'duplicate' }]
  xidOf(tx)
  tx.handled.set(key, tx.startedAt)
  return [{ answer: 'marked' }]
}

export const forget: Operation<typeof forgetHandled> = ({ tx }, { consumer, id, mark }) => {
  const key = keyOf(consumer, id)
  if (!isMarked(tx, mark) || !isHandled(tx, key)) return []
  xidOf(tx)
  tx.handled.set(key, null)
  return [{ id }]
}

/** Oldest first. */
export const purgeOld: Operation<typeof purgeHandled> = ({ tx, at }, { olderThanMs, consumer, limit }) => {
  const isOld = ([key, handledAt]: readonly [string, number]): boolean =>
    handledAt < at - olderThanMs && (consumer === null || key.startsWith(keyOf(consumer, '')))
  const old = [...tx.server.tables.handled]
    .filter(isOld)
    .sort(([, a], [, b]) => a - b)
    .slice(0, limit)
  for (const [key] of old) tx.handled.set(key, null)
  return [{ purged: String(old.length) }]
}

/** No text that is stored has a NUL. */
function keyOf(consumer: string, id: string): string {
  return `${consumer}\0${id}`
}

function isHandled(tx: Transaction, key: string): boolean {
  const own = tx.handled.get(key)
  return own === undefined ? tx.server.tables.handled.has(key) : own !== null
}
