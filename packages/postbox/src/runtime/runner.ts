import type { OutboxError } from '../core/errors.ts'
import type { OutboxEvent, Teller, Telling, Told, WarningCode } from '../core/events.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import { warningsOf } from '../core/warnings.ts'
import type { Clock } from './clock.ts'
import { before, statementTimeout } from './deadline.ts'
import { assertSchema } from './migrate.ts'
import { orderMismatch, registerOrders } from './register-orders.ts'
import type { Settled } from './settle-reports.ts'
import type { Subscription } from './subscription.ts'
import { assembleWorks, listenOf, statementTimeoutMs, type Works, type WorksParts } from './works.ts'

/** An outbox at work. Disposing it stops it: `await using running = await outbox.start()`, inside a function. */
export interface Running extends AsyncDisposable {
  /** Claims nothing more, gives back what was not started, lets handlers finish, writes what became of them, resolves. Never rejects. */
  stop(): Promise<void>
}

/** What an outbox at work can tell of itself. */
export interface Runner extends Running {
  readonly settled: Settled
  /** Resolves when nothing is ready and nothing is in hand. Rejects then, if nothing of a queue may be claimed: its order is not the one it has here. */
  untilEmpty(): Promise<void>
  /** What keeps messages from being delivered, and what only makes them late. */
  readonly troubles: { readonly failing: readonly string[]; readonly slowing: readonly string[] }
}

/** The subscriptions of an outbox: those there are, and (while it runs) whom to tell of a new one. */
export interface Registry {
  readonly subscriptions: Subscription[]
  onAdded: ((subscription: Subscription) => void) | null
}

export interface RunnerParts extends Omit<WorksParts, 'teller'> {
  readonly telling: Telling
  readonly stopTimeoutMs: number
}

// How long handlers get after their signal aborted, before stop() no longer waits for them.
const graceMs = 1_000

/**
 * Checks the schema, then starts the loops: one engine for all subscriptions, those added later included.
 *
 * Stopping has two phases. First nothing more is claimed, and what was claimed and not started goes back at once, for other processes to
 * take. Then handlers finish within the time that they have; those that do not are told to give up; what they came to is written.
 */
export async function startRunner(registry: Registry, given: RunnerParts): Promise<Runner> {
  await checkTables(registry, given)
  // An `orm` that is none is told now, and not by the first message.
  await given.open()
  const halt = new AbortController()
  const abandon = new AbortController()
  const giveUp = new AbortController()
  const emptyHanded = new AbortController()
  const handlers = new Map<string, string>()
  const teller = withHandler(given.telling, handlers)
  const works = assembleWorks(
    { ...given, teller },
    {
      halt: halt.signal,
      abandon: abandon.signal,
      giveUp: giveUp.signal,
      emptyHanded: emptyHanded.signal,
    },
  )
  const { engine, hand, lane, listener, clock } = works
  const stopHearing = hearIdleErrors(given, teller)
  const serve = (subscription: Subscription): void => {
    for (const queue of subscription.queues) handlers.set(queue, subscription.name)
    for (const warning of warningsOf(subscription)) teller.tell({ kind: 'warning', ...warning })
    works.serve(subscription)
  }
  registry.subscriptions.forEach(serve)
  registry.onAdded = serve
  warnAtStart(registry, given, teller)
  const looping = engine.run(halt.signal)
  const keeping = works.keep()

  const finish = async (): Promise<boolean> => {
    await looping
    await hand.untilEmpty()
    await works.takeLeave()
    emptyHanded.abort()
    await Promise.all([keeping, listener?.ended])
    await lane.close()
    stopHearing()
    return true
  }
  const stopAll = async (): Promise<void> => {
    registry.onAdded = null
    halt.abort()
    const finished = finish()
    if (await within(finished, given.stopTimeoutMs, clock)) return
    abandon.abort(outOfTime(given.stopTimeoutMs))
    if (await within(finished, graceMs, clock)) return
    // They may run for ever: nothing of ours stays behind for them. What they come to is still written, on any connection.
    giveUp.abort()
    emptyHanded.abort()
    void lane.close().then(stopHearing)
    teller.tell({ kind: 'drain_timeout', stopTimeoutMs: given.stopTimeoutMs, messages: hand.held.size })
  }
  let stopping: Promise<void> | null = null
  const stop = (): Promise<void> => {
    stopping ??= stopAll()
    return stopping
  }
  return {
    stop,
    [Symbol.asyncDispose]: stop,
    settled: works.settler.settled,
    async untilEmpty() {
      await engine.untilEmpty()
      const [queue] = engine.mismatched
      if (queue !== undefined) throw orderMismatch(given.names, queue)
    },
    get troubles() {
      return troublesOf(works)
    },
  }
}

