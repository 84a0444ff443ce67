// Path 6/7 · settle: lease + outcome + policy → what the row will become. Pure.
import { describeError } from './describe-error.ts'
import type { Lease } from './lease.ts'
import type { Draft } from './message.ts'
import type { OpenOutcome } from './outcome.ts'
import { nextDelay, type RetryPolicy } from './retry.ts'
import type { Verdict } from './subscribe-options.ts'
import { unreachable } from './unreachable.ts'
import type { WarningCode } from './warning-catalogue.ts'

/** Why a message is dead. */
export type DeadReason = 'max_deliveries' | 'retry_terminal' | 'rejected' | 'terminal_error' | 'invalid_body'

/** What the row will become; the only input of a flush. `error` is stored, `thrown` is for events and the log. */
export type Settlement =
  | { readonly write: 'delete'; readonly lease: Lease; readonly followOns: readonly Draft[] }
  | {
      readonly write: 'reschedule'
      readonly lease: Lease
      readonly delayMs: number
      readonly error: string | null
      readonly thrown: unknown
    }
  /** Put back for later, as if it had not been delivered. */
  | { readonly write: 'snooze'; readonly lease: Lease; readonly delayMs: number }
  | {
      readonly write: 'bury'
      readonly lease: Lease
      readonly reason: DeadReason
      readonly error: string | null
      readonly thrown: unknown
      /** Runs that failed, this one included. */
      readonly attempts: number
      /** It stays where it is, and holds its key back, until somebody decides. Absent: not. */
      readonly parks?: boolean
    }
  /** Never started, or interrupted by a stop: as if it had not been claimed. */
  | { readonly write: 'release'; readonly lease: Lease }

/**
 * What becomes of the key of an ordered queue when its first message fails for good. `block`: nothing fails for good, it is tried again until it succeeds.
 * `park`: it is a dead letter, and the key waits for somebody to decide. `skip`: it is a dead letter, and the key goes on.
 */
export type FailingHead = 'block' | 'park' | 'skip'

/** Something that the application gave us does not work. What was decided stands: it is only said. */
export interface Trouble {
  readonly code: WarningCode
  readonly error: unknown
}

/** What an answer of the application's own code came to, and whether that code is broken. */
export interface Judged<T> {
  readonly value: T
  readonly trouble?: Trouble
}

export interface SettleRules {
  readonly retry: RetryPolicy
  /** What becomes of a key whose first message fails for good. */
  readonly failingHead: FailingHead
  classify(error: unknown): Judged<Verdict>
  describe(error: unknown): Judged<string | null>
  /** When the run ended, by the database's clock. */
  endedAt(): Date
  /** In [0, 1). */
  readonly random: () => number
}

export interface Decided {
  readonly settlement: Settlement
  readonly troubles: readonly Trouble[]
}

export function settle(lease: Lease, outcome: OpenOutcome, rules: SettleRules): Decided {
  switch (outcome.kind) {
    case 'ack':
      return calm({ write: 'delete', lease, followOns: outcome.followOns })
    case 'snooze':
      return calm({ write: 'snooze', lease, delayMs: outcome.delayMs })
    case 'interrupt':
      return calm({ write: 'release', lease })
    case 'fail':
      return settleFailure(lease, outcome, rules)
    case 'retry':
      // It need not say why.
      return retry(lease, outcome, outcome.error === undefined ? { ...rules, describe: nothing } : rules)
    case 'reject':
      return bury(lease, { ...outcome, reason: 'rejected' }, rules)
    case 'invalid':
      // Until a deployment that can read it comes.
      if (blocks(lease, rules)) return retry(lease, { error: outcome.error, afterMs: null }, rules)
      return bury(lease, { reason: 'invalid_body', error: outcome.error }, rules)
    case 'exhausted':
      return bury(lease, { reason: 'max_deliveries', error: tooManyDeliveries(lease), isSaid: true }, rules)
    default:
      return unreachable(outcome)
  }
}

/** Whether a message has been delivered often enough without an outcome: whoever ran it died, or lost its lease. */
export function isExhausted(lease: Lease, maxDeliveries: number | null): boolean {
  return maxDeliveries !== null && deliveriesWithoutOutcome(lease) >= maxDeliveries
}

