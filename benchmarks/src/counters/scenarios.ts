import type pg from 'pg'
import type { Handler, Outbox } from 'postbox'
import type { Workload } from './measurement.ts'

/** An outbox of its own, on connections whose work is counted. */
export interface Bench {
  readonly outbox: Outbox
  readonly pool: pg.Pool
}

export interface Scenario {
  readonly name: string
  readonly workload: Workload
  readonly messages: number
  /** The queue is in the order of its keys. */
  readonly isOrdered?: true
  /** Somebody sleeps on the queue while it is published to, and has to be woken. */
  readonly hasSleeper?: true
  /** Messages in the table at the end. @default all that were published, or none when they are consumed */
  readonly left?: number
  /** Before counting begins. */
  readonly prepare?: (bench: Bench) => Promise<void>
  readonly run: (bench: Bench) => Promise<void>
}

export const queue = 'orders'

const single = 1_000
const batch = 1_000
const batches = 10
const backlog = 5_000
const deadlineMs = 180_000

export const scenarios: readonly Scenario[] = [
  {
    name: 'publish: one per transaction',
    workload: 'publish',
    messages: single,
    run: (bench) => publishEach(bench, () => ({})),
  },
  {
    name: 'publish: with a key and two headers',
    workload: 'publish',
    messages: single,
    run: (bench) =>
      publishEach(bench, (index) => ({
        key: `customer-${String(index % 100).padStart(2, '0')}`,
        headers: { tenant: 'north', traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` },
      })),
  },
  {
    name: 'publish: to a key of an ordered queue',
    workload: 'publish',
    messages: single,
    isOrdered: true,
    run: (bench) => publishEach(bench, (index) => ({ key: keyOf(index) })),
  },
  {
    name: 'publish: with a timerId, due in an hour',
    workload: 'publish',
    messages: single,
    run: (bench) =>
      publishEach(bench, (index) => ({ timerId: `reminder-${100_000 + index}`, delayMs: 3_600_000 })),
  },
  {
    name: 'publish: one per transaction, somebody sleeps',
    workload: 'publish',
    messages: single,
    hasSleeper: true,
    run: (bench) => publishEach(bench, () => ({})),
  },
  {
    name: 'publishMany: ten batches of 1,000',
    workload: 'publish',
    messages: batches * batch,
    run: (bench) => publishBatches(bench, batches),
  },
  {
    name: 'consume: a backlog of 5,000, concurrency 100',
    workload: 'consume',
    messages: backlog,
    prepare: (bench) => publishBatches(bench, backlog / batch),
    run: consumeBacklog,
  },
  {
    name: 'consume: in order, a backlog of 5,000 in 1,000 keys',
    workload: 'consume',
    messages: backlog,
    isOrdered: true,
    prepare: (bench) => publishBatches(bench, backlog / batch, (index) => ({ key: keyOf(index) })),
    run: consumeBacklog,
  },
  {
    name: 'consume: in order, a backlog of 5,000 of one key',
    workload: 'consume',
    messages: backlog,
    isOrdered: true,
    prepare: (bench) => publishBatches(bench, backlog / batch, () => ({ key: keyOf(0) })),
    run: consumeBacklog,
  },
  {
    name: 'consume: each publishes one more',
    workload: 'consume',
    messages: backlog,
    left: backlog,
    prepare: (bench) => publishBatches(bench, backlog / batch),
    run: (bench) => settleBacklog(bench, (_, { publish }) => publish('emails', bodyOf(0))),
  },
  {
    name: 'consume: each is to be retried',
    workload: 'consume',
    messages: backlog,
    left: backlog,
    prepare: (bench) => publishBatches(bench, backlog / batch),
    run: (bench) => settleBacklog(bench, (_, { retry }) => retry({ afterMs: 3_600_000, error: 'not now' })),
  },
  {
    name: 'consume: each is rejected',
    workload: 'consume',
    messages: backlog,
    prepare: (bench) => publishBatches(bench, backlog / batch),
    run: (bench) => settleBacklog(bench, (_, { reject }) => reject('not ever')),
  },
  {
    name: 'consume: each is a timer',
    workload: 'consume',
    messages: backlog,
    prepare: (bench) =>
      publishBatches(bench, backlog / batch, (index) => ({
        timerId: `reminder-${100_000 + index}`,
        delayMs: 1,
      })),
    run: (bench) => settleBacklog(bench, () => {}),
  },
]

/** 30 bytes of JSON, whatever the index: the bytes of WAL must not depend on how far the count has come. */
function bodyOf(index: number): { readonly orderId: number; readonly cents: number } {
  return { orderId: 100_000 + index, cents: 199 }
}

/** A thousand keys, all of one length. */
function keyOf(index: number): string {
  return `customer-${String(index % 1_000).padStart(3, '0')}`
}

type OptionsOf = (index: number) => NonNullable<Parameters<Outbox['publish']>[3]>

async function publishEach({ outbox, pool }: Bench, optionsOf: OptionsOf): Promise<void> {
  await withClient(pool, async (client) => {
    for (let index = 0; index < single; index += 1) {
      await client.query('begin')
      await outbox.publish(client, queue, bodyOf(index), optionsOf(index))
      await client.query('commit')
    }
  })
}

async function publishBatches(
  { outbox, pool }: Bench,
  count: number,
  optionsOf: OptionsOf = () => ({}),
): Promise<void> {
  await withClient(pool, async (client) => {
    for (let index = 0; index < count; index += 1) {
      const bodies = Array.from({ length: batch }, (_, place) => bodyOf(index * batch + place))
      await client.query('begin')
      await outbox.publishMany(client, queue, bodies, (_, place) => optionsOf(index * batch + place))
      await client.query('commit')
    }
  })
}

async function withClient(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect()
  try {
    await work(client)
  } finally {
    client.release()
  }
}

async function consumeBacklog({ outbox }: Bench): Promise<void> {
  const seen = new Set<string>()
  const late = (): Error => new Error(`${seen.size} of ${backlog} messages came within ${deadlineMs} ms`)
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), deadlineMs)
    const handler = ({ id }: { readonly id: string }): void => {
      seen.add(id)
      if (seen.size < backlog) return
      clearTimeout(timer)
      resolve()
    }
    outbox.subscribe(queue, handler, { concurrency: 100 })
    outbox.start().catch(reject)
  }).finally(() => outbox.stop())
}

/** Until every message has been decided: none of them comes back while it counts. */
async function settleBacklog({ outbox }: Bench, handler: Handler): Promise<void> {
  outbox.subscribe(queue, handler, { concurrency: 100 })
  const { acked, retried, dead } = await outbox.drain({ deadlineMs })
  if (acked + retried + dead !== backlog)
    throw new Error(`${acked + retried + dead} of ${backlog} messages were settled within ${deadlineMs} ms`)
}
