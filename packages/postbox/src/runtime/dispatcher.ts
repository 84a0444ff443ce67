// Path 5/7 · dispatch: leases → handlers → outcomes, no more at once than the subscription allows.
import { ofMessage } from '../core/of-message.ts'
import type { Outcome } from '../core/outcome.ts'
import { averaged, type Measured, prefetchFor } from '../core/prefetch.ts'
import { isExhausted } from '../core/settlement.ts'
import { type DeliveryTools, deliver } from './deliver.ts'
import type { Failpoint } from './failpoint.ts'
import type { Desk } from './hand.ts'
import type { Held } from './held.ts'
import type { Signals } from './signals.ts'
import type { Subscription } from './subscription.ts'
import { createUnits } from './units.ts'

/** One subscription's slots, and what waits for one. */
export interface Dispatcher {
  readonly subscription: Subscription
  /** How many more messages may be claimed. */
  readonly room: number
  /** Enough room to be worth a claim: with messages ahead, half of them are used up first, so that claims stay large. */
  readonly wantsMore: boolean
  /** Handlers at work. */
  readonly running: number
  take(claimed: readonly Held[]): void
  /** Starts nothing more, now or later: gives back what has not been started. */
  close(): void
}

export interface DispatcherParts {
  readonly tools: DeliveryTools
  readonly signals: Signals
  readonly failpoint?: Failpoint | undefined
  /** Where messages end. */
  readonly desk: Desk
  /** A slot became free. */
  roomMade(): void
}

export function createDispatcher(subscription: Subscription, parts: DispatcherParts): Dispatcher {
  const { concurrency, prefetch, maxDeliveries } = subscription.settings
  const { size } = subscription.run.kind === 'batch' ? subscription.run : { size: 1 }
  const { clock, teller } = parts.tools
  const units = createUnits(subscription.run, clock, () => pump())
  let running = 0
  let inRuns = 0
  let isClosed = false
  let measured: Measured = { handlerMs: null, bodyBytes: null }

  const ahead = (): number => prefetch ?? (size > 1 ? size : prefetchFor(concurrency, measured))
  const room = (): number => Math.max(0, concurrency * size + ahead() - inRuns - units.waiting)
  const start = async (unit: readonly Held[]): Promise<void> => {
    running++
    inRuns += unit.length
    const startedAt = clock.now()
    if (teller.isHeard) for (const { lease } of unit) tellDispatched(lease)
    const outcomes = await parts.signals.during((controller) =>
      runUnit(unit, { subscription, controller }, parts),
    )
    const durationMs = clock.now() - startedAt
    running--
    inRuns -= unit.length
    measured = {
      handlerMs: averaged(measured.handlerMs, durationMs),
      bodyBytes: averaged(measured.bodyBytes, unit[0]?.lease.body.byteLength ?? 0),
    }
    for (const [index, held] of unit.entries()) {
      const outcome = outcomes[index]
      if (outcome !== undefined) parts.desk.finished(held, outcome, durationMs)
    }
    pump()
    parts.roomMade()
  }
  const tellDispatched = (lease: Held['lease']): void =>
    teller.tell({ kind: 'dispatched', ...ofMessage(lease), bytes: lease.body.byteLength })
  const pump = (): void => {
    while (!isClosed && running < concurrency) {
      const unit = units.next()
      if (unit === null) return
      const startable = unit.filter(isStartable)
      if (startable.length > 0) void start(startable)
    }
  }
  const isStartable = (held: Held): boolean => {
    // What waited here longer than its lease may be running elsewhere by now.
    if (held.isLost || clock.now() >= held.deadline) parts.desk.unstarted(held)
    else if (isExhausted(held.lease, maxDeliveries)) parts.desk.finished(held, { kind: 'exhausted' }, null)
    else return true
    return false
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
      if (isClosed) return claimed.forEach(parts.desk.unstarted)
      units.add(claimed)
      pump()
    },
    close() {
      isClosed = true
      units.close().forEach(parts.desk.unstarted)
    },
  }
}

async function runUnit(
  unit: readonly Held[],
  run: { readonly subscription: Subscription; readonly controller: AbortController },
  { tools, failpoint }: DispatcherParts,
): Promise<readonly Outcome[]> {
  for (const held of unit) held.abort = (reason) => run.controller.abort(reason)
  if (failpoint) await failpoint.reach('before_handler')
  const outcomes = await deliver(unit, run, tools)
  for (const held of unit) held.abort = () => {}
  if (failpoint) await failpoint.reach('after_handler')
  return outcomes
}
