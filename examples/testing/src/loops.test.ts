import { createTestOutbox } from 'postbox/testing'
import { expect, test } from 'vitest'
import { outbox } from './orders.ts'

const day = 24 * 3_600_000

test('a week after the order the customer is asked how it was, not a day before', async () => {
  const box = await createTestOutbox(outbox, { mode: 'loop', now: new Date('2030-01-01T00:00:00Z') })
  const asked: Date[] = []
  outbox.subscribe('emails', () => void asked.push(box.now()))

  await outbox.publishNow('emails', { orderId: 1, text: 'How was it?' }, { delayMs: 7 * day })
  await box.advance(6 * day)
  expect(asked).toEqual([])
  await box.advance(1 * day)

  expect(asked).toEqual([new Date('2030-01-08T00:00:00Z')])
  await box.dispose()
})
