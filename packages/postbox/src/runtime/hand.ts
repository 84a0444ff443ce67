import { classifyError } from '../core/classify.ts'
import type { describerOf } from '../core/describe-error.ts'
import { LeaseLostError } from '../core/errors.ts'
import type { Teller, WarningCode } from '../core/events.ts'
import { ofMessage } from '../core/of-message.ts'
import type { OpenOutcome, Outcome } from '../core/outcome.ts'
import { defaultRetry } from '../core/retry.ts'
import { type Judged, type Settlement, type SettleRules, settle } from '../core/settlement.ts'
import type { SubscribeSettings } from '../core/subscribe-options.ts'
import type { Clock } from './clock.ts'
import { databaseTime, type Fate, type Held } from './held.ts'
import type { Settler } from './settler.ts'
import type { Settling } from './settling.ts'
import type { Subscription } from './subscription.ts'

/** Everything that was claimed and whose end is not yet written: waiting for a slot, running, or waiting to be written. */
export interface Hand {
  readonly held: ReadonlySet<Held>
  hold(claimed: readonly Held[]): void
  /** Where the messages of a subscription end. */
  desk(subscription: Subscription): Desk
  /** Resolves when nothing is in hand. */
  untilEmpty(): Promise<void>
}

export interface Desk {
  /** A handler ended, or was not run: writes what that makes of the row, and lets go of it. */
  finished(one: Held, outcome: Outcome, durationMs: number | null): void
  /** It was never started: gives it back. */
  unstarted(one: Held): void
}

export interface HandParts {
  readonly settler: Pick<Settler, 'settle' | 'countLost' | 'transacted'>
  readonly clock: Pick<Clock, 'now'>
  readonly teller: Teller
  readonly describe: ReturnType<typeof describerOf>
  /** A message was put back, to be due in so many milliseconds. */
  putBack(queue: string, delayMs: number): void
  /** Nothing is in hand any more. */
  emptied(): void
}

export function createHand(parts: HandParts): Hand {
  const held = new Set<Held>()
  const bySeq = new Map<string, Held>()
  const waiting: (() => void)[] = []
  const letGo = (one: Held, fate: Fate): void => {
    held.delete(one)
    if (bySeq.get(one.lease.seq) === one) bySeq.delete(one.lease.seq)
    one.over?.(fate)
    if (held.size > 0) return
    for (const tell of waiting.splice(0)) tell()
    parts.emptied()
  }
  return {
    held,
    hold(claimed) {
      for (const one of claimed) {
        const older = bySeq.get(one.lease.seq)
        if (older !== undefined) loseToOurselves(older, parts.teller)
        bySeq.set(one.lease.seq, one)
        held.add(one)
      }
    },
    desk: (subscription) => createDesk(subscription, parts, letGo),
    untilEmpty: () =>
      new Promise((resolve) => {
        if (held.size === 0) resolve()
        else waiting.push(resolve)
      }),
  }
}

/** Its lease had ended before it could be renewed, and we have claimed it again: whatever becomes of the first delivery is not written. */
function loseToOurselves(older: Held, teller: Teller): void {
  // Of what is being written, that write tells.
  if (older.isLost || older.isEnding) return
  const { id, queue } = older.lease
  older.isLost = true
  older.abort(new LeaseLostError(`the lease on message ${id} of "${queue}" ended, and it was claimed again`))
  const lost = { phase: 'running', mayHaveLanded: false, durationMs: null } as const
  teller.tell({ kind: 'lease_lost', ...ofMessage(older.lease), ...lost })
}

function createDesk(
  { settings }: Subscription,
  parts: HandParts,
  letGo: (one: Held, fate: Fate) => void,
): Desk {
  const { settler, clock, teller } = parts
  const { maxBatch, flush, failingHead } = settings
  const { retry, classify, describe } = rulesOf(settings, parts)
  const rulesFor = (one: Held): SettleRules => ({
    retry,
    failingHead,
    classify,
    describe,
    endedAt: () => databaseTime(one, clock.now()),
    random: Math.random,
  })

  const write = (one: Held, settlement: Settlement, how: Settling): void => {
    one.isEnding = true
    settler.settle(settlement, how, (written) => {
      if (written.kind === 'refused') {
        // The handler succeeded, and what it wants to publish cannot be written: as if it had failed at publishing it.
        teller.tell({ kind: 'follow_on_failed', ...ofMessage(one.lease), error: written.error })
        const failure: OpenOutcome = { kind: 'fail', error: written.error, isShared: false }
        return write(one, decide(one, failure), how)
      }
      if (settlement.write === 'reschedule' || settlement.write === 'snooze')
        parts.putBack(one.lease.queue, settlement.delayMs)
      letGo(one, written.landed ? fateOf(settlement) : 'lost')
    })
  }
  /** Nothing may be written for what somebody else has: it was reported when it was lost. */
  const lose = (one: Held): void => {
    settler.countLost()
    letGo(one, 'lost')
  }
  const decide = (one: Held, outcome: OpenOutcome): Settlement => {
    const { settlement, troubles } = settle(one.lease, outcome, rulesFor(one))
    for (const { code, error } of troubles)
      teller.tell({
        kind: 'warning',
        code,
        message: troubleTexts[code] ?? code,
        fields: ofMessage(one.lease),
        error,
      })
    return settlement
  }
  return {
    finished(one, outcome, durationMs) {
      if (outcome.kind === 'committed' || outcome.kind === 'unresolved') {
        settler.transacted(one.lease, outcome, durationMs)
        return letGo(one, outcome.kind === 'committed' ? 'gone' : 'lost')
      }
      if (one.isLost) return lose(one)
      const batch = flush === 'each' ? 1 : maxBatch
      write(one, decide(one, outcome), { maxBatch: batch, durationMs, isLink: one.isLink })
    },
    // Together, whatever `flush` says: a stop may give back a thousand.
    unstarted(one) {
      if (one.isLost) return lose(one)
      write(one, { write: 'release', lease: one.lease }, { maxBatch, durationMs: null })
    },
  }
}

function fateOf(settlement: Settlement): Fate {
  if (settlement.write === 'delete') return 'gone'
  if (settlement.write !== 'bury' || settlement.parks) return 'kept'
  return settlement.lease.isOrdered ? 'skipped' : 'gone'
}

const troubleTexts: Partial<Record<WarningCode, string>> = {
  policy_failed: 'the retry policy is broken: there is no other run',
  classify_failed: '`classify` is broken: the usual rules were asked',
  describe_failed: '`describeError` is broken: a sentence was recorded in place of the error',
}

function rulesOf(
  { retry, terminalErrors, classify }: SubscribeSettings,
  { describe }: HandParts,
): Pick<SettleRules, 'retry' | 'classify' | 'describe'> {
  return {
    retry: retry ?? defaultRetry,
    classify(error) {
      const { verdict, trouble } = classifyError(error, { terminalErrors, classify })
      return judged(verdict, 'classify_failed', trouble)
    },
    describe(error) {
      const { text, trouble } = describe(error)
      return judged(text, 'describe_failed', trouble)
    },
  }
}

function judged<T>(value: T, code: WarningCode, error: unknown): Judged<T> {
  return error === undefined ? { value } : { value, trouble: { code, error } }
}
