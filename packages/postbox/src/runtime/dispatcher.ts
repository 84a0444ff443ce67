// Path 5/7 · dispatch: leases → handlers → outcomes, no more at once than the subscription allows.
import type { Teller } from '../core/events.ts'
import { ofMessage } from '../core/of-message.ts'
import type { Outcome } from '../core/outcome.ts'
import { averaged, type Measured, prefetchFor } from '../core/prefetch.ts'
import { deliveriesWithoutOutcome, isExhausted, isSuspect } from '../core/settlement.ts'
import type { Breath } from './breath.ts'
import type { Clock } from './clock.ts'
import { type DeliveryTools, deliver } from './deliver.ts'
import type { Failpoint } from './failpoint.ts'
import type { Gate, NextSuspect, Suspected } from './gate.ts'
import type { Desk } from './hand.ts'
import { type Held, untilOver } from './held.ts'
import type { Signals } from './signals.ts'
import type { Subscription } from './subscription.ts'
import { createSuccession, type Succession } from './succession.ts'
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
  /** Claimed, and not started. */
  readonly waiting: number
  take(claimed: readonly Held[]): void
  /** Gives back what waits of the queue: it was not started. */
  giveBack(queue: string): void
  /** Starts nothing more, now or later: gives back what has not been started. */
  close(): void
}

export interface DispatcherParts {
  readonly tools: DeliveryTools
  readonly signals: Signals
  readonly failpoint?: Failpoint | undefined
  /** Where messages end. */
  readonly desk: Desk
  readonly gate: Gate
  readonly breath: Pick<Breath, 'mayStart'>
  /** Counts the delivery of a suspect. False: it must not be run. Never rejects. */
  count(suspect: Held): Promise<boolean>
  /** A slot became free. */
  roomMade(): void
  /** The last message of a key that was held here is gone. */
  keySettled(queue: string, key: string, seq: string): void
}

/** So many messages may stand behind others of their keys. */
const mostInLine = 1_000

export function createDispatcher(subscription: Subscription, parts: DispatcherParts): Dispatcher {
  const { concurrency } = subscription.settings
  const size = sizeOf(subscription)
  const { gate, breath, tools } = parts
  const units = createUnits(subscription.run, tools.clock, () => pump())
  const changed = (): void => {
    pump()
    parts.roomMade()
  }
  const ends = createSuccession({ units, desk: parts.desk, keySettled: parts.keySettled, changed })
  const { isOver, isStartable, isWorthRunning } = checksOf(subscription, tools.clock, ends)
  let running = 0
  let inRuns = 0
  let isClosed = false
  const { ahead, measure } = createForesight(subscription)
  const room = (): number => {
    const slots = concurrency * size + ahead() - inRuns
    // What stands behind others of its key needs no slot yet: a key with many messages leaves room for others.
    return Math.max(0, Math.min(slots - units.startable, slots + mostInLine - units.waiting))
  }
  const start = (unit: readonly Held[]): Promise<void> => {
    running++
    inRuns += unit.length
    return runUnit(unit, { subscription, ended }, parts)
  }
  const ended: Ended = (unit, outcomes, durationMs) => {
    running--
    inRuns -= unit.length
    measure(unit, durationMs)
    eachOf(unit, outcomes, (held, outcome) => ends.finished(held, outcome, durationMs))
    changed()
  }
  const pump = (): void => {
    if (isClosed) return
    if (units.hasSuspects && running < concurrency) gate.isolate(nextSuspect)
    while (running < concurrency && units.startable > 0 && gate.mayStart(pump) && breath.mayStart(pump)) {
      const unit = units.next()
      if (unit === null) return
      const startable = unit.filter(isStartable)
      if (startable.length > 0) void start(startable)
    }
  }
  const nextSuspect: NextSuspect = () => {
    if (isClosed || running >= concurrency) return null
    let suspect = units.nextSuspect()
    while (suspect !== null && !isStartable(suspect)) suspect = units.nextSuspect()
    if (suspect === null) return null
    // Counting it takes time: its lease may have ended meanwhile, or a stop have come.
    const begin = (): Promise<void> | null => (isClosed || isOver(suspect) ? null : start([suspect]))
    return startAlone(suspect, begin, { ...parts, ends })
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
    get waiting() {
      return units.waiting
    },
    take(claimed) {
      if (isClosed) return claimed.forEach(parts.desk.unstarted)
      units.add(claimed.filter(isWorthRunning))
      pump()
    },
    giveBack: (queue) => units.remove(queue).forEach(parts.desk.unstarted),
    close() {
      isClosed = true
      units.close().forEach(parts.desk.unstarted)
    },
  }
}

