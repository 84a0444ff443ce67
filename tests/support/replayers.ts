// The ways to replay a dead letter: by the library, and by the function that people use who have a SQL client.
import type pg from 'pg'
import type { DeadLetters, ReplayResult } from 'postbox'

export interface ReplayedBy {
  readonly by: string
  readonly generation?: number
}

export type Replayer = (id: string, options: ReplayedBy) => Promise<ReplayResult>

export const ways = ['deadLetters.replay', 'the SQL function'] as const
export type Way = (typeof ways)[number]

/** The function as the ADR has it, its arguments by name. */
export const callReplay =
  'select outbox_replay(event_id => $1, p_new_generation => $2, p_replayed_by => $3) as answer'

export function replayer(way: Way, deadLetters: DeadLetters, client: pg.Pool | pg.PoolClient): Replayer {
  return way === 'deadLetters.replay'
    ? (id, options) => deadLetters.replay(id, options)
    : async (id, { by, generation = null }: { by: string; generation?: number | null }) => {
        const { rows } = await client.query(callReplay, [id, generation, by])
        return resultOf(rows[0].answer)
      }
}

export function resultOf(answer: string): ReplayResult {
  // The function does not tell where: none of its tests is about ordered queues but one, which looks for itself.
  return answer === 'replayed'
    ? { replayed: true, lands: 'anywhere' }
    : ({ replayed: false, because: answer } as ReplayResult)
}
