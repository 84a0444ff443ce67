import type pg from 'pg'
import { mendDeadLetters } from './clerk.ts'
import { pause } from './pause.ts'
import type { Shop } from './shop.ts'

const patienceMs = 60_000

/** The outbox is a table like any other: what waits, now or for a later time, can be counted. */
export async function countWaiting(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ waiting: number }>('select count(*)::int as waiting from outbox')
  return rows[0]!.waiting
}

/**
 * Resolves when every message is delivered (its row is deleted only after its handler is done), those that wait for a
 * retry or as timers included, and what died of a wrong address is mended and delivered, too. Gives up after a minute,
 * or when told to hurry; then the verdict will find what is left.
 */
export async function untilNothingWaits(shop: Shop, hurry: AbortSignal): Promise<void> {
  const deadline = performance.now() + patienceMs
  while (!hurry.aborted && performance.now() < deadline) {
    if ((await countWaiting(shop.pool)) === 0 && (await mendDeadLetters(shop)) === 0) return
    await pause(50, hurry)
  }
}
