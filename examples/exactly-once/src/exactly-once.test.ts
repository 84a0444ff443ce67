import { PGlite } from '@electric-sql/pglite'
import { createOutbox } from 'postbox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBilling } from './billing.ts'
import { consume } from './consumer.ts'

let db: PGlite
const count = async (table: string): Promise<unknown> =>
  (await db.query(`select count(*)::int as count from ${table}`)).rows[0]

beforeAll(async () => {
  db = await PGlite.create() // takes some seconds
  await createOutbox({ database: db }).migrate()
  await db.exec('create table invoices (order_id int); create table parcels (order_id int)')
}, 60_000)
afterAll(() => db.close())

test('a message that is published twice with one id has one effect', async () => {
  const outbox = createBilling(db)
  const { id } = await outbox.publishNow('orders', { orderId: 1 })
  // By a producer that did not hear the answer.
  await outbox.publishNow('orders', { orderId: 1 }, { id })

  expect(await outbox.drain()).toMatchObject({ acked: 2 })

  expect(await count('invoices')).toEqual({ count: 1 })
})

test('a record that the broker delivers twice has one effect, and is acknowledged twice', async () => {
  const record = {
    topic: 'orders',
    partition: 3,
    offset: '1187',
    headers: { id: 'order-7 ü' },
    value: { orderId: 7 },
  }

  const acknowledged = [await consume(db, record), await consume(db, { ...record, offset: '1188' })]

  expect(acknowledged).toEqual([true, true])
  expect(await count('parcels')).toEqual({ count: 1 })
})

test('work that throws has no effect, and is done when it comes again', async () => {
  const { inbox } = createOutbox({ database: db })
  const message = { consumer: 'refunds', id: 'order-1' }
  const failing = db.transaction((tx) =>
    inbox.once(tx, message, () => Promise.reject(new Error('the bank is closed'))),
  )

  await expect(failing).rejects.toThrow('the bank is closed')
  expect(await db.transaction((tx) => inbox.once(tx, message, () => 'refunded'))).toEqual({
    ran: true,
    value: 'refunded',
  })
})

test('what is older than anything that may come again is forgotten', async () => {
  const { inbox } = createOutbox({ database: db })
  await db.exec(
    `update outbox_handled set handled_at = now() - interval '31 days' where consumer = 'shipping'`,
  )

  expect(await inbox.purge({ olderThanMs: 30 * 24 * 3_600_000 })).toEqual({ purged: 1 })
})
