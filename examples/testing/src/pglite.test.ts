import { PGlite } from '@electric-sql/pglite'
import { createOutbox, typed } from 'postbox'
import { expect, test } from 'vitest'

test('with the real SQL, in one process: the order and its message are committed together, or not at all', {
  timeout: 60_000,
}, async () => {
  const db = await PGlite.create() // takes some seconds
  const outbox = createOutbox({ database: db, queues: { orders: { body: typed<{ orderId: number }>() } } })
  await outbox.migrate()
  await db.exec('create table orders (id int primary key)')
  const handled: number[] = []
  outbox.subscribe('orders', ({ body }) => void handled.push(body.orderId))
  const place = (orderId: number) =>
    db.transaction(async (tx) => {
      await outbox.publish(tx, 'orders', { orderId })
      await tx.query('insert into orders values ($1)', [orderId])
    })

  await place(1)
  await expect(place(1)).rejects.toThrow('duplicate key') // takes its message with it
  await outbox.drain()

  expect(handled).toEqual([1])
  await db.close()
})
