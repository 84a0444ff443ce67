import pg from 'pg'
import { createOutbox, type Outbox } from 'postbox'
import type { Cost, TimingServer } from './server.ts'

/** So many connections that publish and commit, one message or batch each time. */
export interface Publisher {
  readonly name: string
  readonly isOrdered: boolean
  readonly committers: number
  /** Messages per transaction, each of another key. @default 1 */
  readonly batch?: number
  /** All to one key: they wait for each other. @default false */
  readonly isHot?: boolean
}

const committers = [1, 16, 64]

export const publishers: readonly Publisher[] = [
  ...committers.flatMap((count) => [
    { name: `unordered, ${count} committers`, isOrdered: false, committers: count },
    { name: `ordered, ${count} committers`, isOrdered: true, committers: count },
  ]),
  { name: 'ordered, 16 committers of one key', isOrdered: true, committers: 16, isHot: true },
  ...[200, 1_000].flatMap((batch) => [
    { name: `unordered, 4 committers, ${batch} keys at once`, isOrdered: false, committers: 4, batch },
    { name: `ordered, 4 committers, ${batch} keys at once`, isOrdered: true, committers: 4, batch },
  ]),
]

const schema = 'published'

export async function measurePublish(
  server: TimingServer,
  publisher: Publisher,
  messages: number,
): Promise<Cost> {
  const pool = new pg.Pool({ connectionString: server.url, max: publisher.committers })
  try {
    await server.query(`drop schema if exists ${schema} cascade`)
    const queues = { orders: publisher.isOrdered ? { order: 'key' as const } : {} }
    const outbox = createOutbox({ database: pool, schema, queues, logger: false })
    await outbox.migrate()
    const clients = await Promise.all(Array.from({ length: publisher.committers }, () => pool.connect()))
    const cost = await server.cost(() => publishAll(outbox as Outbox, clients, { ...publisher, messages }))
    for (const client of clients) client.release()
    return cost
  } finally {
    await pool.end()
  }
}

async function publishAll(
  outbox: Outbox,
  clients: readonly pg.PoolClient[],
  { messages, batch = 1, isHot = false }: Publisher & { readonly messages: number },
): Promise<void> {
  let published = 0
  const keyOf = (n: number): string => (isHot ? 'hot' : `customer-${n % 10_000}`)
  const publishSome = async (client: pg.PoolClient): Promise<void> => {
    while (published < messages) {
      const from = published
      published += batch
      const bodies = Array.from({ length: batch }, (_, n) => ({ orderId: 100_000 + from + n, cents: 199 }))
      await client.query('begin')
      if (batch === 1) await outbox.publish(client, 'orders', bodies[0], { key: keyOf(from) })
      else await outbox.publishMany(client, 'orders', bodies, (_, n) => ({ key: keyOf(from + n) }))
      await client.query('commit')
    }
  }
  await Promise.all(clients.map(publishSome))
}
