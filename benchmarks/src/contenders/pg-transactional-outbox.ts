import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import type { Body, Driver, DriverInput } from './driver.ts'
import { Client, inTransaction, Pool, peer } from './peer.ts'

type Options = Readonly<Record<string, unknown>>
type SetupStep = (options: Options) => string

interface MessageHandler {
  handle(message: { readonly payload: Body }): Promise<void>
}

interface Settings extends Options {
  readonly message?: Options
  /** Messages have one of so many segments; else each has one of its own. */
  readonly keys?: number
  readonly queues?: number
}

interface PgTransactionalOutbox {
  readonly DatabaseSetup: Readonly<
    Record<'dropAndCreateTable' | 'createPollingFunction' | 'setupPollingIndexes', SetupStep>
  >
  getDisabledLogger(): unknown
  initializeMessageStorage(
    config: Options,
    logger: unknown,
  ): (message: Options, client: pg.ClientBase) => Promise<void>
  initializePollingMessageListener(
    config: Options,
    handlers:
      | MessageHandler
      | readonly (MessageHandler & Readonly<Record<'aggregateType' | 'messageType', string>>)[],
    logger: unknown,
  ): [shutdown: () => Promise<void>]
}

const setupConfig = {
  outboxOrInbox: 'outbox',
  schema: 'public',
  table: 'outbox',
  nextMessagesSchema: 'public',
  nextMessagesName: 'next_outbox_messages',
}

export function openPgTransactionalOutbox({ url, settings }: DriverInput): Driver {
  const library: PgTransactionalOutbox = peer('pg-transactional-outbox')
  const logger = library.getDisabledLogger()
  const { message: messageOptions, keys, queues = 1, ...listenerSettings } = settings as Settings
  const typeOf = (n: number): string => `bench-${n % queues}`
  const config = {
    outboxOrInbox: 'outbox',
    dbListenerConfig: { connectionString: url },
    dbHandlerConfig: { connectionString: url },
    settings: {
      dbSchema: 'public',
      dbTable: 'outbox',
      nextMessagesFunctionName: 'next_outbox_messages',
      ...listenerSettings,
    },
  }
  const store = library.initializeMessageStorage(config, logger)
  const messageOf = (payload: Body): Options => ({
    id: randomUUID(),
    aggregateType: 'bench',
    aggregateId: String(payload.n),
    messageType: typeOf(payload.n),
    // Distinct ones: without, it takes one message at a time.
    segment: String(keys === undefined ? payload.n : payload.n % keys),
    payload,
    ...messageOptions,
  })
  let pool: pg.Pool | undefined
  let shutdown: (() => Promise<void>) | undefined
  const storeAll = async (messages: readonly Options[]): Promise<void> => {
    // All on their way at once: it has no statement for many.
    await inTransaction(pool!, (client) => Promise.all(messages.map((message) => store(message, client))))
  }
  return {
    async setup() {
      const { dropAndCreateTable, createPollingFunction, setupPollingIndexes } = library.DatabaseSetup
      const client = new Client({ connectionString: url })
      await client.connect()
      for (const step of [dropAndCreateTable, createPollingFunction, setupPollingIndexes])
        await client.query(step(setupConfig))
      await client.end()
    },
    async openPublisher() {
      pool = new Pool({ connectionString: url, max: 4 })
    },
    publishMany: (bodies) => storeAll(bodies.map(messageOf)),
    publishOne: (client, body) => store(messageOf(body), client),
    publishTimers: (bodies) =>
      storeAll(bodies.map((body) => ({ ...messageOf(body), lockedUntil: new Date(body.at!).toISOString() }))),
    async openConsumer() {},
    async consume(handler) {
      const handle = async ({ payload }: { readonly payload: Body }): Promise<void> => handler(payload)
      const handlers = Array.from({ length: queues }, (_, n) => ({
        aggregateType: 'bench',
        messageType: typeOf(n),
        handle,
      }))
      const given = queues === 1 ? { handle } : handlers
      ;[shutdown] = library.initializePollingMessageListener(config, given, logger)
    },
    async [Symbol.asyncDispose]() {
      await shutdown?.()
      await pool?.end()
    },
  }
}
