// The engine over fake parts: claims that wait for their answer, a waker that is sure to be woken, queues with the room that is said.
import type { QueueMap } from '../../packages/postbox/src/core/queues.ts'
import {
  resolveSubscribeOptions,
  type SubscribeOptions,
} from '../../packages/postbox/src/core/subscribe-options.ts'
import type { Demand, Found, Fresh } from '../../packages/postbox/src/runtime/claimer.ts'
import { createBelated } from '../../packages/postbox/src/runtime/claiming.ts'
import type { Dispatcher } from '../../packages/postbox/src/runtime/dispatcher.ts'
import { createEngine } from '../../packages/postbox/src/runtime/engine.ts'
import type { Failpoint } from '../../packages/postbox/src/runtime/failpoint.ts'
import { type Held, heldOf } from '../../packages/postbox/src/runtime/held.ts'
import type { Pause } from '../../packages/postbox/src/sql/pause-state.ts'
import { fakeClock } from './fake-clock.ts'
import { recordedEvents } from './recorded-events.ts'

/** Resolves when everything that could run without waiting has run. */
export const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export function leased(seq: number): Held {
  const fixed = { token: 'token', id: `id-${seq}`, seq: `${seq}`, queue: 'orders', key: null, headers: {} }
  const rest = {
    timerId: null,
    body: new Uint8Array(0),
    attempt: 1,
    deliveries: 1,
    createdAt: new Date(0),
    firstAttemptAt: null,
    claimedAt: new Date(0),
    generation: null,
  }
  return heldOf({ ...fixed, ...rest }, 30_000, 0)
}

/** A claim that was sent and waits for its answer. */
export interface Claim {
  readonly kind: 'claim' | 'sweep'
  readonly demands: readonly Demand[]
  /** Answers with what was found, by queue: nothing, in those that are not named. */
  find(found?: Readonly<Record<string, Partial<Found>>>): Promise<void>
  fail(error: Error): Promise<void>
}

/** A queue with as much room as the test says, and what it got. */
export function queueOf(queue: string, options: SubscribeOptions = {}, declared: QueueMap | null = null) {
  const taken: Held[] = []
  const givenBack: string[] = []
  const dispatcher = {
    subscription: {
      queues: [queue],
      settings: resolveSubscribeOptions(options),
      rules: { queues: declared },
    },
    room: 10,
    wantsMore: true,
    waiting: 0,
    take: (claimed: readonly Held[]) => void taken.push(...claimed),
    giveBack: (name: string) => void givenBack.push(name),
    close: () => {},
  }
  const setRoom = (room: number): void => void Object.assign(dispatcher, { room, wantsMore: room > 0 })
  const fake = dispatcher as unknown as Dispatcher & { wantsMore: boolean; waiting: number }
  return { dispatcher: fake, taken, givenBack, setRoom }
}

type Queue = Pick<ReturnType<typeof queueOf>, 'dispatcher'>

/** An engine that does not run yet. */
export function benchOf(
  queues: readonly Queue[],
  { failpoint, isHeard = true }: { failpoint?: Failpoint; isHeard?: boolean } = {},
) {
  const clock = fakeClock()
  const { claims, claimer } = fakeClaimer()
  const waker = fakeWaker()
  const { teller, told } = recordedEvents({ isHeard })
  const settler = { isStuck: false, waiting: 0 }
  const held = new Set<Held>()
  const hand = { held, hold: (claimed: readonly Held[]) => claimed.forEach((one) => void held.add(one)) }
  const { pauses, askPauses } = fakePauses()
  const names = { queues: 'outbox_queues' }
  const parts = { clock, names, claimer, waker, settler, hand, failpoint, teller, askPauses }
  const engine = createEngine(parts)
  for (const { dispatcher } of queues) engine.add(dispatcher)
  const halt = new AbortController()
  const state = { isOver: false }
  const run = (): Promise<void> => {
    void engine.run(halt.signal).then(() => {
      state.isOver = true
    })
    return idle()
  }
  const advance = (ms: number): Promise<void> => {
    clock.advance(ms)
    return idle()
  }
  return { engine, clock, claims, claimer, waker, told, settler, held, halt, state, pauses, run, advance }
}

/** An engine whose first look waits for its answer. */
export async function started(...queues: readonly Queue[]) {
  const bench = benchOf(queues)
  await bench.run()
  return bench
}

/** An engine over one queue that has looked, found nothing and sleeps. */
export async function asleep(found: Partial<Found> = {}) {
  const orders = queueOf('orders')
  const bench = await started(orders)
  await bench.claims[0]?.find({ orders: found })
  return { ...bench, orders }
}

export const kindsOf = (claims: readonly Claim[]) => claims.map(({ kind }) => kind)

function fakeClaimer() {
  const claims: Claim[] = []
  const claim = (demands: readonly Demand[], kind: Claim['kind']): Promise<readonly Found[]> =>
    new Promise((resolve, reject) => {
      const nothing = { held: [], isFull: false, nextDueAt: null, pause: null }
      const find: Claim['find'] = (found = {}) => {
        resolve(demands.map(({ queue }) => ({ queue, ...nothing, ...found[queue] })))
        return idle()
      }
      const fail: Claim['fail'] = (error) => {
        reject(error)
        return idle()
      }
      claims.push({ kind, demands, find, fail })
    })
  const claimer = {
    sweepMs: 0,
    claim,
    /** What was asked for before a look, each time, and what that finds: at once. */
    hasty: [] as Demand[],
    fresh: async (_: Demand): Promise<Partial<Fresh>> => ({}),
    async claimFresh(demand: Demand): Promise<Fresh> {
      claimer.hasty.push(demand)
      return { queue: demand.queue, held: [], isFull: false, ...(await claimer.fresh(demand)) }
    },
    keySettled: () => {},
    rounds: 0,
    beginRound: () => void claimer.rounds++,
    belated: createBelated(),
  }
  return { claims, claimer }
}

/** The table of queues, and how often it was asked. */
function fakePauses() {
  const pauses = { asked: 0, of: {} as Record<string, Pause>, failure: null as Error | null }
  const askPauses = async (queues: readonly string[]) => {
    pauses.asked++
    if (pauses.failure !== null) throw pauses.failure
    return queues.map((queue) => ({ queue, pause: pauses.of[queue] ?? null }))
  }
  return { pauses, askPauses }
}

function fakeWaker() {
  const waker = {
    isSafe: true,
    isListening: false,
    /** The queues that it was asked to lie down on, each time. */
    lain: [] as (readonly string[])[],
    up: [] as string[],
    /** What happens while it lies down. */
    meanwhile: async (): Promise<void> => {},
    async lieDown(queues: readonly string[]) {
      waker.lain.push(queues)
      await waker.meanwhile()
      return waker.isSafe
    },
    getUp: (queues: readonly string[]) => void waker.up.push(...queues),
    isClosed: false,
    close() {
      waker.isClosed = true
    },
  }
  return waker
}
