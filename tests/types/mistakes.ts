// Typical mistakes, one each. What the compiler prints for them is part of the product: see messages.snap.md.

/** Stands before each mistake. */
export const prelude = `
import type { PGlite } from '@electric-sql/pglite'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { Kysely } from 'kysely'
import type { Pool, PoolClient } from 'pg'
import { type Context, createOutbox, defineSubscriber, exponential, type Message, OutboxError, typed } from 'postbox'
import type { Sql, TransactionSql } from 'postgres'
import { z } from 'zod'

declare const pool: Pool
declare const client: PoolClient
declare const sql: Sql
declare const db: PGlite
declare const drizzle: NodePgDatabase<{ orders: never }>
declare const kysely: Kysely<{ orders: { id: number } }>
const order = { orderId: 1 }
const queues = {
  orders: { body: z.object({ orderId: z.number(), lines: z.array(z.object({ sku: z.string() })).optional() }) },
  emails: { body: typed<{ to: string }>() },
}
const outbox = createOutbox({ database: pool, queues })
const onPostgresJs = defineSubscriber({ tax: {} }, 'tax', (_, context: Context<any, TransactionSql>) => context.ack())
`

/** What went wrong → how it is written. */
export const mistakes: Readonly<Record<string, string>> = {
  'a queue that does not exist': "await outbox.publish(client, 'ordesr', order)",
  'a pool for a transaction': "await outbox.publish(pool, 'orders', order)",
  'the postgres.js client for a transaction': "await outbox.publish(sql, 'orders', order)",
  'the PGlite instance for a transaction': "await outbox.publish(db, 'orders', order)",
  'the Drizzle database for a transaction': "await outbox.publish(drizzle, 'orders', order)",
  'the Kysely instance for a transaction': "await outbox.publish(kysely, 'orders', order)",
  'a client that was not awaited': "await outbox.publish(pool.connect(), 'orders', order)",
  'an object that is no client': "await outbox.publish({ run: () => [] }, 'orders', order)",
  'no transaction': "await outbox.publish('orders', order)",
  'no transaction, with options': "await outbox.publish('orders', order, { key: 'customer-7' })",
  'undefined for a transaction': "await outbox.publish(undefined, 'orders', order)",
  'a pool or a client for a transaction': "await outbox.publish(pool as Pool | PoolClient, 'orders', order)",
  'a query that gives no rows':
    "await outbox.publish({ query: async () => 1, inTransaction: true }, 'orders', order)",
  'a pool for `in`': 'outbox.in(pool)',
  'a property of the wrong type': "await outbox.publish(client, 'orders', { orderId: '1' })",
  'a misspelt property': "await outbox.publish(client, 'orders', { orderID: 1 })",
  'the body of another queue': "await outbox.publish(client, 'emails', order)",
  'no body': "await outbox.publish(client, 'orders')",
  'one body for many': "await outbox.publishMany(client, 'orders', order)",
  'a delay and a time': "await outbox.publish(client, 'orders', order, { delayMs: 1, at: new Date() })",
  'a time as text': "await outbox.publish(client, 'orders', order, { at: '2026-01-01' })",
  'a misspelt option of publish': "await outbox.publish(client, 'orders', order, { delay: 1_000 })",
  'a misspelt option for each':
    "await outbox.publishMany(client, 'orders', [order], (body) => ({ kee: body.orderId }))",
  'a queue that does not exist, for pending': "await outbox.pending(client, { queue: 'ordesr' })",
  'a receipt that may be null':
    "const { id } = await outbox.publish(client, 'orders', order, { timerId: 'reminder' })",
  'a misspelt option of subscribe': "outbox.subscribe('orders', () => {}, { concurency: 3 })",
  'a misspelt property in a handler': "outbox.subscribe('orders', (message) => message.body.orderID)",
  'a handler of other bodies':
    "outbox.subscribe('orders', (message: Message<'orders', { to: string }>) => message.id)",
  'a changed message': "outbox.subscribe('orders', (message) => { message.body = order })",
  'a queue that does not exist, in a list': "outbox.subscribe(['orders', 'emials'], () => {})",
  'a property of only one of two messages':
    "outbox.subscribe(['orders', 'emails'], (message) => message.body.to)",
  'a follow-on to a queue that does not exist':
    "outbox.subscribe('orders', (_, context) => context.publish('emials', { to: 'ann' }))",
  'a follow-on with the body of another queue':
    "outbox.subscribe('orders', (_, context) => context.publish('emails', order))",
  'a misspelt option of a decision':
    "outbox.subscribe('orders', (_, context) => context.retry({ after: 5 }))",
  'a retry policy that is none': "outbox.subscribe('orders', () => {}, { retry: { maxAttempts: 3 } })",
  'a retry policy that gives no number': "outbox.subscribe('orders', () => {}, { retry: () => 'soon' })",
  'a misspelt option of a retry policy': 'exponential({ maxAttempt: 3 })',
  'a misspelt property in a handler of batches':
    "outbox.subscribeBatch('orders', (messages) => messages.map(({ body }) => body.orderID))",
  'an option of batches for single messages': "outbox.subscribe('orders', () => {}, { size: 5 })",
  'several queues for a batch': "outbox.subscribeBatch(['orders'], () => {})",
  'a subscriber of a queue that does not exist': "defineSubscriber(queues, 'ordesr', () => {})",
  'a subscriber with a misspelt property': "defineSubscriber(queues, 'orders', ({ body }) => body.orderID)",
  'a subscriber of another outbox':
    "createOutbox({ queues: { bills: {} } }).subscribe(defineSubscriber({ tax: {} }, 'tax', () => {}))",
  'a misspelt member of a middleware': 'createOutbox({ middleware: [{ publsh: async () => [] }] })',
  'a header of a middleware that is no text':
    'createOutbox({ middleware: [{ publish: (_, next) => next({ tenant: 7 }) }] })',
  'a misspelt kind of event': "createOutbox({ onEvent: (event) => event.kind === 'aked' })",
  'a place for dead letters that there is not': "createOutbox({ deadLetters: 'tabel' })",
  'a misspelt option of createOutbox': 'createOutbox({ databse: pool })',
  'a connection string for a database': "createOutbox({ database: 'postgres://localhost/shop' })",
  'a client for a database': 'createOutbox({ database: client })',
  'a client for an ORM': 'createOutbox({ database: pool, orm: client })',
  'a handler of the transactions of another client':
    "createOutbox({ database: sql }).subscribe('tax', (_, context: Context<any, PoolClient>) => context.ack())",
  'a subscriber of the transactions of another client':
    'createOutbox({ database: pool, queues: { tax: {} } }).subscribe(onPostgresJs)',
  'a schema that stands for a queue':
    'createOutbox({ queues: { orders: z.object({ orderId: z.number() }) } })',
  'an error code that does not exist': "OutboxError.is(new Error('no'), 'OUTBOX_NO_DATABSE')",
}
