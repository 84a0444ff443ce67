// The ordered queue on a store: its claims, and what operators do about its keys.
import { createKeys } from '../../packages/postbox/src/keys.ts'
import {
  claimInOrder as claimStatement,
  type OrderedMessageRow,
  type OrderedQueueRow,
} from '../../packages/postbox/src/sql/claim-in-order.ts'
import { joinKeys } from '../../packages/postbox/src/sql/join-keys.ts'
import { pauseFrom } from '../../packages/postbox/src/sql/pause-state.ts'
import { type Driven, wakeOf } from './driven.ts'
import { numberOf, type Places, toldBy, uuidOf } from './stored.ts'
import { type Answer, type Choice, hoursFrom, orderedQueue, type Step } from './terms.ts'

type Of<Kind extends Step['kind']> = Step & { readonly kind: Kind }

export async function claimInOrder(driven: Driven, step: Of<'claimInOrder'>): Promise<Answer> {
  const { store, places, told } = driven
  const rows = await store.database.run(claimStatement(store.names, inputOf(driven, step)))
  const row = rows.find((one) => one.kind === 'queue')!
  const messages = rows
    .filter((one): one is OrderedMessageRow => one.kind === 'message')
    .map((one) => ({
      ...toldBy(one, places, Number(row.now)),
      afterDead: one.afterdead === null ? null : numberOf(one.afterdead),
    }))
    .sort((a, b) => a.place - b.place)
  for (const message of messages)
    told.set(`${message.place} ${step.claim}`, { ...message, queue: orderedQueue })
  // Nothing else that is told of a paused queue is worth anything.
  const isPaused = pauseFrom(row.pause)?.isPaused === true
  const nextDue = row.nextdue === null || isPaused ? null : hoursFrom(0, Number(row.nextdue))
  const choice = {
    ...(isPaused ? nothingTold : choiceIn(row, places)),
    ...(driven.looksEverywhere ? { leftKeys: step.wanted.ends.map(({ key }) => key) } : {}),
    places: messages.map(({ place }) => place),
  }
  return { kind: 'claimedInOrder', found: { messages, nextDue, isPaused }, choice }
}

const nothingTold = { passed: null, leftKeys: [], isJoinDue: false }

function inputOf({ places, epochMs }: Driven, { claim, wanted, generation }: Of<'claimInOrder'>) {
  const { after, dueFrom, ends, ...one } = wanted
  const queue = {
    ...one,
    queue: orderedQueue,
    after: places.seqOf(after),
    dueFromMs: dueFrom === null ? null : epochMs(dueFrom),
    keys: ends.map(({ key, place }) => ({ key, after: places.seqOf(place) })),
  }
  return { token: uuidOf(claim), queues: [queue], generation }
}

function choiceIn(row: OrderedQueueRow, places: Places): Omit<Choice, 'places'> {
  return {
    passed: row.reached === null ? null : places.upTo(row.reached),
    leftKeys: JSON.parse(row.leftkeys ?? '[]'),
    isJoinDue: Number(row.joining) > 0,
  }
}

export async function join({ store }: Driven): Promise<Answer> {
  const [row] = await store.database.run(joinKeys(store.names, { queues: [orderedQueue] }))
  return { kind: 'joined', count: row!.joined }
}

export async function decide(
  { store }: Driven,
  { kind, key, by }: Of<'resumeKey' | 'skipKey'>,
): Promise<Answer> {
  const result = await keysOf(store)[kind === 'skipKey' ? 'skip' : 'resume'](orderedQueue, key, { by })
  return { kind: 'decided', id: 'id' in result ? numberOf(result.id) : null }
}

export async function listKeys(driven: Driven, limit: number): Promise<Answer> {
  const { store, places, epochMs, now } = driven
  const keys = keysOf(store)
  const hours = (time: Date | null): number | null => hoursFrom(epochMs(now), time?.getTime() ?? null)
  const all = []
  for (let after: string | null | undefined; after !== null; ) {
    const page = await keys.list({ queue: orderedQueue, limit, ...(after === undefined ? {} : { after }) })
    all.push(...page.items)
    after = page.next
  }
  return {
    kind: 'keys',
    keys: all.map(({ key, state, head, waiting }) => ({
      ...{ key, state, waiting: waiting.count },
      head: {
        place: places.of(head.seq),
        id: numberOf(head.id),
        attempts: head.attempts,
        reason: head.reason,
        error: head.error,
        since: hours(head.since),
        dueAt: hours(head.dueAt),
      },
    })),
  }
}

function keysOf(store: Driven['store']) {
  const { database, names } = store
  return createKeys({ database: () => database, outbox: { names, wake: wakeOf(store) } })
}
