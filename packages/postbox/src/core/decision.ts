import { longestMs } from './duration.ts'
import { OutboxError } from './errors.ts'
import type { RetryOptions } from './handler.ts'
import type { Draft } from './message.ts'
import type { Outcome } from './outcome.ts'
import { runtimeError } from './runtime-errors.ts'
import { show } from './show.ts'
import type { SubscribeSettings } from './subscribe-options.ts'
import { anything, assertOptions, assertValue, type Check } from './validate.ts'

/** What a handler has decided about one message: recorded when it says so, and the first word counts. */
export interface Decision {
  readonly outcome: Outcome | null
  ack(): void
  retry(options?: RetryOptions): void
  reject(reason?: string | Error): void
  snooze(delayMs: number): void
  /** A transaction has come to this, whatever was said before. */
  conclude(outcome: Outcome): void
  /** What was acknowledged inside a transaction that failed was not. */
  takeBackAck(): void
  /** From now on nothing is recorded: the delivery is over. */
  close(): void
}

const duration: Check = (value) =>
  typeof value === 'number' && value >= 0 && value <= longestMs
    ? null
    : 'to be a number of milliseconds, from 0 to a hundred years'

const textOrError: Check = (value) =>
  typeof value === 'string' || value instanceof Error ? null : 'to be a text or an error'

const retryShape = { afterMs: duration, error: anything }

export function createDecision(): Decision {
  return new Recorded()
}

/** A class: there is one for each message, and most are never asked for anything. */
class Recorded implements Decision {
  outcome: Outcome | null = null
  #isOver = false

  ack(): void {
    this.#record({ kind: 'ack', followOns: [] })
  }

  retry(options?: RetryOptions): void {
    // It has no members that could be misspelt, and would be lost without a word.
    if (options instanceof Error) {
      const sentence = `expected the options of retry to be { afterMs, error }, got ${show(options)}: give it as \`error\``
      throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
    }
    assertOptions(options, retryShape, 'the options of retry')
    this.#record({ kind: 'retry', afterMs: options?.afterMs ?? null, error: options?.error })
  }

  reject(reason: string | Error = 'rejected by its handler'): void {
    assertValue('OUTBOX_INVALID_OPTION', { label: 'reason', check: textOrError, value: reason })
    this.#record({ kind: 'reject', error: reason, isSaid: typeof reason === 'string' })
  }

  snooze(delayMs: number): void {
    assertValue('OUTBOX_INVALID_OPTION', { label: 'delayMs', check: duration, value: delayMs })
    this.#record({ kind: 'snooze', delayMs })
  }

  conclude(outcome: Outcome): void {
    this.outcome = outcome
  }

  takeBackAck(): void {
    if (this.outcome?.kind === 'ack') this.outcome = null
  }

  close(): void {
    this.#isOver = true
  }

  #record(given: Outcome): void {
    if (!this.#isOver) this.outcome ??= given
  }
}

/** How a handler ended, whatever it decided before. */
export type Ended =
  /** A middleware answered for the handler: it was not run, or what it threw was caught. */
  | { readonly kind: 'answered' }
  | { readonly kind: 'returned'; readonly value: unknown; readonly isInterrupted: boolean }
  | { readonly kind: 'threw'; readonly error: unknown; readonly isInterrupted: boolean }

/** A function that is returned was meant to be called: `return context.retry`. */
export function refuseFunction(ended: Ended): Ended {
  if (ended.kind !== 'returned' || typeof ended.value !== 'function') return ended
  const sentence = `the handler returned ${show(ended.value)} instead of calling it`
  return { kind: 'threw', error: runtimeError('OUTBOX_INVALID_OUTCOME', sentence), isInterrupted: false }
}

/** A handler that returned though its transaction had failed has not succeeded. */
export function withFailure(ended: Ended, error: unknown): Ended {
  if (ended.kind === 'threw') return ended
  return { kind: 'threw', error, isInterrupted: ended.kind === 'returned' && ended.isInterrupted }
}

/** What a delivery came to: what the handler decided, else how it ended, by the way that its subscription acknowledges. */
export function outcomeOf(
  decided: Outcome | null,
  ended: Ended,
  { ack, isShared }: { readonly ack: SubscribeSettings['ack']; readonly isShared: boolean },
): Outcome {
  if (decided !== null) return decided
  if (ended.kind === 'answered') return { kind: 'ack', followOns: [] }
  if (ended.kind === 'returned') {
    if (ack !== 'manual') return { kind: 'ack', followOns: [] }
    if (ended.isInterrupted) return { kind: 'interrupt' }
    const error = 'the handler returned without a decision, which `ack: manual` asks for'
    return { kind: 'reject', error, isSaid: true }
  }
  if (ended.isInterrupted) return { kind: 'interrupt' }
  if (ack === 'reject-on-error' && !isShared) return { kind: 'reject', error: ended.error, isSaid: false }
  return { kind: 'fail', error: ended.error, isShared }
}

/** An acknowledged delivery with what it publishes; one of those that are refused fails it, though the handler has not waited for it. */
export function withFollowOns(
  outcome: Outcome,
  drafts: readonly PromiseSettledResult<Draft | null>[],
  ack: SubscribeSettings['ack'],
): Outcome {
  if (outcome.kind !== 'ack') return outcome
  const refused = drafts.find((draft) => draft.status === 'rejected')
  if (refused !== undefined)
    return outcomeOf(
      null,
      { kind: 'threw', error: refused.reason, isInterrupted: false },
      { ack, isShared: false },
    )
  const made = drafts.flatMap((draft) => (draft.status === 'fulfilled' ? (draft.value ?? []) : []))
  return { kind: 'ack', followOns: made }
}
