// Ordered queues and transactions of handlers.
import { noRetry } from 'postbox'
import { expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { collector } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf } = bench

test('a handler that publishes in order leaves to the application how long its COMMIT waits for locks', async () => {
  const outbox = outboxOf({ queues: { orders: { order: 'key' }, letters: {} } })
  const seen = collector<string>('settings at COMMIT')
  await database.query('create table settings (value text)')
  await database.query(`create function note_setting() returns trigger language plpgsql as
    $$ begin insert into settings values (current_setting('lock_timeout')); return null; end $$`)
  await database.query(`create constraint trigger note after insert on outbox deferrable initially deferred
    for each row when (new.queue = 'orders') execute function note_setting()`)
  outbox.subscribe(
    'letters',
    async (_, context) => {
      await context.transaction(() => context.publish('orders', 1, { key: 'a' }))
      seen.add('committed')
    },
    { retry: noRetry() },
  )
  await outbox.publishNow('letters', 1)
  await using _ = await outbox.start()
  await seen.take(1)

  expect(await database.query('select value from settings')).toEqual([{ value: '0' }])
  await database.query('drop trigger note on outbox')
})
