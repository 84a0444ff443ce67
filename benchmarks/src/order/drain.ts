import pg from 'pg'
import { createOutbox, type Outbox } from 'postbox'
import type { Cost, TimingServer } from './server.ts'

/** A backlog, and how it is taken away. */
export interface Drain {
  readonly name: string
  readonly isOrdered: boolean
  /** How many keys the messages have, one after the other. */
  readonly keys: number
  /** @default what the outbox takes for itself */
  readonly concurrency?: number
}

const manyKeys = 10_000

/** Each ordered one beside its unordered twin: the same rows, the same indexes. */
export const drains: readonly Drain[] = [
  { name: 'unordered, 10,000 keys', isOrdered: false, keys: manyKeys },
  { name: 'ordered, 10,000 keys', isOrdered: true, keys: manyKeys },
  { name: 'unordered, 10,000 keys, concurrency 100', isOrdered: false, keys: manyKeys, concurrency: 100 },
  { name: 'ordered, 10,000 keys, concurrency 100', isOrdered: true, keys: manyKeys, concurrency: 100 },
  { name: 'unordered, one key', isOrdered: false, keys: 1 },
  { name: 'ordered, one key', isOrdered: true, keys: 1 },
  { name: 'ordered, one key, concurrency 1', isOrdered: true, keys: 1, concurrency: 1 },
]

const schema = 'drained'
const deadlineMs = 120_000

/** Handlers that do nothing: what is measured is the outbox. */
export async function measureDrain(server: TimingServer, drain: Drain, messages: number): Promise<Cost> {
  const pool = new pg.Pool({ connectionString: server.url, max: 4 })
  try {
    await server.query(`drop schema if exists ${schema} cascade`)
    const queues = { orders: drain.isOrdered ? { order: 'key' as const } : {} }
    const outbox = createOutbox({ database: pool, schema, queues, logger: false })
    await outbox.migrate()
    await server.query(
      `insert into ${schema}.outbox (id, queue, key, body)
       select gen_random_uuid(), 'orders', 'customer-' || n % $1::int, '{"orderId":100000,"cents":199}'
         from generate_series(1, $2::int) as n`,
      [drain.keys, messages],
    )
    await server.query(`vacuum analyze ${schema}.outbox`)
    return await server.cost(() => drainAll(outbox as Outbox, messages, drain.concurrency))
  } finally {
    await pool.end()
  }
}

async function drainAll(outbox: Outbox, messages: number, concurrency: number | undefined): Promise<void> {
  let handled = 0
  await new Promise<void>((resolve, reject) => {
    const late = (): void => reject(new Error(`${handled} of ${messages} came within ${deadlineMs} ms`))
    const timer = setTimeout(late, deadlineMs)
    const handler = (): void => {
      if (++handled < messages) return
      clearTimeout(timer)
      resolve()
    }
    outbox.subscribe('orders', handler, concurrency === undefined ? {} : { concurrency })
    outbox.start().catch(reject)
  }).finally(() => outbox.stop())
}