/** They are as this build knows them, and those who work with them agree on which queues are ordered. */
async function checkTables({ subscriptions }: Registry, given: RunnerParts): Promise<void> {
  const { database, names, queues: map } = given
  const inTime = (work: Promise<unknown>, what: string): Promise<unknown> =>
    before(work, statementTimeoutMs, () => statementTimeout(what, statementTimeoutMs))
  await inTime(assertSchema(database, names), 'reading the schema version')
  const served = subscriptions.flatMap(({ queues }) => queues)
  await inTime(registerOrders(database, names, { map, served }), 'comparing the order of queues')
}

function troublesOf({ engine, settler, listener }: Works): Runner['troubles'] {
  const isDeaf = listener !== null && listener.ear === null
  return {
    failing: [
      ...(engine.failures > 0 ? [`the last ${engine.failures} claims failed`] : []),
      ...engine.mismatched.map(
        (queue) => `nothing of queue "${queue}" is claimed: it is in the order of its keys`,
      ),
      ...(settler.isStuck ? ['what became of messages cannot be written'] : []),
    ],
    slowing: isDeaf ? ['it does not listen: messages are found by polling'] : [],
  }
}

/** True when the promise settles in time. The timer is cleared either way, so that a stopped process can end. */
async function within(promise: Promise<boolean>, ms: number, clock: Clock): Promise<boolean> {
  const timer = new AbortController()
  try {
    return await Promise.race([promise, clock.sleep(ms, timer.signal).then(() => false)])
  } finally {
    timer.abort()
  }
}

function outOfTime(ms: number): OutboxError {
  return runtimeError('OUTBOX_STOPPING', `the outbox stops, and the ${ms} ms that handlers have are over`)
}

/** With pg, a pool whose idle connection breaks ends the process when nobody listens. */
function hearIdleErrors({ database, listenDatabase }: RunnerParts, teller: Teller): () => void {
  const stops = [...new Set([database, listenDatabase])].map((one) =>
    one.onIdleError?.((error) => {
      const message = 'an idle connection broke'
      teller.tell({ kind: 'warning', code: 'idle_connection_lost', message, fields: {}, error })
    }),
  )
  return () => {
    for (const stop of stops) stop?.()
  }
}

/** Every event about a queue names its handler. */
export function withHandler(
  { tell, isHeard }: Telling,
  handlers: Pick<ReadonlyMap<string, string>, 'get'>,
): Teller {
  const named = (event: Told): OutboxEvent => {
    if (!('queue' in event) || event.queue === undefined) return event as OutboxEvent
    return { ...event, handler: handlers.get(event.queue) } as OutboxEvent
  }
  return { tell: (event) => tell(named(event)), isHeard }
}

function warnAtStart({ subscriptions }: Registry, given: RunnerParts, teller: Teller): void {
  const { capacity } = given.database
  const warn = (code: WarningCode, message: string, fields = {}): void =>
    teller.tell({ kind: 'warning', code, message, fields })
  if (subscriptions.length === 0 && !given.internals?.mayBeEmpty)
    warn('no_subscribers', 'started without subscribers: call subscribe() before or after start()')
  if (given.wake === 'poll' || listenOf(given) !== null) return
  if (capacity !== null && given.database === given.listenDatabase) {
    const message =
      'the pool is too small to listen: messages are found by polling. An outbox keeps two connections, and handlers need their own'
    warn('pool_too_small', message, { max: capacity, needed: 3 })
  } else {
    warn('cannot_listen', 'this client cannot listen: messages are found by polling')
  }
}
