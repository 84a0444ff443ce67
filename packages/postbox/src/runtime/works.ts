import { randomUUID } from 'node:crypto'
import type { Database } from '../adapters/executor.ts'
import { describerOf } from '../core/describe-error.ts'
import type { Teller } from '../core/events.ts'
import type { Logger } from '../core/log.ts'
import { type Middleware, skinsOf } from '../core/middleware.ts'
import { isOrdered, type QueueMap } from '../core/queues.ts'
import type { StorageModes } from '../core/storage-modes.ts'
import type { SubscribeSettings } from '../core/subscribe-options.ts'
import type { Names } from '../sql/names.ts'
import { pauseFrom } from '../sql/pause-state.ts'
import { readPauses } from '../sql/read-pauses.ts'
import { tellQueues } from '../sql/tell-queues.ts'
import { heardWake } from '../sql/wake.ts'
import { createAlarms } from './alarms.ts'
import { createBreath } from './breath.ts'
import { createClaimers } from './claimers.ts'
import { type Clock, systemClock } from './clock.ts'
import type { ContextTools } from './context.ts'
import { countSuspect } from './count-suspect.ts'
import type { DeliveryTools } from './deliver.ts'
import { createDispatcher, type Dispatcher } from './dispatcher.ts'
import { createEngine, type Engine } from './engine.ts'
import { type ExtendParts, extendNow } from './extend-lease.ts'
import type { Failpoint } from './failpoint.ts'
import { createGate, type Gate } from './gate.ts'
import { createHand, type Hand } from './hand.ts'
import type { Held } from './held.ts'
import { createLane, type Lane } from './lane.ts'
import { keepLeases } from './lease-keeper.ts'
import { keepListening, type Listener, type ListenerParts } from './listener.ts'
import type { ToldPause } from './pauses.ts'
import { createSettler, type Settler } from './settler.ts'
import { createSignals } from './signals.ts'
import { createSleeper } from './sleeper.ts'
import type { Subscription } from './subscription.ts'
import { transact } from './transact.ts'
import type { TransactParts } from './transaction-run.ts'
import { createWaker } from './waker.ts'

export interface WorksParts extends StorageModes {
  readonly database: Database
  /** Where to listen; the same one, unless the first is a pooler. */
  readonly listenDatabase: Database
  readonly names: Names
  readonly wake: 'quiet' | 'always' | 'poll'
  /** What each queue is; null: any name will do. */
  readonly queues: QueueMap | null
  /** Claims nothing of a newer one; null: whatever there is. */
  readonly generation: number | null
  readonly describeError: ((error: unknown) => string | null) | undefined
  readonly middleware: readonly Middleware[]
  /** Checks and encodes what handlers publish. */
  readonly draft: ContextTools['draft']
  /** Opens the transactions of handlers. */
  readonly open: TransactParts['open']
  readonly teller: Teller
  /** Where handlers write, by their context. */
  readonly log: Logger
  readonly internals?: Internals | undefined
}

/** What tests replace. */
export interface Internals {
  readonly clock?: Clock
  readonly failpoint?: Failpoint
  readonly statementTimeoutMs?: number
  /** Subscribers come later: no reason to warn. */
  readonly mayBeEmpty?: boolean
  /** Aborts when somebody's transaction ends that the inbox may wait for: on a clock that stands still nobody would look again. */
  readonly nextEnd?: () => AbortSignal
}

/** From one start to its stop: each says that a part of the work is over. */
export interface Phases {
  /** Claim nothing more. */
  readonly halt: AbortSignal
  /** Handlers must give up. */
  readonly abandon: AbortSignal
  /** What cannot be written now is left to its lease. */
  readonly giveUp: AbortSignal
  /** Nothing is in hand: no lease needs to be kept. */
  readonly emptyHanded: AbortSignal
}

/** The parts of an outbox at work, tied together. */
export interface Works {
  readonly clock: Clock
  readonly engine: Engine
  readonly hand: Hand
  readonly settler: Settler
  readonly lane: Lane
  /** null: it polls. */
  readonly listener: Listener | null
  serve(subscription: Subscription): void
  /**
   * Slots for a subscription, whose messages come from elsewhere than the engine: from the test kit. With a gate of their own: what a suspect
   * publishes there is delivered before its handler goes on.
   */
  dispatcher(subscription: Subscription): Dispatcher
  /** Keeps leases; resolves when that is no longer needed. */
  keep(): Promise<void>
  /** Tells others of what was left to them at the end. */
  takeLeave(): Promise<void>
}

export const statementTimeoutMs = 10_000
// Two connections are ours for life, to work and to listen, and the application needs one.
const enoughToListen = 3

