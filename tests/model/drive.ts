// The steps of the model on a store, by the statements that the library itself sends.

import { unreachable } from '../../packages/postbox/src/core/unreachable.ts'
import { createPausing } from '../../packages/postbox/src/pausing.ts'
import { queuesOf } from '../../packages/postbox/src/runtime/claim-answer.ts'
import { cancelTimer } from '../../packages/postbox/src/sql/cancel-timer.ts'
import { claimMessages } from '../../packages/postbox/src/sql/claim-messages.ts'
import { insertMessage } from '../../packages/postbox/src/sql/insert-message.ts'
import { insertMessages, insertOne } from '../../packages/postbox/src/sql/insert-messages.ts'
import { eachRow } from '../../packages/postbox/src/sql/insert-plain.ts'
import { registerQueues } from '../../packages/postbox/src/sql/register-queues.ts'
import { replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import type { StoreSnapshot } from '../support/store-snapshot.ts'
import type { Store } from '../support/stores.ts'
import { claimInOrder, decide, join, listKeys } from './drive-order.ts'
import { settle } from './drive-settling.ts'
import { type Driven, draftFor, type Told, wakeOf } from './driven.ts'
import { type Look, lookAt } from './look.ts'
import { keptIn, numberOf, Places, stateIn, toldBy, uuidOf } from './stored.ts'
import { type Answer, type Ending, hoursFrom, type KeptMessage, orderedQueue, type Step } from './terms.ts'

/** A store that takes the steps of one sequence; empty at its beginning. */
export interface Driver {
  /** `now` is the model's clock before the step. */
  take(step: Step, now: number): Promise<Answer>
  /** Whether `look` is due: a look costs as much as a step, and only some of the steps cannot do without. */
  readonly isLookDue: boolean
  look(): Promise<Look>
  /** What is kept of delivered messages, in the order in which it was delivered. */
  lookAtDelivered(): Promise<readonly KeptMessage[]>
}

const mostStepsWithoutLook = 3

export async function driverOf(
  store: Store,
  settings: Pick<Driven, 'delivered' | 'looksEverywhere'>,
): Promise<Driver> {
  const places = new Places()
  const parts = { ...settings, store, places, told: new Map<string, Told>() }
  const orders = { ordered: [orderedQueue], others: [] }
  await store.database.run(registerQueues(store.names, orders))
  let seen: StoreSnapshot = await store.snapshot()
  let steps = 0
  let stepsWithoutLook = 0
  let isNeeded = false
  return {
    async take(step, now) {
      // A millisecond more with each step: times that are named in two steps are never the same.
      const offset = seen.now - now + ++steps
      const answer = await perform({ ...parts, now, epochMs: (time) => time + offset }, step)
      // A clock of whole milliseconds may stand still from one step to the next.
      if (Number.isInteger(seen.now)) await store.advance(1)
      stepsWithoutLook++
      isNeeded ||= needsLook(step)
      return answer
    },
    get isLookDue() {
      return isNeeded || stepsWithoutLook >= mostStepsWithoutLook
    },
    async look() {
      seen = await store.snapshot()
      places.learn(seen.messages.map(({ seq }) => seq))
      stepsWithoutLook = 0
      isNeeded = false
      return lookAt(stateIn(seen, places))
    },
    lookAtDelivered: async () => (await store.snapshot()).delivered.map((row) => keptIn(row, places)),
  }
}

/** The seqs of new messages are not told, or the clock was set. */
function needsLook(step: Step): boolean {
  const { kind } = step
  return (
    kind === 'replay' ||
    kind === 'join' ||
    kind === 'pass' ||
    (kind === 'settle' && step.settled.some(({ followOns }) => followOns.length > 0))
  )
}

async function perform(driven: Driven, step: Step): Promise<Answer> {
  switch (step.kind) {
    case 'publish':
      return publish(driven, step)
    case 'claim':
      return claim(driven, step)
    case 'claimInOrder':
      return claimInOrder(driven, step)
    case 'join':
      return join(driven)
    case 'resumeKey':
    case 'skipKey':
      return decide(driven, step)
    case 'listKeys':
      return listKeys(driven, step.limit)
    case 'pause':
    case 'resume':
      return pauseOrResume(driven, step)
    case 'settle': {
      const seqs = await settle(driven, step)
      const places = seqs.map((seq) => driven.places.of(seq)).sort((a, b) => a - b)
      return { kind: 'settled', places }
    }
    case 'cancel':
      return cancel(driven, step)
    case 'replay':
      return replay(driven, step)
    case 'pass':
      await driven.store.advance(step.ms)
      return { kind: 'nothing' }
    // Nobody tells the store.
    case 'crash':
      return { kind: 'nothing' }
    default:
      return unreachable(step)
  }
}

type Of<Kind extends Step['kind']> = Step & { readonly kind: Kind }

async function publish(driven: Driven, { drafts, ending }: Of<'publish'>): Promise<Answer> {
  const { store, places } = driven
  const options = { wake: wakeOf(store), mark: null }
  const made = drafts.map((draft) => draftFor(driven, draft))
  const [first, ...others] = made
  const timer = made.find(({ timerId }) => timerId !== null)
  const batch = { queue: first!.queue, drafts: made, conflict: timer?.conflict ?? 'none' }
  const statement =
    others.length === 0
      ? (first!.isOrdered ? insertOne : insertMessage)(store.names, first!, options)
      : insertMessages(store.names, batch, options)
  const rows = eachRow(await within(store, ending, statement), made)
  if (ending !== 'rollback') places.learn(rows.map(({ seq }) => seq))
  const seqs = new Map(rows.map(({ id, seq }) => [numberOf(id), seq]))
  const receipts = drafts.map(({ id }) => {
    const seq = seqs.get(id)
    if (seq === undefined) return null
    return { id, place: ending === 'rollback' ? null : places.of(seq) }
  })
  return { kind: 'published', receipts }
}

async function cancel({ store }: Driven, { queue, timer, ending }: Of<'cancel'>): Promise<Answer> {
  const rows = await within(store, ending, cancelTimer(store.names, { queue, timerId: timer, mark: null }))
  return { kind: 'cancelled', isCancelled: rows.length > 0 }
}

async function replay({ store }: Driven, step: Of<'replay'>): Promise<Answer> {
  const { kind: _, id, ...replay } = step
  const statement = replayDeadLetter(store.names, {
    ...replay,
    id: uuidOf(id),
    wake: wakeOf(store),
  })
  const [row] = await store.database.run(statement)
  return { kind: 'replayed', result: row?.answer as never, lands: row?.lands ?? null }
}

async function claim({ store, places, told, epochMs }: Driven, step: Of<'claim'>): Promise<Answer> {
  const asked = step.wanted.map(({ after, dueFrom, ...one }) => ({
    ...one,
    after: places.seqOf(after),
    dueFromMs: dueFrom === null ? null : epochMs(dueFrom),
  }))
  const rows = await store.database.run(
    claimMessages(store.names, {
      token: uuidOf(step.claim),
      queues: asked,
      generation: step.generation,
    }),
  )
  const queues = new Map(queuesOf({ rows, asked }).map((found) => [found.row.queue, found]))
  const found = step.wanted.map(({ queue }) => {
    const { row, due, fresh, pause } = queues.get(queue)!
    const messages = [...due, ...fresh].map((message) => toldBy(message, places, Number(row.now)))
    // Nothing else that is told of it is worth anything.
    if (pause?.isPaused) return { queue, messages, nextDue: null, lowest: null, isPaused: true }
    return {
      ...{ queue, messages, isPaused: false },
      nextDue: row.nextdue === null ? null : hoursFrom(0, Number(row.nextdue)),
      lowest: row.lowest === null ? null : places.of(row.lowest),
    }
  })
  for (const { queue, messages } of found)
    for (const message of messages) told.set(`${message.place} ${step.claim}`, { ...message, queue })
  return { kind: 'claimed', found }
}

async function pauseOrResume(
  { store }: Driven,
  { kind, queue, by }: Of<'pause' | 'resume'>,
): Promise<Answer> {
  const { database, names } = store
  const pausing = createPausing({
    database: () => database,
    outbox: { names, wake: wakeOf(store), queues: null },
  })
  const result = await pausing[kind](queue, { by })
  return 'because' in result
    ? { kind: 'paused', isChanged: false, by: result.by }
    : { kind: 'paused', isChanged: true, by: null }
}

/** Runs a statement of the application's, in the transaction that it is said to be in. */
async function within<Row>(store: Store, ending: Ending, statement: Statement<Row>): Promise<readonly Row[]> {
  if (ending === 'alone') return store.database.run(statement)
  const transaction = await store.begin()
  const rows = await transaction.run(statement).catch(async (error: unknown) => {
    // Its locks would hold up whatever comes next.
    await transaction.rollback()
    throw error
  })
  await transaction[ending]()
  return rows
}
