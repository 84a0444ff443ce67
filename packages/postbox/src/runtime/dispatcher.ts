// Path 5/7 · dispatch: leases → handlers → outcomes, no more at once than the subscription allows.
import { OutboxError } from '../core/errors.ts'
import type { Outcome } from '../core/outcome.ts'
import { averaged, type Measured, prefetchFor } from '../core/prefetch.ts'
import type { Clock } from './clock.ts'
import { deliver } from './deliver.ts'
import type { Failpoint } from './failpoint.ts'
import type { Held } from './held.ts'
import type { Signals } from './signals.ts'
import type { Subscription } from './subscription.ts'

/** One subscription's slots, and what waits for one. */
export interface Dispatcher {
  readonly subscription: Subscription
  /** How many more messages may be claimed. */
  readonly room: number
  /** Enough room to be worth a claim: with messages ahead, half of them are used up first, so that claims stay large. */
  readonly wantsMore: boolean
  readonly running: number
  take(claimed: readonly Held[]): void
  /** Starts nothing more, now or later: gives back what has not been started. */
  close(): void
}

export interface DispatcherParts {
  readonly clock: Clock
  readonly signals: Signals
  readonly failpoint?: Failpoint | undefined
  /** A handler ended: this is what it came to. */
  finished(held: Held, outcome: Outcome): void
  /** Claimed and not started. */
  unstarted(held: Held): void
  /** A slot became free. */
  roomMade(): void
}

export function createDispatcher(subscription: Subscription, parts: DispatcherParts): Dispatcher {
  const { concurrency, prefetch } = subscription.settings
  const { clock } = parts
  const waiting: Held[] = []
  let running = 0
  let isClosed = false
  let measured: Measured = { handlerMs: null, bodyBytes: null }

  const ahead = (): number => prefetch ?? prefetchFor(concurrency, measured)
  const room = (): number => Math.max(0, concurrency + ahead() - running - waiting.length)
  const start = async (held: Held): Promise<void> => {
    running++
    const startedAt = clock.now()
    const outcome = await parts.signals.during((controller) => runHandler(held, controller))
    running--
    measured = {
      handlerMs: averaged(measured.handlerMs, clock.now() - startedAt),
      bodyBytes: averaged(measured.bodyBytes, held.lease.body.byteLength),
    }
    parts.finished(held, outcome)
    pump()
    parts.roomMade()
  }
  const runHandler = async (held: Held, controller: AbortController): Promise<Outcome> => {
    held.abort = (reason) => controller.abort(reason)
    if (parts.failpoint) await parts.failpoint.reach('before_handler')
    const outcome = await timed(deliver(held.lease, subscription, controller.signal), controller)
    held.abort = () => {}
    if (parts.failpoint) await parts.failpoint.reach('after_handler')
    return outcome
  }
  /** A handler that is out of time has failed, whether it listens to its signal or not: it must not keep its slot for ever. */
  const timed = async (delivery: Promise<Outcome>, controller: AbortController): Promise<Outcome> => {
    const { timeoutMs } = subscription.settings
    if (timeoutMs === null) return delivery
    const timer = new AbortController()
    const timeout = clock.sleep(timeoutMs, timer.signal).then((): Outcome => {
      const sentence = `handler ${subscription.name} took longer than ${timeoutMs} ms`
      const error = new OutboxError('OUTBOX_HANDLER_TIMEOUT', sentence)
      if (!timer.signal.aborted) controller.abort(error)
      return { kind: 'fail', error }
    })
    const outcome = await Promise.race([delivery, timeout])
    timer.abort()
    return outcome
  }
  const pump = (): void => {
    while (!isClosed && running < concurrency) {
      const held = waiting.shift()
      if (held === undefined) return
      // What waited here longer than its lease may be running elsewhere by now.
      if (held.isLost || clock.now() >= held.deadline) parts.unstarted(held)
      else void start(held)
    }
  }
  return {
    subscription,
    get room() {
      return isClosed ? 0 : room()
    },
    get wantsMore() {
      return !isClosed && room() >= Math.max(1, Math.ceil(ahead() / 2))
    },
    get running() {
      return running
    },
    take(claimed) {
      if (isClosed) return claimed.forEach(parts.unstarted)
      waiting.push(...claimed)
      pump()
    },
    close() {
      isClosed = true
      waiting.splice(0).forEach(parts.unstarted)
    },
  }
}
