import type pg from 'pg'
import { pause } from './pause.ts'

const patienceMs = 30_000

/** The outbox is a table like any other: what waits can be counted. */
export async function countWaiting(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ waiting: number }>('select count(*)::int as waiting from outbox')
  return rows[0]!.waiting
}

/**
 * Resolves when every message is delivered: its row is deleted only after its handler is done. Gives up after 30
 * seconds, or when told to hurry; then the verdict will find what is left.
 */
export async function untilNothingWaits(pool: pg.Pool, hurry: AbortSignal): Promise<void> {
  const deadline = performance.now() + patienceMs
  while (!hurry.aborted && performance.now() < deadline) {
    if ((await countWaiting(pool)) === 0) return
    await pause(50, hurry)
  }
}
