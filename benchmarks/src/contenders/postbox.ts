import type pg from 'pg'
import { constant, createOutbox, type Outbox, type PublishOptions, type SubscribeOptions } from 'postbox'
import { type Body, byQueue, type Driver, type DriverInput } from './driver.ts'
import { inTransaction, Pool, peer } from './peer.ts'

/** Beside the options of a subscription, those of which we measure what they cost. */
interface Settings extends SubscribeOptions {
  /** Messages have one of so many. */
  readonly keys?: number
  readonly order?: 'key'
  readonly schema?: 'zod'
  readonly onEvent?: true
  readonly queues?: number
  /** Of failed messages. */
  readonly retryAfterMs?: number
}

export function openPostbox({ url, settings }: DriverInput): Driver {
  const {
    keys,
    order,
    schema,
    onEvent,
    queues: count = 1,
    retryAfterMs,
    ...subscription
  } = settings as Settings
  const names = Array.from({ length: count }, (_, index) => `bench-${index}`)
  const optionsOf = ({ n, at }: Body): PublishOptions => ({
    ...(keys === undefined ? {} : { key: `key-${n % keys}` }),
    ...(at === undefined ? {} : { at: new Date(at) }),
  })
  let pool: pg.Pool
  let outbox: Outbox
  let events = 0
  const open = (max: number): void => {
    const definition = { ...(order && { order }), ...(schema && { body: zodSchema() }) }
    pool = new Pool({ connectionString: url, max })
    outbox = createOutbox({
      database: pool,
      logger: false,
      queues: Object.fromEntries(names.map((name) => [name, definition])),
      ...(onEvent && { onEvent: () => (events += 1) }),
    }) as Outbox
  }
  const publishMany = async (bodies: readonly Body[]): Promise<void> => {
    const isPlain = keys === undefined && bodies[0]!.at === undefined
    const options = isPlain ? undefined : (body: unknown) => optionsOf(body as Body)
    await inTransaction(pool, async (client) => {
      for (const [index, part] of byQueue(bodies, count))
        await outbox.publishMany(client, names[index]!, part, options)
    })
  }
  return {
    async setup() {
      open(1)
      await outbox.migrate()
    },
    async openPublisher() {
      open(4)
    },
    publishMany,
    async publishOne(client, body) {
      await outbox.publish(client, names[body.n % count]!, body, optionsOf(body))
    },
    publishTimers: publishMany,
    async openConsumer() {
      // One that publishes as well has its pool by now.
      if (pool === undefined) open(4)
    },
    async consume(handler) {
      const retry = retryAfterMs === undefined ? {} : { retry: constant({ delayMs: retryAfterMs }) }
      for (const name of names)
        outbox.subscribe(name, ({ body }) => handler(body as Body), { ...subscription, ...retry })
      await outbox.start()
    },
    async [Symbol.asyncDispose]() {
      await outbox.stop()
      await pool.end()
    },
  }
}

interface Zod {
  object(shape: object): never
  number(): { optional(): unknown }
  string(): unknown
}

function zodSchema(): never {
  const { z } = peer<{ z: Zod }>('zod')
  return z.object({ n: z.number(), at: z.number().optional(), pad: z.string() })
}
