import { createOutbox, type OutboxOptions } from 'postbox'
import { expect, test } from 'vitest'
import { systemClock } from '../../packages/postbox/src/runtime/clock.ts'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector } from '../support/signals.ts'

const bench = useBench()

test('handlers go on though no turn of the event loop is ever told', async () => {
  const clock = { ...systemClock, nextTurn: () => {} }
  const outbox = createOutbox({
    ...{ database: bench.pool(), schema: bench.database.schema, logger: false },
    ...({ [Symbol.for('postbox.internals')]: { clock } } as OutboxOptions),
  })
  const handled = collector<unknown>('handled messages')
  outbox.subscribe('orders', ({ body }) => handled.add(body))
  const bodies = Array.from({ length: 200 }, (_, n) => n)
  await inTransaction(bench.pool(), (tx) => outbox.publishMany(tx, 'orders', bodies))
  await using _running = await outbox.start()

  expect(await handled.take(200)).toHaveLength(200)
})