function sizeOf({ run }: Subscription): number {
  return run.kind === 'batch' ? run.size : 1
}

/** How many messages to claim ahead of free slots, by how long the last runs took. */
function createForesight(subscription: Subscription) {
  const { concurrency, prefetch } = subscription.settings
  const size = sizeOf(subscription)
  let measured: Measured = { handlerMs: null, bodyBytes: null }
  return {
    ahead: (): number => prefetch ?? (size > 1 ? size : prefetchFor(concurrency, measured)),
    measure(unit: readonly Held[], durationMs: number): void {
      measured = {
        handlerMs: averaged(measured.handlerMs, durationMs),
        bodyBytes: averaged(measured.bodyBytes, unit[0]?.lease.body.byteLength ?? 0),
      }
    },
  }
}

type Start = () => Promise<void> | null

type Counting = Pick<DispatcherParts, 'count'> & { readonly ends: Succession }

function startAlone(suspect: Held, start: Start, parts: Counting): Suspected {
  const isRepeated = deliveriesWithoutOutcome(suspect.lease) > 1
  return { over: startCounted(suspect, start, parts), isRepeated }
}

/** Resolves when what became of it is written. */
async function startCounted(suspect: Held, start: Start, { count, ends }: Counting): Promise<void> {
  const over = untilOver(suspect)
  const isCounted = await count(suspect)
  // A stop has given back what it found waiting, and this one was not.
  const started = isCounted ? start() : null
  if (started === null) ends.left(suspect)
  await over
}

/** What keeps a message from being run; it ends here. */
function checksOf({ settings: { maxDeliveries } }: Subscription, clock: Clock, ends: Succession) {
  // What waited here longer than its lease may be running elsewhere by now.
  const isOver = (held: Held): boolean => held.isLost || clock.now() >= held.deadline
  const isSpent = (held: Held): boolean => isExhausted(held.lease, maxDeliveries) && !isOver(held)
  return {
    isOver,
    isStartable(held: Held): boolean {
      if (isOver(held)) ends.left(held)
      else if (isSpent(held)) ends.finished(held, { kind: 'exhausted' }, null)
      else return true
      return false
    },
    /** Those that were delivered too often need neither a slot nor to be alone. Unless others of their key may stand behind them: they come when it is their turn. */
    isWorthRunning(held: Held): boolean {
      if (held.lease.isOrdered || !isSpent(held)) return true
      ends.finished(held, { kind: 'exhausted' }, null)
      return false
    },
  }
}

/** Of a suspect always: should the process die, this is the last that its log says. */
function tellDispatched(unit: readonly Held[], teller: Teller): void {
  for (const { lease } of unit) {
    const isAlone = isSuspect(lease)
    if (teller.isHeard || isAlone)
      teller.tell({
        kind: 'dispatched',
        ...ofMessage(lease),
        bytes: lease.body.byteLength,
        isSuspect: isAlone,
      })
  }
}

function eachOf(
  unit: readonly Held[],
  outcomes: readonly Outcome[],
  finished: (held: Held, outcome: Outcome) => void,
): void {
  for (const [at, outcome] of outcomes.entries()) {
    const held = unit[at]
    if (held !== undefined) finished(held, outcome)
  }
}

/** What each of a unit came to, in their order. */
type Ended = (unit: readonly Held[], outcomes: readonly Outcome[], durationMs: number) => void

const nothing = (): void => {}

/** Runs the handler, which can be told to give up meanwhile, and tells how it ended. Never rejects. */
function runUnit(
  unit: readonly Held[],
  { subscription, ended }: { readonly subscription: Subscription; readonly ended: Ended },
  { tools, signals, gate, failpoint }: DispatcherParts,
): Promise<void> {
  gate.started()
  const startedAt = tools.clock.now()
  tellDispatched(unit, tools.teller)
  const controller = signals.begin()
  const abort = (reason: unknown): void => controller.abort(reason)
  for (const held of unit) held.abort = abort
  const work = (): Promise<readonly Outcome[]> => deliver(unit, { subscription, controller }, tools)
  return (failpoint ? betweenFailpoints(work, failpoint) : work()).then((outcomes) => {
    for (const held of unit) held.abort = nothing
    signals.end(controller)
    gate.ended()
    ended(unit, outcomes, tools.clock.now() - startedAt)
  })
}

async function betweenFailpoints<T>(work: () => Promise<T>, failpoint: Failpoint): Promise<T> {
  await failpoint.reach('before_handler')
  const result = await work()
  await failpoint.reach('after_handler')
  return result
}
