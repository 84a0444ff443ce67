import { PGlite } from '@electric-sql/pglite'
import { adr054, createOutbox, TerminalError, typed } from 'postbox'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

let db: PGlite
let isMended = false
const rowsOf = async (text: string, values: unknown[] = []) => (await db.query(text, values)).rows

beforeAll(async () => {
  db = await PGlite.create() // takes some seconds
  await createOutbox({ database: db }).migrate()
  await db.exec('create table invoices (order_id int)')
}, 60_000)
afterAll(() => db.close())
beforeEach(() => db.exec('truncate outbox, outbox_handled, invoices'))

/** D1: no table of dead letters. What has failed stays where it lies. */
function createBilling() {
  isMended = false
  const outbox = createOutbox({
    database: db,
    deadLetters: 'in-place',
    generation: 1,
    logger: false,
    queues: { orders: { body: typed<number>() } },
  })
  outbox.subscribe(
    'orders',
    async function billOrder({ id, body }, context) {
      if (!isMended) throw new TerminalError('no such customer')
      // D8, event_handled: checked and written in the transaction that also ends the message.
      await context.transaction(async (tx) => {
        const handled = await outbox.inbox.once(tx, { consumer: 'billing', id }, () =>
          tx.query('insert into invoices (order_id) values ($1)', [body]),
        )
        if (!handled.ran && handled.because === 'busy') context.snooze(1_000)
      })
    },
    { retry: adr054() },
  )
  return outbox
}

test('D1: what failed stays in its table, and has a status', async () => {
  const outbox = createBilling()
  const { id } = await outbox.publishNow('orders', 1)
  await outbox.drain()

  expect(await rowsOf('select id, failure_reason, attempts from outbox')).toEqual([
    { id, failure_reason: 'terminal_error', attempts: 1 },
  ])
  expect(await rowsOf('select id, status from outbox_status')).toEqual([{ id, status: 'failed' }])
})

test('D5b, D8: replayed in SQL it keeps its id, takes its cycle into the history, and has one effect', async () => {
  const outbox = createBilling()
  const { id } = await outbox.publishNow('orders', 1)
  await outbox.drain()
  isMended = true
  const replay = 'select outbox_replay(event_id => $1, p_new_generation => 1, p_replayed_by => $2) as answer'

  const answers = [...(await rowsOf(replay, [id, 'ann'])), ...(await rowsOf(replay, [id, 'bob']))]
  const status = await rowsOf(
    'select status, attempts, failure_history #>> $1 as who from outbox_status where id = $2',
    [['cycles', '0', 'replayedBy'], id],
  )
  await outbox.drain()
  await outbox.publishNow('orders', 1, { id }) // the same event, published once more
  await outbox.drain()

  expect(answers).toEqual([{ answer: 'replayed' }, { answer: 'not_found' }])
  expect(status).toEqual([{ status: 'pending', attempts: 0, who: 'ann' }])
  expect(await rowsOf('select order_id from invoices')).toEqual([{ order_id: 1 }])
})

test('many are replayed by a filter, after a look, and who did it is written down', async () => {
  const outbox = createBilling()
  for (const orderId of [1, 2, 3]) await outbox.publishNow('orders', orderId)
  await outbox.drain()
  isMended = true
  const filter = { queue: 'orders', reason: 'terminal_error' } as const

  const look = await outbox.deadLetters.replayAll(filter, { by: 'ann', dryRun: true })
  const { replayed } = await outbox.deadLetters.replayAll(filter, { by: 'ann' })
  await outbox.drain()

  expect([look.matched.count, replayed]).toEqual([3, 3])
  expect(await rowsOf('select from invoices')).toHaveLength(3)
  expect((await outbox.deadLetters.operations()).items).toMatchObject([{ by: 'ann', filter, changed: 3 }])
})
