import { PGlite } from '@electric-sql/pglite'
import { createOutbox, LeaseLostError } from 'postbox'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createRefunds } from './refunds.ts'
import { createShipping } from './shipping.ts'

let db: PGlite
const rows = async (text: string): Promise<unknown[]> => (await db.query(text)).rows

beforeAll(async () => {
  db = await PGlite.create()
  await createOutbox({ database: db }).migrate()
  await db.exec(`
    create table parcels (order_id int check (order_id > 0));
    create table refunds (order_id int)`)
}, 60_000)
afterAll(() => db.close())
beforeEach(() => db.exec('truncate outbox, outbox_dead, parcels, refunds'))

test('the effect, what follows from it and the end of the message are one commit', async () => {
  const outbox = createShipping(db)
  await outbox.publishNow('orders', { orderId: 1 })

  expect(await outbox.drain()).toMatchObject({ acked: 1 })

  // Of the three the message is gone, and the others were written by one transaction.
  const written = 'select order_id, queue, p.xmin = o.xmin as "isOne" from parcels p, outbox o'
  expect(await rows(written)).toEqual([{ order_id: 1, queue: 'emails', isOne: true }])
})

test('work that fails leaves no effect and no follow-on, and is judged as any other failure', async () => {
  const outbox = createShipping(db)
  await outbox.publishNow('orders', { orderId: -1 })

  expect(await outbox.drain()).toMatchObject({ acked: 0, dead: 1 })

  expect(await rows('select from parcels union all select from outbox')).toEqual([])
  expect(await outbox.deadLetters.list({ reason: 'terminal_error' })).toMatchObject({ items: [{}] })
})

test('whoever has lost the lease is stopped before any work', async () => {
  const outbox = createOutbox({ database: db })
  const refusals: unknown[] = []
  outbox.subscribe('orders', async (_, { transaction }) => {
    // Another process has it by now: ours was paused for longer than its lease.
    await db.query('update outbox set lease_token = gen_random_uuid()')
    await transaction(() => expect.fail('it has worked')).catch((error) => refusals.push(error))
  })
  await outbox.publishNow('orders', 1)

  expect(await outbox.drain()).toMatchObject({ acked: 0 })

  expect(refusals[0]).toBeInstanceOf(LeaseLostError)
})

test('by an ORM it is the same, and with the inbox a message that was published twice has one effect', async () => {
  const outbox = createRefunds(db)
  const { id } = await outbox.publishNow('refunds', { orderId: 1 })
  await outbox.publishNow('refunds', { orderId: 1 }, { id })

  expect(await outbox.drain()).toMatchObject({ acked: 2 })

  expect(await rows('select order_id from refunds')).toEqual([{ order_id: 1 }])
})

test('a decision inside rolls back, and stands', async () => {
  const outbox = createRefunds(db)
  const { id } = await outbox.publishNow('refunds', { orderId: -1 })

  expect(await outbox.drain()).toMatchObject({ acked: 0, dead: 1 })

  expect(await outbox.deadLetters.get(id)).toMatchObject({ error: 'there is no such order' })
})
