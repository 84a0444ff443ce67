import type pg from 'pg'
import { createTestOutbox, type TestOutboxOf } from 'postbox/testing'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { handleOrders, outbox, payOrder, placeOrder } from './orders.ts'

const ship = vi.fn(async () => {})
// A stand-in for the application's own transaction.
const tx = { query: async () => ({ rows: [] }) } as unknown as pg.ClientBase
let box: TestOutboxOf<typeof outbox>

beforeEach(async () => {
  ship.mockReset()
  box = await createTestOutbox(outbox)
})
afterEach(() => box.dispose())

test('publishing runs the handler before it returns, and its follow-on is published with it', async () => {
  handleOrders({ ship })

  await outbox.publishNow('orders', { orderId: 1, item: 'tea' })

  expect(ship).toHaveBeenCalledWith(1)
  expect(box.published('reminders')).toMatchObject([{ body: { orderId: 1 } }])
})

test('a timer is armed once, and cancelled while it waits', async () => {
  await placeOrder(tx, 1, 'tea')
  const second = await outbox.publish(tx, 'reminders', { orderId: 1 }, { delayMs: 5, timerId: 'order 1' })

  expect(second).toBeNull()
  expect(await payOrder(tx, 1)).toBe(true)
  expect(await payOrder(tx, 1)).toBe(false)
})

test('a message that fails is run ten times in all, as before', async () => {
  ship.mockRejectedValue(new Error('closed'))
  handleOrders({ ship })

  await outbox.publishNow('orders', { orderId: 1, item: 'tea' })
  await box.advance(3_600_000)

  expect(ship).toHaveBeenCalledTimes(10)
  expect(box.dead('orders')).toMatchObject([{ reason: 'retry_terminal', attempts: 10 }])
})
