import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { createTestOutbox, type TestOutboxOf } from 'postbox/testing'
import { handleOrders, type Order, outbox } from './orders.ts'

const tea = { orderId: 1, item: 'tea' }
const shipped: Order[] = []
let box: TestOutboxOf<typeof outbox>

beforeEach(async () => {
  shipped.length = 0
  box = await createTestOutbox(outbox)
})
afterEach(() => box.dispose())

test('an order is shipped, and the customer hears of it', async () => {
  handleOrders({ ship: async (order) => void shipped.push(order) })

  await outbox.publishNow('orders', tea)

  assert.deepEqual(shipped, [tea])
  assert.equal(box.published('emails').length, 1)
})

test('a warehouse that stays closed is asked three times in all', async () => {
  handleOrders({ ship: () => Promise.reject(new Error('closed')) })

  await outbox.publishNow('orders', tea)
  await box.advance(10 * 60_000)

  const [letter] = box.dead('orders')
  assert.equal(letter?.reason, 'retry_terminal')
  assert.equal(letter?.attempts, 3)
})
