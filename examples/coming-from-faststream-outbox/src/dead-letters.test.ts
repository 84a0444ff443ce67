import { createOutbox, type OutboxEvent, TerminalError, typed } from 'postbox'
import { createTestOutbox } from 'postbox/testing'
import { expect, test } from 'vitest'

test('what is dead is told once, kept with its history, and replayed under its own id', async () => {
  const told: OutboxEvent[] = []
  let isMended = false
  const outbox = createOutbox({
    source: 'shop',
    logger: false,
    // Where a metrics_recorder was: one function for all events.
    onEvent: (event) => void told.push(event),
    queues: { orders: { body: typed<number>() } },
  })
  const box = await createTestOutbox(outbox)
  outbox.subscribe('orders', function shipOrder() {
    if (!isMended) throw new TerminalError('no such customer')
  })
  const { id } = await outbox.publishNow('orders', 1, { headers: { type: 'order.placed' } })

  const [alert] = told.filter((event) => event.kind === 'dead')
  expect(alert).toMatchObject({
    ...{ id, type: 'order.placed', source: 'shop', target: 'orders', handler: 'shipOrder' },
    ...{ reason: 'terminal_error', attempts: 1, deliveries: 1 },
  })

  isMended = true
  expect(await outbox.deadLetters.replay(id, { by: 'ann@example.org' })).toEqual({
    replayed: true,
    lands: 'anywhere',
  })
  await box.drain()

  expect(box.dead()).toEqual([])
  expect(told.filter((event) => event.kind === 'acked')).toMatchObject([{ id, attempt: 1 }])
  await box.dispose()
})

test('a message of a newer generation waits for newer code, and nothing is counted against it', async () => {
  const outbox = createOutbox({ generation: 1, logger: false, queues: { orders: { body: typed<number>() } } })
  const box = await createTestOutbox(outbox)
  const runs: unknown[] = []
  outbox.subscribe('orders', ({ generation }) => {
    runs.push(generation)
    throw new TerminalError('made for code to come')
  })
  const { id } = await outbox.publishNow('orders', 1)

  await outbox.deadLetters.replay(id, { by: 'ann@example.org', generation: 2 })
  await box.drain()

  expect(runs).toEqual([1])
  expect(box.pending()).toMatchObject([{ id, generation: 2, attempts: 0, deliveries: 0 }])
  await box.dispose()
})
