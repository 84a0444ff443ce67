import type pg from 'pg'
import { createTestOutbox, type TestOutboxOf } from 'postbox/testing'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { handleOrders, outbox, placeOrder } from './orders.ts'

const tea = { orderId: 1, item: 'tea' }
const ship = vi.fn(async () => {})
// A stand-in for the application's own transaction: its SQL is not what these tests are about.
const tx = { query: async () => ({ rows: [] }) } as unknown as pg.ClientBase
let box: TestOutboxOf<typeof outbox>

beforeEach(async () => {
  ship.mockReset()
  box = await createTestOutbox(outbox)
})
afterEach(() => box.dispose())

test('an order is published, and so is the question how it was', async () => {
  await placeOrder(tx, tea)

  expect(box.published('orders')).toMatchObject([{ body: tea }])
  expect(box.published('emails')).toMatchObject([{ body: { orderId: 1, text: 'How was it?' } }])
})

test('an order is shipped, and the customer hears of it', async () => {
  handleOrders({ ship })

  await outbox.publishNow('orders', tea) // returns when the handler has run

  expect(ship).toHaveBeenCalledWith(tea)
  expect(box.published('emails')).toMatchObject([{ body: { text: 'On its way' } }])
})

test('what is rolled back was never published', async () => {
  handleOrders({ ship })

  await box.transaction(async (tx) => {
    await outbox.publish(tx, 'orders', tea)
    tx.rollback()
  })

  expect(box.published()).toEqual([])
  expect(ship).not.toHaveBeenCalled()
})

test('a warehouse that is closed is asked again a minute later', async () => {
  ship.mockRejectedValueOnce(new Error('closed'))
  handleOrders({ ship })

  await outbox.publishNow('orders', tea)
  expect(box.pending('orders')).toMatchObject([{ attempts: 1 }])
  await box.advance(60_000)

  expect(ship).toHaveBeenCalledTimes(2)
  expect(box.pending('orders')).toEqual([])
})

test('what we do not sell ends among the dead letters', async () => {
  handleOrders({ ship })

  await outbox.publishNow('orders', { orderId: 2, item: 'ivory' })

  expect(box.dead('orders')).toMatchObject([{ reason: 'terminal_error', body: { orderId: 2 } }])
})
