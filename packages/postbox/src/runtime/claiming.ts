import { OutboxError } from '../core/errors.ts'
import type { MessageRow } from '../sql/claim-messages.ts'
import type { Names } from '../sql/names.ts'
import { releaseLeases } from '../sql/release-leases.ts'
import { deliveriesOf, type Found } from './claim-answer.ts'
import type { Clock } from './clock.ts'
import type { Failpoint } from './failpoint.ts'
import type { Lane } from './lane.ts'

/** What claims are made with. */
export interface ClaimerParts {
  readonly lane: Pick<Lane, 'run' | 'connection'>
  readonly names: Names
  readonly clock: Clock
  /** Claims nothing of a newer one; null: whatever there is. */
  readonly generation?: number | null
  readonly failpoint?: Failpoint | undefined
}

const mostPatience = 32

/** A claim that needs longer than its deadline would never succeed: the next one may take longer. */
export async function patiently<T>(memory: { patience: number }, claim: () => Promise<T>): Promise<T> {
  try {
    const answer = await claim()
    memory.patience = 1
    return answer
  } catch (error) {
    if (OutboxError.is(error, 'OUTBOX_STATEMENT_TIMEOUT'))
      memory.patience = Math.min(mostPatience, memory.patience * 2)
    throw error
  }
}

/** Failures of what comes after a claim. */
export interface Belated {
  /** What comes next. If it fails: what has been claimed goes to its handlers, with `instead`, and the failure is told by the next claim; at once, if nothing has. */
  after<T>(found: readonly Found[], next: Promise<T>, instead: T): Promise<T>
  /** Something has not been told: look again soon. */
  readonly isUntold: boolean
  /** Throws what has not been told; several failures as one. */
  tell(): void
}

export function createBelated(): Belated {
  const failures: unknown[] = []
  return {
    after: (found, next, instead) =>
      next.catch((error: unknown) => {
        if (found.every(({ held }) => held.length === 0)) throw error
        failures.push(error)
        return instead
      }),
    get isUntold() {
      return failures.length > 0
    },
    tell() {
      const told = failures.splice(0)
      if (told.length > 1) throw new AggregateError(told, told.map(String).join('; '))
      if (told.length > 0) throw told[0]
    },
  }
}

/** Nobody waits for these rows any more, and they would wait for their leases to end. Better without the names of their timers than not at all. */
export async function giveBack(
  { lane, names }: ClaimerParts,
  rows: readonly (MessageRow | { readonly kind: 'queue' })[],
  token: string,
): Promise<void> {
  const releases = rows
    .filter((row) => row.kind === 'message')
    .map((row) => ({ seq: row.seq, token, deliveriesBefore: deliveriesOf(row) - 1 }))
  if (releases.length === 0) return
  await lane
    .run(releaseLeases(names, releases, true))
    .catch(() => lane.run(releaseLeases(names, releases, false)))
    .catch(() => {})
}
