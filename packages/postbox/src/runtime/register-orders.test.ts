import { expect, test } from 'vitest'
import type { Executor } from '../adapters/executor.ts'
import { resolveNames } from '../sql/names.ts'
import type { QueueOrders } from '../sql/register-queues.ts'
import { registerOrders } from './register-orders.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })

function databaseOf(...differing: readonly string[]) {
  const asked: QueueOrders[] = []
  const run: Executor['run'] = async ({ input }) => {
    asked.push(input as unknown as QueueOrders)
    return differing.map((name) => ({ name })) as never
  }
  return { database: { run } as Executor, asked }
}

const map = { orders: { order: 'key' }, mails: {} } as const

test('all queues of the map and all that are served are compared, each once', async () => {
  const { database, asked } = databaseOf()
  await registerOrders(database, names, { map, served: ['orders', 'letters', 'letters'] })
  await registerOrders(database, names, { map: null, served: ['orders'] })

  expect(asked).toEqual([
    { ordered: ['orders'], others: ['mails', 'letters'] },
    { ordered: [], others: ['orders'] },
  ])
})

test('whoever has no queues asks nobody', async () => {
  const { database, asked } = databaseOf('orders')
  await registerOrders(database, names, { map: null, served: [] })

  expect(asked).toEqual([])
})

test('a queue that others have in order keeps one without from starting, and is named', async () => {
  const { database } = databaseOf('mails')

  await expect(registerOrders(database, names, { map, served: [] })).rejects.toMatchObject({
    code: 'OUTBOX_ORDER_MISMATCH',
    message: expect.stringContaining(
      `queue \`"mails"\` (string) is in the order of its keys, as "public"."outbox_queues" says`,
    ),
  })
})
