// Mode `sync`, in the order of keys: what a message is told of the one before it.
import { expect, onTestFinished, test } from 'vitest'
import type { DeadLetterStorage } from '../core/storage-modes.ts'
import { createTestOutbox } from './create-test-outbox.ts'

async function failing(deadLetters: DeadLetterStorage, failingHead: 'skip' | 'park') {
  const test = await createTestOutbox({ logger: false, deadLetters, queues: { orders: { order: 'key' } } })
  onTestFinished(test.dispose)
  const told: unknown[] = []
  test.outbox.subscribe(
    'orders',
    ({ body, afterDead }, context) => {
      told.push([body, afterDead])
      if (body === 'bad') context.reject('no')
    },
    { failingHead },
  )
  const publish = (bodies: readonly string[]) =>
    test.transaction((tx) => test.outbox.publishMany(tx, 'orders', bodies, { key: 'a' }))
  return { test, told, publish }
}

test.each(['table', 'in-place', 'discard'] as const)(
  'the message behind one that was skipped is told which (%s)',
  async (deadLetters) => {
    const { told, publish } = await failing(deadLetters, 'skip')

    const [dead] = await publish(['bad', 'next', 'last'])

    expect(told).toEqual([
      ['bad', null],
      ['next', dead!.id],
      ['last', null],
    ])
  },
)

test('the message behind one that an operator skips is told which', async () => {
  const { test, told, publish } = await failing('table', 'park')
  const [dead] = await publish(['bad', 'next'])

  await test.outbox.keys.skip('orders', 'a', { by: 'ann' })
  await test.drain()

  expect(told).toEqual([
    ['bad', null],
    ['next', dead!.id],
  ])
})
