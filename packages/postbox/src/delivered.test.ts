import { expect, test } from 'vitest'
import type { Database } from './adapters/executor.ts'
import { createDelivered, type DeliveredMessages } from './delivered.ts'
import { resolveNames } from './sql/names.ts'
import type { Statement } from './sql/statement.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })

function delivered(run: (statement: Statement<unknown>) => Promise<readonly unknown[]>): DeliveredMessages {
  const database = {
    run,
    transaction: (work: (tx: object) => unknown) => work({ run }),
    singleSession: false,
    capacity: null,
  }
  return createDelivered({
    database: () => database as unknown as Database,
    outbox: { names, queues: null, codec: undefined, maxBodyBytes: 1_000 },
  })
}

test.each<[string, (messages: DeliveredMessages) => Promise<unknown>]>([
  ['list', ({ list }) => list({ limit: 0 })],
  ['get', ({ get }) => get('1')],
  ['purge of no age', ({ purge }) => purge({} as never)],
])('%s refuses what it cannot use before it sends anything', async (_, call) => {
  const sent: unknown[] = []
  const messages = delivered(async (statement) => [sent.push(statement)])

  await expect(call(messages)).rejects.toMatchObject({ code: 'OUTBOX_INVALID_OPTION' })
  expect(sent).toEqual([])
})

test.each<[string, (messages: DeliveredMessages) => Promise<unknown>]>([
  ['list', ({ list }) => list()],
  ['get', ({ get }) => get('01890000-0000-7000-8000-00000000000a')],
  ['purge', ({ purge }) => purge({ olderThanMs: 0 })],
])('%s says what to do where the table was never made', async (_, call) => {
  const missing = Object.assign(new Error('no such table'), { code: '42P01' })
  const refused = { code: 'OUTBOX_SCHEMA_MISSING', message: expect.stringContaining('outbox_delivered') }

  await expect(call(delivered(() => Promise.reject(missing)))).rejects.toMatchObject(refused)
})