/** An earlier delivery ended without an outcome, and may do so again: it is run alone, and counted only then (docs/decisions/0036). */
export function isSuspect(lease: Lease): boolean {
  return deliveriesWithoutOutcome(lease) > 0
}

/** Snoozed and released deliveries are not counted, and each that failed counts as an attempt: the rest ended in silence. */
export function deliveriesWithoutOutcome({ deliveries, attempt }: Lease): number {
  return deliveries - attempt
}

function settleFailure(
  lease: Lease,
  { error, isShared }: { readonly error: unknown; readonly isShared: boolean },
  rules: SettleRules,
): Decided {
  const { value: verdict, trouble } = rules.classify(error)
  const decided =
    verdict === 'terminal' && !isShared && !blocks(lease, rules)
      ? bury(lease, { reason: 'terminal_error', error }, rules)
      : retry(lease, { error, afterMs: null, isShared }, rules)
  return { ...decided, troubles: [...some(trouble), ...decided.troubles] }
}

interface Retry {
  readonly error: unknown
  readonly afterMs: number | null
  readonly isShared?: boolean
}

function retry(lease: Lease, { error, afterMs, isShared = false }: Retry, rules: SettleRules): Decided {
  const lastAttemptAt = rules.endedAt()
  const next = nextDelay(rules.retry, {
    attempt: lease.attempt,
    error,
    firstAttemptAt: lease.firstAttemptAt ?? lastAttemptAt,
    lastAttemptAt,
    random: rules.random,
  })
  const broken = next.kind === 'broken' ? [{ code: 'policy_failed', error: next.error } as const] : []
  // What a whole batch failed at is nobody's fault yet: each message is run alone before it is given up.
  if (next.kind !== 'delay' && !isShared && !blocks(lease, rules)) {
    const buried = bury(lease, { reason: 'retry_terminal', error }, rules)
    return { ...buried, troubles: [...broken, ...buried.troubles] }
  }
  const policyMs = next.kind === 'delay' ? next.delayMs : isShared ? 0 : blockedDelayMs(lease.attempt)
  const { value: text, trouble } = rules.describe(error)
  return {
    settlement: { write: 'reschedule', lease, delayMs: afterMs ?? policyMs, error: text, thrown: error },
    troubles: [...broken, ...some(trouble)],
  }
}

/** It holds its key, unless that is to go on without it. */
function parking(lease: Lease, { failingHead }: SettleRules): { readonly parks?: true } {
  return lease.isOrdered === true && failingHead !== 'skip' ? { parks: true } : {}
}

/** It is not given up: what comes behind it must not be handled before it. */
function blocks(lease: Lease, { failingHead }: SettleRules): boolean {
  return lease.isOrdered === true && failingHead === 'block'
}

/** When its policy has given it up: ever later, and at least every five minutes. */
function blockedDelayMs(attempt: number): number {
  return Math.min(300_000, 1_000 * 2 ** Math.min(attempt - 1, 20))
}

interface Death {
  readonly reason: DeadReason
  readonly error: unknown
  readonly isSaid?: boolean
}

function bury(lease: Lease, { reason, error, isSaid = false }: Death, rules: SettleRules): Decided {
  // What is said in words, by the handler or by us, is no error that the application would have to describe.
  const { value: text, trouble } = isSaid ? { value: describeError(error) } : rules.describe(error)
  // One that is not run is neither an attempt nor a delivery.
  const run = reason === 'max_deliveries' ? 0 : 1
  const counted = run === 1 ? lease : { ...lease, deliveries: lease.deliveries - 1 }
  const attempts = lease.attempt - 1 + run
  return {
    settlement: {
      write: 'bury',
      lease: counted,
      reason,
      error: text,
      thrown: error,
      attempts,
      ...parking(lease, rules),
    },
    troubles: some(trouble),
  }
}

function nothing(): Judged<null> {
  return { value: null }
}

function tooManyDeliveries(lease: Lease): string {
  const times = deliveriesWithoutOutcome(lease)
  return `delivered ${times} times without an outcome: each time the process died, or lost the lease`
}

function calm(settlement: Settlement): Decided {
  return { settlement, troubles: [] }
}

function some(trouble: Trouble | undefined): readonly Trouble[] {
  return trouble === undefined ? [] : [trouble]
}
