// What the test kit does to an outbox that has a real database.
import { createOutbox } from 'postbox'
import { createTestOutbox } from 'postbox/testing'
import { beforeEach, describe, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { inTransaction } from '../support/in-transaction.ts'

const database = useDatabase()

describe('an outbox on Postgres', () => {
  beforeEach(async () => {
    await database.query(
      `drop table if exists outbox, outbox_dead, outbox_delivered, outbox_handled, outbox_queues, outbox_operations, outbox_meta cascade;
       drop function if exists outbox_replay`,
    )
  })

  const rows = () => database.query('select queue from outbox')

  test('writes nothing while it is taken over, by whichever handle, and everything afterwards', async () => {
    const pool = database.pool()
    const outbox = createOutbox({ database: pool, schema: database.schema, logger: false })
    await outbox.migrate()
    const box = await createTestOutbox(outbox)

    await inTransaction(pool, (client) => outbox.publish(client, 'orders', 1))
    await outbox.publishNow('orders', 2)
    await expect(outbox.publish(pool as never, 'orders', 3)).rejects.toMatchObject({
      code: 'OUTBOX_NOT_IN_TRANSACTION',
    })
    expect(box.published('orders').map(({ body }) => body)).toEqual([1, 2])
    expect(await rows()).toEqual([])
    await box.dispose()
    await outbox.publishNow('orders', 4)

    expect(await rows()).toEqual([{ queue: 'orders' }])
    await pool.end()
  })

  test('cannot be taken over while it runs; stopped, it can, and runs again afterwards', async () => {
    const pool = database.pool()
    const outbox = createOutbox({ database: pool, schema: database.schema, logger: false })
    await outbox.migrate()
    const handled: unknown[] = []
    outbox.subscribe('orders', ({ body }) => void handled.push(body))
    await outbox.start()

    await expect(createTestOutbox(outbox)).rejects.toMatchObject({
      code: 'OUTBOX_CANNOT_TAKE_OVER',
      message: expect.stringContaining('it is running'),
    })
    await outbox.stop()
    const box = await createTestOutbox(outbox, { mode: 'loop' })
    await outbox.publishNow('orders', 'in memory')
    await box.drain()
    await box.dispose()
    await outbox.publishNow('orders', 'in Postgres')
    await outbox.drain()

    expect(handled).toEqual(['in memory', 'in Postgres'])
    await pool.end()
  })
})
