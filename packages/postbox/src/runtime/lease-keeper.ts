import { compareSeq } from '../core/batching.ts'
import { LeaseLostError } from '../core/errors.ts'
import type { Teller, Told } from '../core/events.ts'
import { ofMessage } from '../core/of-message.ts'
import { extendLeases, holdsLeases, mostExtended } from '../sql/extend-leases.ts'
import type { Names } from '../sql/names.ts'
import type { Clock } from './clock.ts'
import { type Failpoint, sent } from './failpoint.ts'
import type { Held } from './held.ts'
import type { Lane } from './lane.ts'
import { createSleeper, type Sleeper } from './sleeper.ts'

export interface LeaseKeeperParts {
  /** Everything in hand: waiting for a slot, running, or waiting to be written. */
  readonly held: ReadonlySet<Held>
  readonly lane: Pick<Lane, 'run'>
  readonly names: Names
  readonly clock: Clock
  readonly teller: Teller
  readonly failpoint?: Failpoint | undefined
  /** The shortest lease of any subscription. Whoever makes it shorter wakes the sleeper. */
  shortestLeaseMs(): number
  readonly sleeper?: Sleeper
}

/**
 * Renews the leases that are past their half, a thousand with one statement, until the signal aborts. It looks eight times within the shortest
 * lease; a handler whose lease could not be renewed by its last quarter is told to give up, an eighth before the end at the latest.
 */
export async function keepLeases(parts: LeaseKeeperParts, signal: AbortSignal): Promise<void> {
  const { clock, sleeper = createSleeper(clock) } = parts
  let renewing: Promise<void> | null = null
  signal.addEventListener('abort', sleeper.wake, { once: true })
  while (!signal.aborted) {
    await sleeper.sleepUntil(clock.now() + parts.shortestLeaseMs() / 8)
    if (signal.aborted) break
    // Not awaited: one that hangs must not keep handlers from being told in time.
    renewing ??= renewAndReport(parts).finally(() => {
      renewing = null
    })
    abortOverdue(parts)
  }
  await renewing
}

async function renewAndReport(parts: LeaseKeeperParts): Promise<void> {
  try {
    await renew(parts)
  } catch (error) {
    const message = 'leases could not be renewed, trying again'
    parts.teller.tell({ kind: 'warning', code: 'renewal_failed', message, fields: {}, error })
  }
}

/** Some thousand after the other, each of them once: one that is locked stays old. */
async function renew(parts: LeaseKeeperParts): Promise<void> {
  const tried = new Set<Held>()
  while (await renewSome(parts, tried));
}

/** False: there are no more. */
async function renewSome(parts: LeaseKeeperParts, tried: Set<Held>): Promise<boolean> {
  const { lane, names, clock, teller } = parts
  if (parts.failpoint) await parts.failpoint.reach('before_renewal')
  let old: readonly Held[] = []
  let sentAt = 0
  // Chosen when the turn comes: what a flush has settled until then is no longer in hand.
  const answer = lane.run(() => {
    sentAt = clock.now()
    old = [...parts.held]
      .filter((held) => isOld(held, sentAt) && !tried.has(held))
      .sort(bySeq)
      .slice(0, mostExtended)
    return old.length === 0 ? null : extendLeases(names, old.map(extensionOf))
  })
  const renewed = seqsOf(await sent(answer, parts.failpoint, 'renewal_sent'))
  if (parts.failpoint) await parts.failpoint.reach('after_renewal')
  for (const held of old) if (renewed.has(held.lease.seq)) held.deadline = sentAt + held.leaseMs
  if (teller.isHeard && renewed.size > 0) teller.tell({ kind: 'lease_renewed', count: renewed.size })
  await lose(
    parts,
    old.filter((held) => !renewed.has(held.lease.seq) && parts.held.has(held)),
  )
  for (const held of old) tried.add(held)
  return old.length === mostExtended
}

/** What did not come back is lost, or locked by somebody (a handler's own transaction): a look without a lock tells. */
async function lose(
  { lane, names, teller, held: inHand }: LeaseKeeperParts,
  missing: readonly Held[],
): Promise<void> {
  if (missing.length === 0) return
  const still = seqsOf(await lane.run(holdsLeases(names, missing.map(extensionOf))))
  // What was settled meanwhile is gone because we deleted it; of what is being settled, that write will tell.
  const isLost = (one: Held): boolean =>
    !still.has(one.lease.seq) && inHand.has(one) && !one.isEnding && !one.isFenced
  for (const held of missing.filter(isLost)) loseHeld(held, teller)
}

/** Somebody else has it: its handler, if it runs, is told. */
export function loseHeld(held: Held, teller: Teller): void {
  held.isLost = true
  held.abort(leaseLost(held, 'was taken over'))
  teller.tell(lostOf(held))
}

/** Its lease may end before the next look. What the handler came to is still written, if nobody else has taken the message by then. */
function abortOverdue({ held, clock }: LeaseKeeperParts): void {
  const now = clock.now()
  for (const one of held)
    if (!one.isFenced && now >= one.deadline - one.leaseMs / 4)
      one.abort(leaseLost(one, 'could not be renewed'))
}

function isOld(held: Held, now: number): boolean {
  return !held.isLost && !held.isFenced && now >= held.deadline - held.leaseMs / 2
}

function leaseLost({ lease }: Held, how: string): LeaseLostError {
  return new LeaseLostError(`the lease on message ${lease.id} of "${lease.queue}" ${how}`)
}

/** Told here, and not again when its handler ends: nothing is written for it. How long it will run is not known yet. */
function lostOf({ lease }: Held): Told {
  return { kind: 'lease_lost', ...ofMessage(lease), phase: 'running', mayHaveLanded: false, durationMs: null }
}

function extensionOf({ lease, leaseMs }: Held): { seq: string; token: string; leaseMs: number } {
  return { seq: lease.seq, token: lease.token, leaseMs }
}

function bySeq(a: Held, b: Held): number {
  return compareSeq(a.lease.seq, b.lease.seq)
}

function seqsOf(rows: readonly { readonly seq: string }[]): ReadonlySet<string> {
  return new Set(rows.map((row) => row.seq))
}