export function assembleWorks(parts: WorksParts, phases: Phases): Works {
  const { names, teller, deadLetters, delivered, generation, internals = {} } = parts
  const { clock = systemClock, failpoint } = internals
  const timeout = { statementTimeoutMs: internals.statementTimeoutMs ?? statementTimeoutMs }
  const lane = createLane({ database: parts.database, ...timeout })
  const shared = { clock, teller, names, lane, failpoint, generation }
  const served = new Set<SubscribeSettings>()
  const wake = heardWake(parts.wake, parts.database)
  const writing = { ...shared, wake, deadLetters, delivered, giveUp: phases.giveUp }
  const breath = createBreath(clock)
  const changed = (): void => {
    breath.turned()
    engine.roomMade()
  }
  const settler = createSettler({ ...writing, changed })
  const listener = openListener(
    parts,
    {
      ...shared,
      ...timeout,
      notified: (queue) => engine.notified(queue),
      changed: () => engine.oweSweep(),
    },
    phases.halt,
  )
  // Others may publish quietly, whatever our own publishers do.
  const isQuiet = !parts.listenDatabase.singleSession
  const waker = createWaker({ listener, names, isQuiet, oweSweep: () => engine.oweSweep() })
  const hand = createHand({
    ...{ settler, clock, teller },
    describe: describerOf(parts.describeError),
    putBack: (queue, delayMs) => engine.putBack(queue, delayMs),
    emptied: () => engine.emptied(),
  })
  const askPauses = (queues: readonly string[]) => readPausesOn(lane, parts, queues)
  const claimer = createClaimers(shared)
  const engine: Engine = createEngine({ ...shared, claimer, waker, settler, hand, askPauses })
  const signals = createSignals(phases.abandon)
  const keeperSleeper = createSleeper(clock)
  const tools = toolsOf(parts, { ...writing, ...timeout, open: parts.open, rules: writing })
  const count = (suspect: Held): Promise<boolean> => countSuspect(shared, suspect)
  const { roomMade, keySettled } = engine
  const slots = { tools, signals, failpoint, count, breath, roomMade, keySettled }
  const gate = createGate(clock, phases.halt)
  const dispatcher = (subscription: Subscription, own: Gate): Dispatcher => {
    served.add(subscription.settings)
    keeperSleeper.wake()
    return createDispatcher(subscription, { ...slots, gate: own, desk: hand.desk(subscription) })
  }
  return {
    clock,
    engine,
    hand,
    settler,
    lane,
    listener,
    serve(subscription) {
      engine.add(dispatcher(subscription, gate))
    },
    dispatcher: (subscription) => dispatcher(subscription, createGate(clock, phases.halt)),
    async takeLeave() {
      if (engine.left.size > 0) await lane.run(tellQueues(names, [...engine.left])).catch(() => {})
    },
    keep: () =>
      keepLeases(
        { ...shared, held: hand.held, sleeper: keeperSleeper, shortestLeaseMs: () => shortestLease(served) },
        phases.emptyHanded,
      ),
  }
}

function openListener(
  parts: WorksParts,
  listening: Omit<ListenerParts, 'listen' | 'ownChannel'>,
  halt: AbortSignal,
): Listener | null {
  const listen = listenOf(parts)
  if (listen === null) return null
  return keepListening({ ...listening, listen, ownChannel: `postbox:${randomUUID()}` }, halt)
}

/** What deliveries need of all this. */
function toolsOf(
  { teller, log, draft, middleware }: WorksParts,
  transacting: TransactParts & ExtendParts,
): DeliveryTools {
  return {
    clock: transacting.clock,
    alarms: createAlarms(transacting.clock),
    teller,
    log,
    draft,
    consumeSkins: skinsOf(middleware, 'consume'),
    extend: (helds) => extendNow(transacting, helds),
    transact: (transaction) => transact(transaction, transacting),
  }
}

async function readPausesOn(
  lane: Lane,
  { names, queues: map }: WorksParts,
  queues: readonly string[],
): Promise<readonly ToldPause[]> {
  const unordered = queues.filter((queue) => !isOrdered(map, queue))
  const rows = await lane.run(readPauses(names, queues, unordered))
  return rows.map(({ queue, pause }) => ({ queue, pause: pauseFrom(pause) }))
}

function shortestLease(served: ReadonlySet<SubscribeSettings>): number {
  return Math.min(30_000, ...[...served].map(({ leaseMs }) => leaseMs))
}

/** How to listen; null: not at all, and messages are found by polling. */
export function listenOf({
  wake,
  database,
  listenDatabase,
}: Pick<WorksParts, 'wake' | 'database' | 'listenDatabase'>): NonNullable<Database['listen']> | null {
  const { listen, capacity } = listenDatabase
  if (wake === 'poll' || listen === undefined) return null
  const wouldLeaveNone = database === listenDatabase && (capacity ?? enoughToListen) < enoughToListen
  return wouldLeaveNone ? null : listen
}
